// SPDX-License-Identifier: Apache-2.0
//
// The order of the paper: its tables and figures, as they come when it is read, then what has no number in it.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/experiment/experiment.h"

namespace ub::emu {

// "F24": a figure, "T6-write": a table, with a number in the paper.
bool has_number_in_paper(const std::string& id);

void sort_as_in_paper(std::vector<Experiment>&);

}  // namespace ub::emu
