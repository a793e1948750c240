// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/profiles/parameters.h"

#include <algorithm>
#include <cmath>

namespace ub::emu {
namespace {

constexpr double kMostNs = 1e12;  // a quarter of an hour of virtual time for one step is a mistake

// False: it is no number of nanoseconds.
bool to_span(double ns, Span* span) {
  if (!(ns >= 0 && ns <= kMostNs)) return false;
  span->ps = static_cast<uint64_t>(std::llround(ns * 1000));
  return true;
}

bool to_count(double value, double most, uint64_t* count) {
  if (!(value >= 1 && value <= most) || value != std::floor(value)) return false;
  *count = static_cast<uint64_t>(value);
  return true;
}

bool to_chance(double value, double* chance) {
  if (!(value >= 0 && value <= 1)) return false;
  *chance = value;
  return true;
}

}  // namespace

const std::vector<ParameterInfo>& all_parameters() {
  static const std::vector<ParameterInfo> all = {
#define EMU_TIME(name, default_ps, meaning) {#name, "ns", static_cast<double>(default_ps) / 1000, meaning},
#define EMU_COUNT(name, default_value, most, unit, meaning) {#name, unit, default_value, meaning},
#define EMU_RATE(name, default_gbps, meaning) {#name, "Gb/s", default_gbps, meaning},
#define EMU_CHANCE(name, default_chance, meaning) {#name, "", default_chance, meaning},
#include "emu_hw/profiles/parameters.def"
#undef EMU_TIME
#undef EMU_COUNT
#undef EMU_RATE
#undef EMU_CHANCE
  };
  return all;
}

std::string set_parameter(Parameters& p, std::string_view name, double value) {
  const std::string wrong = std::string(name) + " = " + std::to_string(value);
#define EMU_TIME(member, default_ps, meaning) \
  if (name == #member) return to_span(value, &p.member) ? "" : wrong + ": give nanoseconds from 0 to 1e12";
#define EMU_COUNT(member, default_value, most, unit, meaning) \
  if (name == #member)                                        \
    return to_count(value, most, &p.member) ? "" : wrong + ": give a whole number from 1 to " #most;
#define EMU_RATE(member, default_gbps, meaning) \
  if (name == #member) return to_count(value, 1e6, &p.member) ? "" : wrong + ": give whole Gb/s, 1 to 1000000";
#define EMU_CHANCE(member, default_chance, meaning) \
  if (name == #member) return to_chance(value, &p.member) ? "" : wrong + ": give a number from 0 to 1";
#include "emu_hw/profiles/parameters.def"
#undef EMU_TIME
#undef EMU_COUNT
#undef EMU_RATE
#undef EMU_CHANCE
  return std::string(name) + ": there is no parameter of that name; `ub_emu parameters` lists all";
}

}  // namespace ub::emu
