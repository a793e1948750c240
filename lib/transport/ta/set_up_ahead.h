// SPDX-License-Identifier: Apache-2.0
//
// Sets up the channels that further requests of a queue need while the queue waits for one.
#pragma once

#include "lib/transport/setup/handshake.h"
#include "lib/transport/ta/queue_front.h"
#include "lib/transport/ta/request_state.h"

namespace ub::ta {

// The queue waits for a channel that is not up. Meanwhile the channels that its further requests need are set up, so
// that the timeouts of several dead peers do not add up. Not inlined, because queues rarely wait so, and each request
// would pay for the registers that it takes.
[[gnu::noinline]] inline void set_up_ahead(CoreState& s, SendQueue& q) {
  if (!see_posted(q)) return;
  fetch(q);
  uint32_t at = q.looked_ahead;
  if (at - q.next_slot > q.produced - q.next_slot) at = q.next_slot;
  for (int n = 0; at != q.produced && n < 64; ++n) {
    const Wqe& wqe = q.slots[at & q.slot_mask];
    if (!fits_ring(q, at, wqe)) break;
    if (wqe.op < WrOp::kNop && names_target(s, q, wqe)) {
      const LaneKind lane = lane_of_request(s, q, wqe);
      setup::channel_to(s, s.targets[wqe.target].peer, lane, place_of(s, q, lane));
    }
    at += wqe.slots;
  }
  q.looked_ahead = at;
}

}  // namespace ub::ta
