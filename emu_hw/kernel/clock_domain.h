// SPDX-License-Identifier: Apache-2.0
//
// Clocks, and the only places where time is rounded. A clock's period is a fraction of picoseconds, so cycles do not
// drift: the n-th edge lies at n times the period, rounded up to a picosecond.
#pragma once

#include <cstdint>

#include "emu_hw/kernel/virtual_time.h"

namespace ub::emu {

class ClockDomain {
 public:
  // A frequency as a fraction of hertz: {322'000'000, 1} has edges each 3105.59 ps.
  struct Frequency {
    uint64_t hertz = 1'000'000'000;
    uint64_t divisor = 1;
  };
  constexpr explicit ClockDomain(Frequency f) : frequency_(f) {}

  // So many cycles from an edge on.
  constexpr Span cycles(uint64_t n) const { return {up(n)}; }
  // How long until the first edge that is not before `now`.
  constexpr Span to_edge(Time now) const { return {up(edge_number(now)) - now.ps}; }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr uint64_t kPerSecond = 1'000'000'000'000;

  constexpr uint64_t up(uint64_t cycles) const {
    const Wide numerator = Wide{cycles} * kPerSecond * frequency_.divisor;
    return static_cast<uint64_t>((numerator + frequency_.hertz - 1) / frequency_.hertz);
  }
  // Of the first edge that is not before `now`.
  constexpr uint64_t edge_number(Time now) const {
    const Wide before = Wide{now.ps} * frequency_.hertz / (Wide{kPerSecond} * frequency_.divisor);
    const auto number = static_cast<uint64_t>(before);
    return up(number) < now.ps ? number + 1 : number;
  }

  Frequency frequency_;
};

// The lumped fidelities cut each delay to whole nanoseconds, as the reference does.
constexpr Span cut_to_nanoseconds(Span s) { return {s.ps / 1000 * 1000}; }

}  // namespace ub::emu
