// SPDX-License-Identifier: Apache-2.0
//
// The caches of a CPU in front of remote memory: two fully associative levels. A hit refreshes the level that it hit,
// one in L2 is installed in L1, a miss in both. Write-backs are free. An operation asks once, for its first line. As in
// the reference a store by write-through goes on if it hits L1, and ends there if it hits L2.
#pragma once

#include <cstdint>

#include "emu_hw/parts/fidelity.h"
#include "emu_hw/parts/lru_set.h"
#include "emu_hw/parts/operation.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

enum class CachePolicy : uint8_t { kWriteBack, kWriteThrough, kUncached };

class Cache {
 public:
  Cache(Kernel& kernel, const Parameters& p, Fidelity f, CachePolicy policy)
      : kernel_(kernel), parameters_(p), fidelity_(f), policy_(policy), l1_(p.l1_lines), l2_(p.l2_lines) {}

  struct Answer {
    Span takes;
    bool is_hit;  // the operation ends here
  };
  Answer ask(uint64_t address, Verb verb) {
    const uint64_t line = address / kLineBytes;
    if (policy_ == CachePolicy::kUncached) return {parameters_.local_dram, false};
    if (l1_.touch(line)) {
      if (policy_ == CachePolicy::kWriteThrough && verb == Verb::kStore) return {parameters_.llc, false};
      return {parameters_.l1, true};
    }
    const bool is_in_l2 = l2_.touch(line);
    l1_.insert(line);
    l2_.insert(line);
    return is_in_l2 ? Answer{parameters_.l2, true} : Answer{parameters_.local_dram, false};
  }
  Charge take(Operation& op, const Answer& answer) const {
    return {kernel_, op, answer.is_hit ? "cache.hit" : "cache.miss", fidelity_.delay(answer.takes)};
  }

 private:
  static constexpr uint64_t kLineBytes = 64;

  Kernel& kernel_;
  const Parameters& parameters_;
  const Fidelity fidelity_;
  const CachePolicy policy_;
  LruSet l1_, l2_;
};

}  // namespace ub::emu
