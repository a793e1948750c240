// SPDX-License-Identifier: Apache-2.0
//
// Results beside what is expected: how far a series is off, and how many series have which verdict.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emu_hw/experiment/results.h"

namespace ub::emu {

// The value that is furthest off, in parts of what its class allows.
struct Furthest {
  double at;  // of what is swept
  double expected, measured;
  double percent() const { return expected == 0 ? 0 : (measured - expected) / expected * 100; }
};
// Of a series with data and no invalid point.
Furthest furthest_of(const Experiment&, const Series&, const SeriesResult&);

// Verdicts of series; of what is not reproducible, experiments.
using Counts = std::map<Verdict, size_t>;
Counts counts_of(const std::vector<Experiment>&, const std::vector<ExperimentResult>&);

// Names of the series ("F44 ldst") for each of those who decide in them: "rule.loss", "core". Without those of which no
// file says it.
std::map<std::string, std::vector<std::string>> deciders_of(const std::vector<Experiment>&);

}  // namespace ub::emu
