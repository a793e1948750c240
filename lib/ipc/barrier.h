// SPDX-License-Identifier: Apache-2.0
//
// An asymmetric memory barrier between processes. The side that acts often writes, then reads, without a fence. The
// side that acts rarely writes, calls heavy_barrier(), then reads. It is then impossible that both miss the other's
// write, because every running thread of every registered process executed a full fence in between (Linux membarrier,
// global expedited). Where the system call is refused, the side that acts often must use a full fence.
#pragma once

#include <atomic>

namespace ub::ipc {

// Everything before the fence is visible to others before anything behind it happens.
inline void full_fence() {
#if defined(__SANITIZE_THREAD__)
  // The checker does not know fences, but atomic operations on one variable are ordered for it.
  static std::atomic<int> order;
  order.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Registers this process, so that heavy barriers reach it. False: they are not available here. Any thread may call it,
// and more than once.
bool register_for_heavy_barrier();

// It takes a few microseconds. It includes a full fence of the calling thread, even where membarrier is refused.
void heavy_barrier();

}  // namespace ub::ipc
