// SPDX-License-Identifier: Apache-2.0
//
// How long a tick of one clock is, measured by another clock. The thread that measures may lose the CPU at any moment,
// even between the readings of the two clocks. A scale that comes from such a pair would make the time of the whole NIC
// run away.
#pragma once

#include <cstdint>

namespace ub {

struct ClockPair {
  uint64_t ticks, ns;
};

// Reads both clocks at the same moment: of several tries it returns the one that took the fewest ticks.
template <int kTries = 8, class Ticks, class Nanoseconds>
ClockPair read_both(Ticks ticks, Nanoseconds nanoseconds) {
  ClockPair best{};
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = ticks();
    const uint64_t ns = nanoseconds();
    const uint64_t took = ticks() - before;
    if (took >= least) continue;
    least = took;
    best = {before + took / 2, ns};
  }
  return best;
}

// Nanoseconds for each tick, as a fixed-point number 32.32, measured for `span_ns`. If that is 3 ms, the result is good
// to a part in a hundred thousand. 0: the ticks stand still.
template <class Ticks, class Nanoseconds>
uint64_t measure_tick_scale(Ticks ticks, Nanoseconds nanoseconds, uint64_t span_ns) {
  const ClockPair begin = read_both(ticks, nanoseconds);
  while (nanoseconds() - begin.ns < span_ns) continue;
  const ClockPair end = read_both(ticks, nanoseconds);
  if (end.ticks == begin.ticks) return 0;
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{end.ns - begin.ns} << 32) / (end.ticks - begin.ticks));
}

}  // namespace ub
