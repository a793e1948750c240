// SPDX-License-Identifier: Apache-2.0
#include "dataplane/latencies.h"

#include <cmath>

namespace ub {
namespace {

LatencyFigures figures_of(const Histogram& h) {
  if (h.count() == 0) return {};
  return {.count = h.count(),
          .min = h.min(),
          .mean = static_cast<uint64_t>(std::llround(h.mean())),
          .p50 = h.percentile(50),
          .p99 = h.percentile(99),
          .p999 = h.percentile(99.9),
          .max = h.max()};
}

}  // namespace

void Latencies::clear() {
  for (auto& stage : *cells_)
    for (Histogram& h : stage) h.clear();
  misses_.fill({});
}

LatencyOfStage Latencies::figures(LatencyStage stage) const {
  LatencyOfStage of;
  of.misses = misses_[static_cast<size_t>(stage)];
  for (size_t i = 0; i < kTrafficClasses; ++i)
    of.classes[i] = figures_of(histogram(stage, static_cast<TrafficClass>(i)));
  return of;
}

}  // namespace ub
