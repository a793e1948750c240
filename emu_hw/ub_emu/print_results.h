// SPDX-License-Identifier: Apache-2.0
//
// Results as lines on a terminal.
#pragma once

#include "emu_hw/experiment/results.h"

namespace ub::emu {

// `ledgers`: with what the first operation of each series was charged for.
void print_results(const Experiment&, const ExperimentResult&, bool ledgers);

}  // namespace ub::emu
