// SPDX-License-Identifier: Apache-2.0
//
// Results of a command's experiments: they are run, or read from a file that another run has written.
#pragma once

#include "emu_hw/running/results_file.h"
#include "emu_hw/ub_emu/inputs.h"

namespace ub::emu {

// Runs the shard, or reads --results. Throws BadFile if that file is of other experiments.
ResultsFile results_file_of(const Inputs&, const Options&);

// 1 if a series is out of its class or invalid.
int exit_code_of(const std::vector<ExperimentResult>&);

}  // namespace ub::emu
