// SPDX-License-Identifier: Apache-2.0
//
// How far a series is from what was expected, and whether its class allows that.
#pragma once

#include <string>
#include <vector>

#include "emu_hw/experiment/experiment.h"

namespace ub::emu {

// The most by which a result may differ from what is expected.
double allowed_difference(Class judged_as, double expected);

enum class Verdict : uint8_t { kInClass, kOutOfClass, kNoData, kInvalid };

std::string_view name_of(Verdict verdict);

// The worst of all values.
Verdict judge(Class judged_as, const std::vector<double>& expected, const std::vector<double>& measured);

}  // namespace ub::emu
