// SPDX-License-Identifier: Apache-2.0
//
// The values of all parameters of a run (parameters.def). Plain data; a profile or the command line changes members by
// their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu_hw/kernel/virtual_time.h"

namespace ub::emu {

struct Parameters {
#define EMU_TIME(name, default_ps, meaning) Span name{default_ps};
#define EMU_COUNT(name, default_value, most, unit, meaning) uint64_t name = default_value;
#define EMU_RATE(name, default_gbps, meaning) uint64_t name = default_gbps;
#define EMU_CHANCE(name, default_chance, meaning) double name = default_chance;
#include "emu_hw/profiles/parameters.def"
#undef EMU_TIME
#undef EMU_COUNT
#undef EMU_RATE
#undef EMU_CHANCE
};

struct ParameterInfo {
  const char* name;
  const char* unit;
  double default_value;
  const char* meaning;
};
const std::vector<ParameterInfo>& all_parameters();

// In the unit of the parameter. Returns what is wrong, with the remedy; or "".
std::string set_parameter(Parameters&, std::string_view name, double value);

}  // namespace ub::emu
