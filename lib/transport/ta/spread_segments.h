// SPDX-License-Identifier: Apache-2.0
//
// Segments of a request that are spread over the channels of their lane (UB Base Specification Rev 2.0, 6.5).
#pragma once

#include "lib/transport/setup/handshake.h"
#include "lib/transport/ta/request_state.h"

namespace ub::ta {

// Are the segments of this request spread over the channels of their lane? A request that asks for an order stays on
// one.
inline bool spreads(const CoreState& s, const SendQueue& q, const Wqe& wqe) {
  if (s.config.channels_per_lane == 1) return false;
  return (wqe.op == WrOp::kWrite || wqe.op == WrOp::kRead) && wqe.place_order == 0 && !q.pinned;
}

// The channel for the next segment of a request that is spread: the next one in turn. If that one is not up yet, its
// set-up begins and the segment takes the request's first channel.
inline uint32_t channel_of_next_segment(CoreState& s, const WrState& wr) {
  const tp::Channel& began = s.channels[wr.channel];
  const uint32_t place = (began.place() + wr.cut) & (s.config.channels_per_lane - 1);
  const uint32_t channel = setup::channel_to(s, began.peer, began.lane, place);
  return channel != 0 && s.channels[channel].is_up() ? channel : wr.channel;
}

}  // namespace ub::ta
