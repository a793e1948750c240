// SPDX-License-Identifier: Apache-2.0
//
// The clock of one client: nanoseconds from the CPU's counter, in some 10 ns. All copies tell the same time. Thread:
// one for each copy.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "lib/base/idle_yield.h"
#include "lib/base/tick_scale.h"
#include "tools/common/probe.h"

namespace ub::ycsb {

// Where the time begins, and how long a tick is; one for the program.
class TimeBase {
 public:
  TimeBase()
      : scale_(measure_tick_scale(tools::Ticks::now, tools::monotonic_ns, kSpanNs)), origin_(tools::Ticks::now()) {}

  uint64_t now_ns() const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{tools::Ticks::now() - origin_} * scale_) >> 32);
  }

 private:
  static constexpr uint64_t kSpanNs = 50'000'000;

  uint64_t scale_, origin_;
};

class ThreadClock {
 public:
  explicit ThreadClock(const TimeBase& base) : base_(base) {}

  uint64_t now_ns() const { return base_.now_ns(); }

  // Sleeps for all but the end, which the kernel would miss.
  void wait_until(uint64_t ns) {
    for (uint64_t now = now_ns(); now < ns; now = now_ns()) {
      if (ns - now > 2 * kSlackNs) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(ns - now - kSlackNs));
      } else {
        idle();
      }
    }
  }

  void idle() {
    idle_yield_.idle([this] { return static_cast<int64_t>(now_ns()); }, sched_yield);
  }

 private:
  static constexpr uint64_t kSlackNs = 80'000;

  const TimeBase& base_;
  IdleYield idle_yield_;
};

}  // namespace ub::ycsb
