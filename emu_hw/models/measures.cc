// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/models/measures.h"

#include <algorithm>
#include <cmath>

namespace ub::emu {
namespace {

constexpr double ns(uint64_t ps) { return static_cast<double>(ps) / 1000; }

double interpolated(const std::vector<uint64_t>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double between = at - std::floor(at);
  return ns(sorted[below]) * (1 - between) + ns(sorted[above]) * between;
}

}  // namespace

std::map<std::string, double> measures_of(const std::vector<Sample>& samples) {
  std::vector<uint64_t> sorted;
  uint64_t sum = 0;
  for (const Sample& sample : samples) {
    sorted.push_back(sample.latency().ps);
    sum += sorted.back();
  }
  std::sort(sorted.begin(), sorted.end());
  const size_t count = sorted.size();
  std::map<std::string, double> values = {
      {"mean_ns", ns(sum) / static_cast<double>(count)},
      {"p50_ns", ns(sorted[count / 2])},
      {"p90_ns", ns(sorted[count * 90 / 100])},
      {"p99_ns", ns(sorted[count * 99 / 100])},
      {"p999_ns", ns(sorted[count * 999 / 1000])},
      {"max_ns", ns(sorted.back())},
      {"p50i_ns", interpolated(sorted, 0.5)},
      {"p999i_ns", interpolated(sorted, 0.999)},
      {"operations", static_cast<double>(count)},
  };
  const Span between = samples.back().ended - samples.front().ended;
  if (between.ps != 0) values["mops"] = static_cast<double>(count - 1) * 1000 / between.ns();
  return values;
}

}  // namespace ub::emu
