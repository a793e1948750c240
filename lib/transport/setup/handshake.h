// SPDX-License-Identifier: Apache-2.0
//
// How a channel comes to be: REQ, REP, CONF, with glare, path MTU probing and refusals. The UB Base Specification leaves
// this open (6.3); the protocol is SoftUB's own and described in docs/wire.md.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"

namespace ub::setup {

struct Arrival;

// Begins the channel for that place of the lane, since there is none. 0: no room for one.
uint32_t begin_channel_to(CoreState& s, uint32_t peer, bool bulk, uint32_t place = 0);
// The channel for that place of the lane, begun now if there is none. 0: no room for one.
inline uint32_t channel_to(CoreState& s, uint32_t peer, bool bulk, uint32_t place = 0) {
  const uint32_t channel = s.peers[peer].lanes[bulk ? 1 : 0].channels[place];
  return channel != 0 ? channel : begin_channel_to(s, peer, bulk, place);
}

void on_request(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_reply(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_confirm(CoreState& s, const wire::ControlRecord& record);
void on_reject(CoreState& s, const wire::ControlRecord& record);
// Of a channel that is not open yet: nobody answered so far.
void on_handshake_timer(CoreState& s, uint32_t channel);

}  // namespace ub::setup
