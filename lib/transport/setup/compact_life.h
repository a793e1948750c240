// SPDX-License-Identifier: Apache-2.0
//
// Whether the peer of a channel of CTP is still there. No acknowledgement says so. If nothing was heard for half of the
// time after which a channel is given up, the peer is asked (PING), and its PONG is as good as a packet. A channel on
// which no answer is awaited has CoreConfig::keepalive_idle more.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::setup {

// A request was sent while no answer was awaited: silence counts from now on.
void await_answers(CoreState& s, uint32_t channel);
// The timer of an open channel of CTP.
void on_compact_timer(CoreState& s, uint32_t channel);
// Has the peer been silent for `limit` while answers are awaited?
bool is_silent_compact(const CoreState& s, const tp::Channel& ch, Duration limit);

}  // namespace ub::setup
