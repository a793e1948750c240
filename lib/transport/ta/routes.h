// SPDX-License-Identifier: Apache-2.0
//
// Straight requests (docs/straight-path-design.md): WRITEs and READs of one range and one packet that ask for no order.
// Where nothing of their queue waits, they leave by the channel that the general path has chosen for such a request
// before. A route remembers that choice until something changes that could lead to another one (forget_routes()).
// Nothing else is remembered: what may differ from request to request is looked at each time.
#pragma once

#include "lib/base/bytes.h"
#include "lib/transport/core_state.h"
#include "lib/transport/ta/queue_front.h"
#include "lib/transport/ta/waiting_requests.h"

namespace ub::ta {

// Is the element a straight request, apart from its length? All that it says about itself is compared at once, so a
// flag or field that is not known here makes it a general one.
inline bool is_straight(const Wqe& wqe) {
  static_assert(offsetof(Wqe, op) == 0 && offsetof(Wqe, flags) == 1 && offsetof(Wqe, sge_count) == 2 &&
                offsetof(Wqe, slots) == 3);
  constexpr uint32_t kMayDiffer = uint32_t{kWrSignaled | kWrToken} << 8;
  constexpr uint32_t kOneRange = 1u << 16 | 1u << 24;  // one range, one slot
  constexpr uint32_t kWrite = kOneRange | static_cast<uint32_t>(WrOp::kWrite);
  constexpr uint32_t kRead = kOneRange | static_cast<uint32_t>(WrOp::kRead);
  const uint32_t form = load_le32(reinterpret_cast<const std::byte*>(&wqe)) & ~kMayDiffer;
  return (form == kWrite || form == kRead) && (wqe.place_order | wqe.exclusive) == 0;
}

inline Route& route_of(CoreState& s, uint32_t queue, uint32_t target) { return s.routes[(queue + target) % kRoutes]; }

// The channel of the next posted request of the queue, if that is a straight one which may start now (a READ if its
// result fits, too); 0: the general path has to say. What was posted must have been fetched.
inline uint32_t straight_channel(CoreState& s, const SendQueue& q, uint32_t queue) {
  if (q.next_slot == q.produced || q.state != QueueState::kReady || has_admitted(q)) [[unlikely]]
    return 0;
  const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
  if (!is_straight(wqe)) [[unlikely]]
    return 0;
  const Route& route = route_of(s, queue, wqe.target);
  if (route.epoch != s.route_epoch || route.queue != queue || route.target != wqe.target) [[unlikely]]
    return 0;
  // A request without payload is a general one.
  if (wqe.length - 1 >= route.most_bytes) [[unlikely]]
    return 0;
  if (q.started_tail - q.started_head > q.work_mask || !room_for_segment(q) || !room_for_tassns(q, 1)) [[unlikely]]
    return 0;
  return route.channel;
}

// The general path has chosen this channel for a straight request of the queue.
void note_route(CoreState& s, const SendQueue& q, const Wqe& wqe, uint32_t channel);

}  // namespace ub::ta
