// SPDX-License-Identifier: Apache-2.0
//
// Runs the points of experiments in worker processes. The results do not depend on how many there are.
#pragma once

#include <functional>

#include "emu_hw/running/results_file.h"

namespace ub::emu {

struct RunOptions {
  size_t workers = 1;
  Shard shard;
  // After each end: how many have ended, of how many, and which one it was. May be empty.
  std::function<void(size_t ended, size_t all, const Job&)> on_progress;
};

// Results of the shard's points. A point whose process dies is invalid, with the reason. Throws BadFile, as
// run_point(), and Interrupted.
std::map<size_t, Json> run_jobs(const std::vector<Experiment>&, const Settings& overrides, const RunOptions&);

}  // namespace ub::emu
