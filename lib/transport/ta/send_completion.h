// SPDX-License-Identifier: Apache-2.0
//
// Completes a send request, of any engine: requests retire in the order in which they were posted, each as soon as
// there is room for its completion, if it has one.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/ta/completion.h"

namespace ub::ta {

// What the application gave to its request, and how it ended. `stamp`: as in Cqe.
inline void say_how_it_ended(Cqe& cqe, const Wqe& wqe, CrStatus status, uint32_t stamp) {
  cqe.user_ctx = wqe.user_ctx;
  cqe.status = status;
  cqe.op = wqe.op;
  cqe.length = wqe.length;
  cqe.stamp = stamp;
}

// The oldest request of the ring has ended; its slots up to `end` become the application's again. If it failed or is
// signaled, it gets a completion; describe() returns one that is filled in with what concerns the sender. False: the
// JFC has no room, and the sender (number `record` of the range `waiters`) waits for it.
template <class Describe>
[[nodiscard]] bool complete_send(CoreState& s, const SendRing& ring, uint32_t jfc, const NumberRange& waiters,
                                 uint32_t record, const Wqe& wqe, uint32_t end, CrStatus status, Describe describe) {
  QueueIndices& indices = *ring.indices;
  if (status != CrStatus::kSuccess || (wqe.flags & kWrSignaled) != 0) {
    if (!jfc_has_room(s, jfc)) {
      wait_for_room(s, jfc, waiters.of(record));
      return false;
    }
    Cqe cqe = describe();
    const uint32_t retiring = indices.retired.load(std::memory_order_relaxed) + 1;
    say_how_it_ended(cqe, wqe, status, retiring);
    indices.retiring.store(retiring, std::memory_order_relaxed);
    push_completion(s, jfc, cqe);
  }
  retire(indices, end, 1);
  return true;
}

}  // namespace ub::ta
