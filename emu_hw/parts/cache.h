// SPDX-License-Identifier: Apache-2.0
//
// The caches of a CPU in front of remote memory: two fully associative levels. A hit refreshes the level that it hit,
// one in L2 is installed in L1, a miss in both. Write-backs are free. An operation asks once, for its first line. As in
// the reference a store by write-through goes on if it hits L1, and ends there if it hits L2.
#pragma once

#include <cstdint>

#include "emu_hw/parts/lru_set.h"
#include "emu_hw/parts/part.h"

namespace ub::emu {

class Cache : public Part {
 public:
  explicit Cache(const Site& site) : Part(site), l1_(parameters_.l1_lines), l2_(parameters_.l2_lines) {}

  struct Answer {
    Span takes;
    bool is_hit;  // the operation ends here
  };
  Answer ask(uint64_t address, Verb verb) {
    const uint64_t line = address / kLineBytes;
    if (parameters_.cache_policy == CachePolicy::kUncached) return {parameters_.local_dram, false};
    if (l1_.touch(line)) {
      const bool goes_on = parameters_.cache_policy == CachePolicy::kWriteThrough && verb == Verb::kStore;
      if (goes_on) return {parameters_.llc, false};
      return {parameters_.l1, true};
    }
    const bool is_in_l2 = l2_.touch(line);
    l1_.insert(line);
    l2_.insert(line);
    return is_in_l2 ? Answer{parameters_.l2, true} : Answer{parameters_.local_dram, false};
  }
  Charge take(Operation& op, const Answer& answer) const {
    if (answer.is_hit) return Part::take(op, "cache.hit", answer.takes);
    return Part::take(op, "cache.miss", fidelity_.charges_misses ? answer.takes : Span{});
  }

 private:
  static constexpr uint64_t kLineBytes = 64;

  LruSet l1_, l2_;
};

}  // namespace ub::emu
