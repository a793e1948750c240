// SPDX-License-Identifier: Apache-2.0
//
// Series with data, how far they are off, and a table of the verdicts.
#pragma once

#include "emu_hw/experiment/comparison.h"

namespace ub::emu {

// How far a series is out of its class: "3 times what the class allows".
std::string in_parts_of_allowed(const Judgement&);
void print_counts(const Counts&);
void print_comparison(const std::vector<Experiment>&, const std::vector<ExperimentResult>&);

}  // namespace ub::emu
