// SPDX-License-Identifier: Apache-2.0
//
// The ring of a send queue, as the application wrote it: posted elements are fetched some at a time, and checked. The
// initiator and the queue pairs of RoCE use it.
#pragma once

#include "lib/base/atomic_operation.h"
#include "lib/transport/core_state.h"
#include "lib/transport/ta/segmentation.h"

namespace ub::ta {

constexpr uint32_t kFetchedSlots = 64;  // slots fetched at once; at least those of the longest element

// Reads how much was posted. `oldest`: the first slot in use. False: the index that the application wrote is
// impossible.
inline bool see_posted(SendRing& q, uint32_t oldest) {
  uint32_t produced = q.indices->produced.load(std::memory_order_acquire);
  uint32_t slots = q.slot_mask + 1;
  if (produced - oldest > slots || produced - q.posted > slots) return false;
  q.posted = produced;
  return true;
}

inline bool see_posted(SendQueue& q) {
  return see_posted(q, q.started_head == q.started_tail ? q.next_slot : q.work[q.started_head & q.work_mask].slot);
}

// Fetches posted slots, at most `most`. This is the only place that reads the memory of an application which may not
// write `slots`.
inline void fetch(SendRing& q, uint32_t most = kFetchedSlots) {
  if (q.source == nullptr) {
    q.produced = q.posted;
    return;
  }
  const uint32_t end = q.posted - q.produced < most ? q.posted : q.produced + most;
  for (uint32_t at = q.produced; at != end; ++at) q.slots[at & q.slot_mask] = q.source[at & q.slot_mask];
  q.produced = end;
}

inline void fetch_all(SendQueue& q) {
  see_posted(q);
  fetch(q, q.slot_mask + 1);
}

// Does the element lie within what was fetched, and in one piece?
inline bool fits_ring(const SendRing& q, uint32_t at, const Wqe& wqe) {
  const uint32_t fetched = q.produced - at, to_the_end = q.slot_mask + 1 - (at & q.slot_mask);
  return wqe.slots - 1u < (fetched < to_the_end ? fetched : to_the_end);  // 0 - 1 is large, so 0 slots do not fit
}

inline bool valid_length(const Wqe& wqe) {
  return is_atomic(wqe.op) ? is_atomic_width(wqe.length) : wqe.length <= kMaxMessageBytes;
}

inline bool valid_element(const Wqe& wqe) {
  // A READ or atomic has ranges, whatever its flags say.
  uint32_t inline_length = (wqe.flags & kWrInline) != 0 && !is_fenced(wqe.op) ? wqe.length : 0;
  return wqe.op <= WrOp::kNop && wqe.sge_count <= kMaxSges && valid_length(wqe) &&
         wqe.slots >= wqe_slots(wqe.op, inline_length != 0 ? 0 : wqe.sge_count, inline_length);
}

}  // namespace ub::ta
