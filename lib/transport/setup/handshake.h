// SPDX-License-Identifier: Apache-2.0
//
// The handshake of a channel: REQ, REP, CONF, with glare (both ends begin at the same time), path MTU probing and
// refusals. The UB Base Specification leaves this open (6.3); the protocol is SoftUB's own and is described in
// docs/wire.md.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"

namespace ub::setup {

struct Arrival;

// Begins a channel for this place of the lane, which must have none. 0: there is no room for another channel, or no
// link to the peer.
uint32_t begin_channel_to(CoreState& s, uint32_t peer, uint32_t lane, uint32_t place = 0);
// The channel for this place of the lane; it is begun if there is none. It may not be up yet. 0: as above.
inline uint32_t channel_to(CoreState& s, uint32_t peer, uint32_t lane, uint32_t place = 0) {
  const uint32_t channel = s.peers[peer].lanes[lane].channels[place];
  return channel != 0 ? channel : begin_channel_to(s, peer, lane, place);
}

void on_request(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_reply(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_confirm(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_reject(CoreState& s, const wire::ControlRecord& record);
// The timer of a channel that is not open yet: the peer has not answered so far.
void on_handshake_timer(CoreState& s, uint32_t channel);

}  // namespace ub::setup
