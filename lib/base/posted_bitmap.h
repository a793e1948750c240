// SPDX-License-Identifier: Apache-2.0
//
// Doorbells as bits with a summary: a bit says "number n has something new". Any thread or process sets bits, and one
// takes them; only numbers that were set are looked at. The bitmap is plain memory without pointers, and zero is empty,
// so it may lie in shared memory. There the taker must check each number, because the setter may set what it likes.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

namespace ub {

// kNumbers must be a multiple of 4096.
template <uint32_t kNumbers>
class PostedBitmap {
 public:
  // Ends with a full fence, so what the caller reads next is not older than the bit.
  void set(uint32_t n) {
    words_[n / 64].fetch_or(uint64_t{1} << (n % 64), std::memory_order_release);
    summary_[n / 4096].fetch_or(uint64_t{1} << (n / 64 % 64), std::memory_order_release);
    any_.store(1, std::memory_order_seq_cst);
  }
  bool any() const { return any_.load(std::memory_order_relaxed) != 0; }

  template <class Fn>
  void take(Fn fn) {
    uint32_t from = 0;
    take_some(&from, kNumbers, fn);
  }
  // Takes at least `most` numbers if so many are set, rounded up to the 64 that lie together; the others stay set.
  // `*from` is the place where the taker goes on next time, so all numbers have their turn, even if somebody sets the
  // same ones again and again.
  template <class Fn>
  void take_some(uint32_t* from, uint32_t most, Fn fn) {
    any_.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const uint32_t first = *from / 64;
    const uint64_t behind = ~uint64_t{0} << (first % 64);
    for (uint32_t i = 0; i <= kGroups; ++i) {  // the first group is looked at twice, because its lower part comes last
      const uint32_t s = (first / 64 + i) % kGroups;
      const uint64_t part = i == 0 ? behind : (i == kGroups ? ~behind : ~uint64_t{0});
      if ((summary_[s].load(std::memory_order_relaxed) & part) == 0) continue;
      uint64_t groups = summary_[s].fetch_and(~part, std::memory_order_acquire) & part;
      for (; groups != 0; groups &= groups - 1) {
        const uint32_t word = s * 64 + static_cast<uint32_t>(std::countr_zero(groups));
        if (most == 0) {
          summary_[s].fetch_or(groups, std::memory_order_release);
          any_.store(1, std::memory_order_relaxed);
          *from = word * 64;
          return;
        }
        uint64_t bits = words_[word].exchange(0, std::memory_order_acquire);
        most -= std::min(most, static_cast<uint32_t>(std::popcount(bits)));
        for (; bits != 0; bits &= bits - 1) fn(word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
      }
    }
  }

 private:
  static_assert(kNumbers % 4096 == 0);
  static constexpr uint32_t kGroups = kNumbers / 4096;

  alignas(64) std::atomic<uint32_t> any_{0};
  std::atomic<uint64_t> summary_[kGroups] = {};
  std::atomic<uint64_t> words_[kNumbers / 64] = {};
};

}  // namespace ub
