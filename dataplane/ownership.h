// SPDX-License-Identifier: Apache-2.0
//
// Who may touch the Core: one thread at a time, and mostly the same one.
//
// A thread that owned it many times in a row becomes the biased owner: to own, it stores one word of its own and
// looks whether the bias was taken away; no atomic read-modify-write, no shared line. Somebody else takes the
// bias away, makes every running thread of the process pass a memory barrier (membarrier), and then sees for
// sure whether the former owner is inside. That costs microseconds, so it happens only when the driver changes;
// threads that alternate use the plain flag. Where membarrier is refused, nobody is ever biased.
#pragma once

#include <atomic>
#include <cstdint>

namespace ub {

class Ownership {
 public:
  Ownership();

  // Never blocks. True: this thread owns the Core until release().
  bool try_own() {
    uint32_t me = this_thread();
    if (bias_.load(std::memory_order_relaxed) == me) {
      biased_inside_.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the CPU's barrier is the taker's membarrier
      if (bias_.load(std::memory_order_relaxed) == me) [[likely]] {
        std::atomic_thread_fence(std::memory_order_acquire);
        return true;
      }
      biased_inside_.store(0, std::memory_order_release);
    }
    return try_own_slowly(me);
  }

  // Waits as long as it takes: for control calls.
  void own();

  void release() {
    if (biased_inside_.load(std::memory_order_relaxed) != 0) {
      biased_inside_.store(0, std::memory_order_release);
    } else {
      release_slowly();
    }
  }

 private:
  static constexpr uint32_t kOwnsBeforeBias = 512;

  static uint32_t this_thread();
  bool try_own_slowly(uint32_t me);
  void release_slowly();

  alignas(64) std::atomic<uint32_t> bias_{0};           // thread number, 0: nobody
  alignas(64) std::atomic<uint32_t> biased_inside_{0};  // written by the biased thread alone
  alignas(64) std::atomic<uint32_t> flag_{0};           // the owner when nobody is biased
  uint32_t last_owner_ = 0;                             // under flag_
  uint32_t in_a_row_ = 0;
  bool may_bias_ = false;
};

}  // namespace ub
