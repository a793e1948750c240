// SPDX-License-Identifier: Apache-2.0
//
// What came out of an experiment: each series with its points, in the order of the sweep, and its verdict.
#pragma once

#include <vector>

#include "emu_hw/experiment/run_point.h"
#include "emu_hw/experiment/verdict.h"

namespace ub::emu {

struct SeriesResult {
  std::vector<PointResult> points;
  Judgement judgement{Verdict::kNoData};
};

struct ExperimentResult {
  std::vector<SeriesResult> series;  // as in the experiment; none if it is not reproducible
};

inline std::vector<double> measured(const Experiment& e, const SeriesResult& result) {
  std::vector<double> all;
  for (const PointResult& point : result.points) all.push_back(measured(e, point));
  return all;
}

}  // namespace ub::emu
