// SPDX-License-Identifier: Apache-2.0
//
// The clock of a state machine with deadlines that somebody has to drive. If its driver got no CPU for some time (or
// was stopped, or frozen with its machine), nobody else was silent in that time: what came meanwhile lies where the
// driver has not looked yet. So this clock stands still while its driver is away.
//
// Between two turns the clock goes on by at most kTurn, with two exceptions:
//   - It goes on freely up to kNotice before the next deadline, since nothing depends on that time.
//   - It goes on freely while the driver slept, would have been woken by whatever came, and nothing came.
// So, before a deadline that a gap would have jumped over, there are at least kNotice / kTurn turns in which the driver
// looks at what lies there. And a driver whose every turn is late still reaches its deadlines after so many turns.
//
// It never goes back. Thread: whoever drives, one at a time.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace ub {

class DriverClock {
 public:
  static constexpr Duration kTurn = milliseconds(50);
  static constexpr Duration kNotice = milliseconds(200);

  // Was the last turn only a moment ago? If not, the caller calls turn_after_gap() for this turn.
  bool is_steady(Instant real) const { return static_cast<uint64_t>((real - away_ - last_).ns) <= kTurn.ns; }
  // Begins a turn at this time of the real clock. Returns the time of this clock.
  Instant turn(Instant real) { return last_ = real - away_; }

  // `deadline`: the next deadline, in time of this clock. `slept_until`: the real time until which the driver slept
  // while nothing came; if it did not sleep, any time in the past. Returns how much of the gap is not counted. The
  // caller calls turn() next.
  Duration turn_after_gap(Instant real, Instant deadline, Instant slept_until) {
    const Instant last = real_time_of(last_), due = real_time_of(deadline);
    Instant limit = later(last, slept_until) + kTurn;
    if (limit + kNotice < due) limit = due - kNotice;
    if (real < last) limit = last;  // the counters of two CPUs differ
    const Duration skipped = real < last || real > limit ? real - limit : Duration{};
    away_ += skipped;
    return skipped;
  }

  // The real time at which this clock will show `at`, if the driver stays. never() remains never().
  Instant real_time_of(Instant at) const { return at + away_; }

 private:
  Duration away_;
  Instant last_;
};

}  // namespace ub
