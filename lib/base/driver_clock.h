// SPDX-License-Identifier: Apache-2.0
//
// The clock of a state machine with deadlines that somebody has to drive. Time in which its driver got no CPU (or was
// stopped, or frozen with its machine) is nobody else's silence: what came meanwhile lies where the driver has not
// looked. So this clock stands still for a driver that is away.
//
// Between two turns it goes on by at most kTurn, except:
//   - up to kNotice before the next deadline: that much passes without harm, since nothing depends on it;
//   - while the driver slept and would have been woken by whatever came, and nothing came.
// So before a deadline that a gap would have jumped over there are at least kNotice / kTurn turns in which what lies
// there is looked at, and a driver whose every turn is late still reaches its deadlines, in turns instead of in time.
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

  // Has somebody driven a moment ago? Else turn_after_gap() is for this turn.
  bool is_steady(Instant real) const { return static_cast<uint64_t>((real - away_ - last_).ns) <= kTurn.ns; }
  // A turn at that time of the real clock: the time of this one.
  Instant turn(Instant real) { return last_ = real - away_; }

  // `deadline`: the next one, of this clock. `slept_until`, real: the driver slept until then, if ever, and nothing came.
  // Returns how much of the gap is not counted; turn() follows.
  Duration turn_after_gap(Instant real, Instant deadline, Instant slept_until) {
    const Instant last = real_time_of(last_), due = real_time_of(deadline);
    Instant limit = later(last, slept_until) + kTurn;
    if (limit + kNotice < due) limit = due - kNotice;
    if (real < last) limit = last;  // the counters of two CPUs differ
    const Duration skipped = real < last || real > limit ? real - limit : Duration{};
    away_ += skipped;
    return skipped;
  }

  // Of a time of this clock, if the driver stays; never() remains so.
  Instant real_time_of(Instant at) const { return at + away_; }

 private:
  Duration away_;
  Instant last_;
};

}  // namespace ub
