// SPDX-License-Identifier: Apache-2.0
//
// All data as CSV: a line for each value of each point, and one for each point of a curve.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/experiment/results.h"

namespace ub::emu {

// A cell: in quotation marks if it has a comma, a quotation mark or a line feed.
std::string csv_cell(const std::string& text);

// experiment, series, stack, class, sweep, x, measure, result, expected, verdict, invalid. What is expected stands
// beside the measure that is compared; an invalid point has one line, with the reason and no result.
std::string csv_of_values(const std::vector<Experiment>&, const std::vector<ExperimentResult>&);
// experiment, series, sweep, value, curve, x_title, y_title, x, y.
std::string csv_of_curves(const std::vector<Experiment>&, const std::vector<ExperimentResult>&);

}  // namespace ub::emu
