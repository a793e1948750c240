// SPDX-License-Identifier: Apache-2.0
//
// One point of an experiment: two hosts, a stack, a program, in a world of its own. A point that is invalid has no
// result: operations are missing, the Core refused one or repeated a frame of a channel on a wire that loses none, a
// ledger is not the latency, or nothing happened any more.
#pragma once

#include <string>

#include "emu_hw/experiment/experiment.h"

namespace ub::emu {

struct PointResult {
  double value = 0;
  std::string invalid;  // why; "": it is not
  uint64_t events = 0;  // of the kernel
  std::string ledger;   // of the first operation that ended
};

// `overrides` come last. Throws BadExperiment: an option or a stack that there is not.
PointResult run_point(const Experiment&, const std::string& stack, double value,
                      const std::map<std::string, double>& overrides);

}  // namespace ub::emu
