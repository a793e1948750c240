// SPDX-License-Identifier: Apache-2.0
//
// Rows of the tables, from what was measured.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/histogram.h"
#include "tools/common/peer.h"
#include "tools/common/percents.h"
#include "tools/common/probe.h"

namespace ub::tools {

// Messages over time: the average, and the best window of about a millisecond.
class Meter {
 public:
  Meter() : start_(Ticks::now()), last_(start_), window_start_(start_) {}

  void add(uint32_t messages) {
    last_ = Ticks::now();
    total_ += messages;
    window_ += messages;
    if (last_ - window_start_ < window_ticks_) return;
    peak_ = std::max(peak_, static_cast<double>(window_) / static_cast<double>(last_ - window_start_));
    window_ = 0;
    window_start_ = last_;
  }
  Json row(uint64_t bytes) const {
    const double seconds = std::max<double>(static_cast<double>(last_ - start_), 1) * Ticks::ns_per_tick() / 1e9;
    const double rate = static_cast<double>(total_) / seconds;
    const double peak = std::max(rate, peak_ / Ticks::ns_per_tick() * 1e9);
    const double mib = static_cast<double>(bytes) / (1 << 20);
    return {{"bytes", bytes},
            {"iterations", total_},
            {"seconds", seconds},
            {"bw_peak_mib_s", peak * mib},
            {"bw_average_mib_s", rate * mib},
            {"msg_rate_mpps", rate / 1e6}};
  }
  uint64_t start() const { return start_; }

 private:
  uint64_t start_, last_, window_start_;
  uint64_t window_ticks_ = static_cast<uint64_t>(1e6 / Ticks::ns_per_tick());
  uint64_t total_ = 0, window_ = 0;
  double peak_ = 0;
};

// Of times in ticks, each of which is that of `parts` parts (2: half a round trip counts).
inline Json latency_row(const Histogram& times, uint64_t bytes, int parts) {
  const double us_per_tick = Ticks::ns_per_tick() / 1000 / parts;
  const auto us = [=](double ticks) { return ticks * us_per_tick; };
  const auto percentile = [&](double p) { return us(static_cast<double>(times.percentile(p))); };
  Json percentiles = Json::array();
  for (const double p : kDrawnPercents) percentiles.push_back({p, percentile(p)});
  return {{"bytes", bytes},
          {"iterations", times.count()},
          {"t_min_us", us(static_cast<double>(times.min()))},
          {"t_max_us", us(static_cast<double>(times.max()))},
          {"t_typical_us", percentile(50)},
          {"t_avg_us", us(times.mean())},
          {"t_stdev_us", us(times.stddev())},
          {"p99_us", percentile(99)},
          {"p99_9_us", percentile(99.9)},
          {"p99_99_us", percentile(99.99)},
          {"p99_999_us", percentile(99.999)},
          {"percentiles_us", percentiles}};
}

}  // namespace ub::tools
