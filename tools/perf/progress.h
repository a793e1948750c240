// SPDX-License-Identifier: Apache-2.0
//
// What the measuring thread has done so far, for the thread that writes a time series (trace.h). Whoever measures
// stores two numbers for each batch of completions, and one for each time if a trace is written. That costs some
// nanoseconds and no system call.
//
// Thread: one writer, any number of readers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ub::tools {

class Progress {
 public:
  void ended(uint32_t requests, uint64_t bytes) {
    if (requests == 0) return;
    add(requests_, requests);
    add(bytes_, bytes);
  }
  uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  static void add(std::atomic<uint64_t>& to, uint64_t n) {
    to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::atomic<uint64_t> requests_{0}, bytes_{0};
};

// The latest times, each in ticks. A reader that is too slow misses the oldest of them.
class LatestTimes {
 public:
  static constexpr size_t kMost = 1 << 16;

  void add(uint64_t ticks) {
    const uint64_t n = count_.load(std::memory_order_relaxed);
    ticks_[n % kMost].store(static_cast<uint32_t>(ticks < UINT32_MAX ? ticks : UINT32_MAX), std::memory_order_relaxed);
    count_.store(n + 1, std::memory_order_release);
  }
  // Hands those that came since `*seen` to fn.
  template <class Fn>
  void take(uint64_t* seen, Fn fn) const {
    const uint64_t count = count_.load(std::memory_order_acquire);
    for (uint64_t n = count - *seen > kMost ? count - kMost : *seen; n != count; ++n) {
      fn(ticks_[n % kMost].load(std::memory_order_relaxed));
    }
    *seen = count;
  }

 private:
  std::unique_ptr<std::atomic<uint32_t>[]> ticks_ = std::make_unique<std::atomic<uint32_t>[]>(kMost);
  std::atomic<uint64_t> count_{0};
};

}  // namespace ub::tools
