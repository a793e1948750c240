// SPDX-License-Identifier: Apache-2.0
//
// Is a series as close to what is expected as its class asks for?
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "emu_hw/experiment/experiment.h"

namespace ub::emu {

enum class Verdict : uint8_t {
  kInClass,
  kExplained,        // out of class R or S, by a mechanism that the file names
  kOutOfClass,
  kNoData,
  kBeside,           // shown beside another series, and not judged
  kNotReproducible,  // of an experiment, not of a series
  kInvalid,
};

std::string_view name_of(Verdict verdict);
// Does the command that runs it end with an error?
constexpr bool is_failure(Verdict verdict) { return verdict == Verdict::kOutOfClass || verdict == Verdict::kInvalid; }

// The most by which a result may differ from what is expected.
double allowed_difference(const Experiment&, const Series&, double expected);
// By how much it does differ, in parts of that; 1 and less is in class.
double part_of_allowed(const Experiment&, const Series&, double measured, double expected);

struct Judgement {
  Verdict verdict;
  double worst = 0;  // of all values: the difference, in parts of what is allowed; 0 without data
};

// By the value that is furthest off. `measured`: NaN where a point is invalid.
Judgement judge(const Experiment&, const Series&, const std::vector<double>& measured);

}  // namespace ub::emu
