// SPDX-License-Identifier: Apache-2.0
//
// How the paths of a channel begin to live (docs/paths-design.md). An end adds those that Core::add_path() named, and
// asks on each of them by PING. The other end learns them from these PINGs, and uses them the other way round. Either
// end sends data and acknowledgements on a path only after the peer has answered a PING of its own there, which was as
// long as the largest data packet. A path that is suspected later is asked again until it answers.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/setup/receive_record.h"

namespace ub::setup {

// The channel opens: adds the paths that this end has for it, the usual one among them.
void open_paths(CoreState& s, uint32_t channel);
// Sends the PINGs that are due. The channel is open and has several paths.
void ask_paths(CoreState& s, uint32_t channel);
// A PING about a path came: answers it, and takes the path for one of its channel. If the channel has no room for it,
// or has one path only, the answer says so, and the peer asks no more. Of the paths of both ends, where there is no
// room for all, those of the end that set the channel up come first.
void on_path_ping(CoreState& s, const Arrival& from, const wire::ControlRecord& ping);
// A PONG about a path. False: it is about the path of the set-up, and says something that concerns the channel.
bool on_path_pong(CoreState& s, uint32_t channel, const Arrival& from, const wire::ControlRecord& pong);

}  // namespace ub::setup
