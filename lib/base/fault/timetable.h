// SPDX-License-Identifier: Apache-2.0
// timetable.h - when a fault lasts: from `after` on, for `lasts`, and again every `every`. Time is an argument.
#pragma once

#include "lib/base/time.h"

namespace ub::fault {

struct Window {
  Duration after{};
  Duration lasts{};  // 0: for ever
  Duration every{};  // from one beginning to the next, longer than `lasts`; 0: once
};

// A window that counts from `begin`.
class Timetable {
 public:
  Timetable(const Window& window, Instant begin) : window_(window), first_(begin + window.after) {}

  // Does the fault last at that time?
  bool lasts(Instant now) const { return now >= first_ && (window_.lasts.ns == 0 || phase(now) < window_.lasts); }

  // When that changes next.
  Instant next_change(Instant now) const {
    if (now < first_) return first_;
    if (window_.lasts.ns == 0) return Instant::never();
    const Instant begin = now - phase(now);
    if (lasts(now)) return begin + window_.lasts;
    return window_.every.ns == 0 ? Instant::never() : begin + window_.every;
  }

 private:
  // The time since the last beginning.
  Duration phase(Instant now) const {
    const Duration since = now - first_;
    return window_.every.ns == 0 ? since : Duration{since.ns % window_.every.ns};
  }

  Window window_;
  Instant first_;
};

}  // namespace ub::fault
