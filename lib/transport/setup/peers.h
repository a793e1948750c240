// SPDX-License-Identifier: Apache-2.0
//
// The table of the instances that we know, by our EID, their EID and uasid, our application and theirs.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::setup {

// The peer that a target belongs to; it is added if it is not known. 0: the table is full.
uint32_t find_or_add_peer(CoreState& s, const TargetConfig& target);
// The same of whoever asks for a channel, by the path on which the request came. `visitor`: Peer::visitor.
uint32_t find_or_add_asking_peer(CoreState& s, const TargetConfig& sender, uint32_t visitor);
// Frees the peer if no target and no channel uses it.
void drop_unused_peer(CoreState& s, uint32_t peer);
// There is no channel of this lane of CTP to be had: from now on RTP carries all to this peer. If the lane is the
// ordered one, it carries the requests of queues of ROL, and CTP those of others.
void leave_compact(CoreState& s, uint32_t peer, uint32_t lane);
// Has the peer any channel that carries our requests?
bool has_channels(const Peer& peer);
// Is there a channel to the peer, or from it?
bool is_connected(const Peer& peer);
// Is the peer this instance itself?
bool is_self(const CoreState& s, const Peer& peer);
// The link is down: its channels die, and its peers are no longer reached over it.
void link_down(CoreState& s, uint32_t link);

}  // namespace ub::setup
