// SPDX-License-Identifier: Apache-2.0
//
// When operations are meant to begin, with a target rate for all threads together: each at its time, however late those
// before it are. A thread that is late catches up, and the time for which an operation waited counts as intended
// latency (no coordinated omission). Threads take turns.
#pragma once

#include <cstdint>

namespace ub::ycsb {

class Schedule {
 public:
  // `rate`: operations each second; 0: each is meant to begin when it does.
  Schedule(double rate, uint32_t threads, uint32_t thread, uint64_t start_ns)
      : interval_ns_(rate > 0 ? 1e9 * threads / rate : 0),
        first_ns_(static_cast<double>(start_ns) + interval_ns_ * thread / threads) {}

  bool has_target() const { return interval_ns_ > 0; }
  // Of operation `index` of this thread.
  uint64_t intended_ns(uint64_t index) const {
    return static_cast<uint64_t>(first_ns_ + interval_ns_ * static_cast<double>(index));
  }

 private:
  double interval_ns_, first_ns_;
};

}  // namespace ub::ycsb
