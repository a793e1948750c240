// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of one purpose of one part: the stream follows from the seed of the run, the name of the part and the
// purpose. So one more draw in one place changes nothing elsewhere. The distributions are our own, because those of the
// standard library differ between libraries.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "lib/base/fnv.h"
#include "lib/base/prng.h"

namespace ub::emu {

class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view part, std::string_view purpose)
      : prng_(hash(purpose, hash(part, seed))) {}

  // In [0, n).
  uint64_t below(uint64_t n) { return prng_.below(n); }
  // In [0, 1).
  double uniform() { return static_cast<double>(prng_.next_u64() >> 11) * 0x1.0p-53; }
  bool chance(double p) { return uniform() < p; }
  // With this mean, and finite.
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

 private:
  // A byte behind each text keeps "a", "bc" and "ab", "c" apart.
  static constexpr uint64_t hash(std::string_view text, uint64_t from) {
    return fnv1a(std::string_view("\xff"), fnv1a(text, from ^ kFnvBasis));
  }

  Prng prng_;
};

}  // namespace ub::emu
