// SPDX-License-Identifier: Apache-2.0
//
// Jobs: all points of some experiments in a fixed order, numbered from 0, and the part of them that a process runs.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/experiment/experiment.h"

namespace ub::emu {

// A point, by its place in the experiments.
struct Job {
  size_t experiment, series, value;
};

// Experiment by experiment, series by series, value by value.
std::vector<Job> jobs_of(const std::vector<Experiment>&);

// The jobs number - 1, number - 1 + count, ...
struct Shard {
  size_t number = 1, count = 1;

  bool has(size_t job) const { return job % count == number - 1; }
  std::string text() const { return std::to_string(number) + "/" + std::to_string(count); }
  bool operator==(const Shard&) const = default;
};
// "2/8": the second of eight. Throws BadFile.
Shard shard_of(const std::string& text);

}  // namespace ub::emu
