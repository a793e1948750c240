// SPDX-License-Identifier: Apache-2.0
//
// An asymmetric memory barrier between processes. The side that acts often writes, then reads, with no fence;
// the side that acts rarely writes, calls heavy_barrier(), then reads. It is then impossible that both miss
// the other's write: every running thread of every registered process executed a full fence in between (Linux
// membarrier, global expedited). Where the system call is refused, the frequent side must use a full fence.
#pragma once

#include <atomic>

namespace ub::ipc {

// Everything before it is visible to others before anything after it happens.
inline void full_fence() {
#if defined(__SANITIZE_THREAD__)
  // The checker does not know fences; on one variable all of them are ordered.
  static std::atomic<int> order;
  order.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Registers this process as one that heavy barriers reach. False: not available here. Idempotent, any thread.
bool register_for_heavy_barrier();

// A few microseconds. Includes a full fence of the calling thread even where membarrier is refused.
void heavy_barrier();

}  // namespace ub::ipc
