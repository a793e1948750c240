// SPDX-License-Identifier: Apache-2.0
//
// What is measured of operations: mean_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns; operations, how many; and mops,
// the rate between the first end and the last one. Quantiles are as the reference has them: p99 is the sample with the
// number 99 n / 100, cut; those with an i (p50i_ns, p999i_ns) interpolate between two samples.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emu_hw/parts/sample.h"

namespace ub::emu {

// Not of an empty list.
std::map<std::string, double> measures_of(const std::vector<Sample>& samples);

}  // namespace ub::emu
