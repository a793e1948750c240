// SPDX-License-Identifier: Apache-2.0
//
// The figures of an experiment: its results beside the published data, and the curves of its points.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/experiment/results.h"
#include "emu_hw/report/svg.h"

namespace ub::emu {

struct Figure {
  std::string name;  // of its file: "f26", "f45-window"
  Svg svg;
};

// None if the experiment is not reproducible.
std::vector<Figure> figures_of(const Experiment&, const ExperimentResult&);

}  // namespace ub::emu
