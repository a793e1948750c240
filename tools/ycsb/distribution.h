// SPDX-License-Identifier: Apache-2.0
//
// The random numbers of YCSB: which item is taken, of how many. Each has `next(random)`, which takes tens of
// nanoseconds and allocates nothing. They are values: a copy goes on by itself. Thread: one for each object.
#pragma once

#include <cmath>
#include <cstdint>

#include "lib/base/prng.h"

namespace ub::ycsb {

// Uniform in [0, 1).
inline double unit(Prng& random) { return static_cast<double>(random.next_u64() >> 11) * 0x1.0p-53; }

// FNV-1a of the eight bytes of a number, without its sign: what YCSB scatters keys with.
uint64_t scattered(uint64_t number);

constexpr double kZipfianTheta = 0.99;

// 1 + 1/2^theta + ... + 1/n^theta, by the formula of Euler and Maclaurin: exact to some 14 digits, in microseconds.
double zeta(uint64_t n, double theta = kZipfianTheta);

// Item i of [0, items) has a probability of 1/(i+1)^0.99, up to a factor: item 0 is the most popular one. By the method
// of Gray et al., "Quickly generating billion-record synthetic databases".
class Zipfian {
 public:
  explicit Zipfian(uint64_t items);

  uint64_t next(Prng& random) const;
  // From now on there are so many items. Fewer than before: nothing changes.
  void grow(uint64_t items);
  uint64_t items() const { return items_; }

 private:
  void set_eta();

  uint64_t items_;
  double zeta_, eta_ = 0;
};

// Zipfian, but the popular items lie anywhere in [0, items). As in YCSB, ten thousand million ranks are scattered over
// the items, so the popularity of one does not depend on how many there are.
class ScrambledZipfian {
 public:
  explicit ScrambledZipfian(uint64_t items) : items_(items), ranks_(kRanks) {}

  uint64_t next(Prng& random) const { return scattered(ranks_.next(random)) % items_; }

 private:
  static constexpr uint64_t kRanks = 10'000'000'000;

  uint64_t items_;
  Zipfian ranks_;
};

// The first items of [0, items), `set_fraction` of them, are taken with probability `operation_fraction`.
class Hotspot {
 public:
  Hotspot(uint64_t items, double set_fraction, double operation_fraction)
      : items_(items),
        hot_(static_cast<uint64_t>(static_cast<double>(items) * set_fraction)),
        fraction_(hot_ == 0       ? 0
                  : hot_ == items ? 1
                                  : operation_fraction) {}

  uint64_t next(Prng& random) const {
    return random.chance(fraction_) ? random.below(hot_) : hot_ + random.below(items_ - hot_);
  }

 private:
  uint64_t items_, hot_;
  double fraction_;
};

// `percentile` percent of the numbers are below `range`; there is no greatest one.
class Exponential {
 public:
  Exponential(double percentile, double range) : gamma_(-std::log(1 - percentile / 100) / range) {}

  uint64_t next(Prng& random) const { return static_cast<uint64_t>(-std::log(1 - unit(random)) / gamma_); }

 private:
  double gamma_;
};

// A length from `least` to `most`.
class Length {
 public:
  enum class Kind { kConstant, kUniform, kZipfian };  // constant: always `most`; zipfian: short ones are frequent

  Length(Kind kind, uint64_t least, uint64_t most)
      : kind_(kind), least_(least), most_(most), ranks_(most - least + 1) {}

  uint64_t next(Prng& random) const {
    switch (kind_) {
      case Kind::kUniform:
        return random.between(least_, most_);
      case Kind::kZipfian:
        return least_ + ranks_.next(random);
      default:
        return most_;
    }
  }
  uint64_t most() const { return most_; }

 private:
  Kind kind_;
  uint64_t least_, most_;
  Zipfian ranks_;
};

}  // namespace ub::ycsb
