// SPDX-License-Identifier: Apache-2.0
//
// Who may touch the Core: one thread at a time, and mostly the same one.
//
// A thread that owned it many times in a row becomes the biased owner: to own, it stores one word of its own and
// looks whether the bias was taken away; no atomic read-modify-write, no shared line. Somebody else takes the
// bias away, makes every running thread of the process pass a memory barrier (membarrier), and then sees for
// sure whether the former owner is inside. That costs microseconds, so it happens only when the driver changes;
// threads that alternate use the plain flag. Where membarrier is refused, nobody is ever biased.
//
// Each thread says in a word of its own that it is inside. One that slept between its two looks at the bias may write
// there long after another thread got the bias, and then takes that back: in a shared word it would take back the
// other's.
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/thread_number.h"

namespace ub {

class Ownership {
 public:
  Ownership();

  // Never blocks. True: this thread owns the Core until release(). A thread that owns it already does not get it twice.
  bool try_own() {
    const uint32_t me = this_thread_number();
    if (bias_.load(std::memory_order_relaxed) == me && me != kNobody) {
      std::atomic<uint32_t>& inside = inside_[me].word;
      if (inside.load(std::memory_order_relaxed) != 0) return false;  // it does already: this is a signal handler
      inside.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the CPU's barrier is the taker's membarrier
      if (bias_.load(std::memory_order_relaxed) == me) [[likely]] {
        std::atomic_thread_fence(std::memory_order_acquire);
        return true;
      }
      inside.store(0, std::memory_order_release);
    }
    return try_own_slowly(me);
  }

  // As try_own(), but waits for who owns it by the bias: a moment, as it may leave, and then, as it may need this CPU
  // for that, up to so many pauses of ipc::kShortestPause. Nobody else gets the Core meanwhile. Who drives all the time
  // is hardly ever met outside. For a thread in which no handler of a signal calls the data path.
  bool own_next(uint32_t pauses);

  // Does anybody own it at this moment? Old as soon as it is told.
  bool is_owned() const {
    return flag_.load(std::memory_order_relaxed) != 0 ||
           inside_[bias_.load(std::memory_order_relaxed)].word.load(std::memory_order_relaxed) != 0;
  }

  // Does this thread own the Core already? Then nobody can get it before what it does now is over: this is a signal
  // handler. A thread without a number is never told so.
  bool is_mine() const {
    const uint32_t me = this_thread_number();
    if (me == kNobody) return false;
    return inside_[me].word.load(std::memory_order_relaxed) != 0 || flag_.load(std::memory_order_relaxed) == me;
  }

  // Waits as long as it takes: for control calls.
  void own();

  void release() {
    std::atomic<uint32_t>& inside = inside_[this_thread_number()].word;
    if (inside.load(std::memory_order_relaxed) != 0) {
      inside.store(0, std::memory_order_release);
    } else {
      release_slowly();
    }
  }

 private:
  static constexpr uint32_t kOwnsBeforeBias = 512;
  static constexpr uint32_t kSomebody = UINT32_MAX;  // an owner without a number

  static constexpr uint32_t kNobody = kNoThread;  // who has no number is never biased
  struct alignas(64) Inside {
    std::atomic<uint32_t> word{0};
  };

  bool try_own_slowly(uint32_t me);
  bool take_flag(uint32_t me);
  bool biased_is_inside() const { return inside_[last_biased_].word.load(std::memory_order_acquire) != 0; }
  bool own_or_give_back(uint32_t me);
  void release_slowly();

  alignas(64) std::atomic<uint32_t> bias_{kNobody};  // number of the biased thread
  Inside inside_[kThreadNumbers];                    // of each thread: it owns by its bias, or looks whether it may
  alignas(64) std::atomic<uint32_t> flag_{0};        // number of the owner when nobody is biased; 0: there is none
  uint32_t last_owner_ = kNobody;                    // under flag_, with the next two
  uint32_t last_biased_ = kNobody;
  uint32_t in_a_row_ = 0;
  bool may_bias_ = false;
};

}  // namespace ub
