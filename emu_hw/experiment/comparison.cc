// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/experiment/comparison.h"

#include <cmath>

namespace ub::emu {

Furthest furthest_of(const Experiment& e, const Series& series, const SeriesResult& result) {
  const std::vector<double> values = measured(e, result);
  Furthest furthest{};
  double most = -1;
  for (size_t i = 0; i < series.expected.size(); ++i) {
    const double part = part_of_allowed(e, series, values[i], series.expected[i]);
    if (std::isnan(series.expected[i]) || part <= most) continue;
    most = part;
    furthest = {e.values[i], series.expected[i], values[i]};
  }
  return furthest;
}

Counts counts_of(const std::vector<Experiment>& experiments, const std::vector<ExperimentResult>& results) {
  Counts counts;
  for (const Experiment& e : experiments)
    if (!e.not_reproducible.empty()) ++counts[Verdict::kNotReproducible];
  for (const ExperimentResult& result : results)
    for (const SeriesResult& series : result.series) ++counts[series.judgement.verdict];
  return counts;
}

std::map<std::string, std::vector<std::string>> deciders_of(const std::vector<Experiment>& experiments) {
  std::map<std::string, std::vector<std::string>> deciders;
  for (const Experiment& e : experiments)
    for (const Series& series : e.series)
      if (!series.decided_by.empty()) deciders[series.decided_by].push_back(e.id + " " + series.name);
  return deciders;
}

}  // namespace ub::emu
