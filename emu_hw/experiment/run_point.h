// SPDX-License-Identifier: Apache-2.0
//
// One point of an experiment, in a world of its own. A point that is invalid has no result: operations are missing, the
// Core refused one or repeated a frame of a channel on a wire that loses none, a ledger is not the latency, or nothing
// happened any more.
#pragma once

#include "emu_hw/experiment/experiment.h"
#include "emu_hw/models/model.h"

namespace ub::emu {

// Those of the series, of its point, and the overrides. Throws BadFile.
Parameters parameters_of(const Experiment&, const Series&, double value, const Settings& overrides);

// All values are means of the repeats; the ledger and the curves are of the first of them. `overrides` come last.
// Throws BadFile: a parameter, a stack, a workload or a measure that there is not.
PointResult run_point(const Experiment&, const Series&, double value, const Settings& overrides);

// What the experiment measures; NaN if the point is invalid.
double measured(const Experiment&, const PointResult&);

}  // namespace ub::emu
