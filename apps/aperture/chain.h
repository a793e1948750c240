// SPDX-License-Identifier: Apache-2.0
//
// A ring through all lines of a memory, in random order. Each line begins with the place of the next one, so whoever
// follows the ring knows the address of a load only when the load before it has ended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace ub::apps {

class Chain {
 public:
  static constexpr uint64_t kLine = 64;

  Chain(uint64_t bytes, uint64_t seed) : order_(bytes / kLine) {
    std::iota(order_.begin(), order_.end(), uint64_t{0});
    std::shuffle(order_.begin(), order_.end(), std::mt19937_64(seed));
  }

  uint64_t lines() const { return order_.size(); }
  // Where the walk is after so many hops, in bytes from the start of the memory.
  uint64_t place(uint64_t hops) const { return order_[hops % lines()] * kLine; }

  // Writes the ring with write(place, next place).
  template <class Write>
  void lay(Write write) const {
    for (uint64_t i = 0; i < lines(); ++i) write(place(i), place(i + 1));
  }

 private:
  std::vector<uint64_t> order_;
};

}  // namespace ub::apps
