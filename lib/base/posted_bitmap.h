// SPDX-License-Identifier: Apache-2.0
//
// Doorbells as bits with a summary: "number n has something new". Any thread or process sets, one takes; nothing is
// scanned that was not set. Plain memory, zero is empty, no pointers: it may lie in shared memory, and whoever takes
// must then check each number, for the setter may set what it likes.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace ub {

// kNumbers: a multiple of 4096.
template <uint32_t kNumbers>
class PostedBitmap {
 public:
  // Ends with a full fence: what the caller reads next is not older than the bit.
  void set(uint32_t n) {
    words_[n / 64].fetch_or(uint64_t{1} << (n % 64), std::memory_order_release);
    summary_[n / 4096].fetch_or(uint64_t{1} << (n / 64 % 64), std::memory_order_release);
    any_.store(1, std::memory_order_seq_cst);
  }
  bool any() const { return any_.load(std::memory_order_relaxed) != 0; }

  template <class Fn>
  void take(Fn fn) {
    any_.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (uint32_t s = 0; s < kNumbers / 4096; ++s) {
      if (summary_[s].load(std::memory_order_relaxed) == 0) continue;
      uint64_t groups = summary_[s].exchange(0, std::memory_order_acquire);
      for (; groups != 0; groups &= groups - 1) {
        uint32_t word = s * 64 + static_cast<uint32_t>(std::countr_zero(groups));
        uint64_t bits = words_[word].exchange(0, std::memory_order_acquire);
        for (; bits != 0; bits &= bits - 1) fn(word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
      }
    }
  }

 private:
  static_assert(kNumbers % 4096 == 0);

  alignas(64) std::atomic<uint32_t> any_{0};
  std::atomic<uint64_t> summary_[kNumbers / 4096] = {};
  std::atomic<uint64_t> words_[kNumbers / 64] = {};
};

}  // namespace ub
