// SPDX-License-Identifier: Apache-2.0
// selector.h - which of many occasions a fault chooses: the n-th, every n-th, or so many of a thousand, by chance. The
// same choice and the same occasions give the same verdicts (lib/base/prng.h).
#pragma once

#include <cstdint>

#include "lib/base/prng.h"

namespace ub::fault {

enum class By : uint8_t { kEvery, kNth, kChance };

struct Choice {
  By by = By::kEvery;
  uint32_t n = 1;        // kChance: per mille
  uint32_t at_most = 0;  // so many are chosen; 0: no limit. kNth: the n-th and those that follow it
  uint64_t seed = 1;     // kChance
};

class Selector {
 public:
  explicit Selector(const Choice& choice = {}) : choice_(choice), prng_(choice.seed) {}

  // Another occasion. Is it chosen?
  bool next() {
    ++seen_;
    if (!hits() || (choice_.at_most != 0 && chosen_ == choice_.at_most)) return false;
    ++chosen_;
    return true;
  }
  uint64_t chosen() const { return chosen_; }

 private:
  bool hits() {
    switch (choice_.by) {
      case By::kEvery:
        return seen_ % choice_.n == 0;
      case By::kNth:
        return seen_ >= choice_.n;
      case By::kChance:
        return prng_.below(1000) < choice_.n;
    }
    return false;
  }

  Choice choice_;
  Prng prng_;
  uint64_t seen_ = 0;
  uint64_t chosen_ = 0;
};

}  // namespace ub::fault
