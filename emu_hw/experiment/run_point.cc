// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/experiment/run_point.h"

#include <cmath>

namespace ub::emu {
namespace {

void set(Parameters& p, const std::string& where, const std::string& name, const std::string& text) {
  if (const std::string wrong = set_parameter(p, name, text); !wrong.empty()) throw BadFile(where + wrong);
}

void check_measure(const Experiment& e, const PointResult& result) {
  if (!result.invalid.empty() || result.values.contains(e.measure)) return;
  std::string names;
  for (const auto& [name, value] : result.values) names += (names.empty() ? "" : ", ") + name;
  throw BadFile(e.path + ": measure: this point has no " + e.measure + "; it has " + names);
}

}  // namespace

Parameters parameters_of(const Experiment& e, const Series& series, double value, const Settings& overrides) {
  Parameters p;
  const std::string where = e.path + ": ";
  for (const auto& [name, text] : series.set) set(p, where, name, text);
  set(p, where, e.sweep, text_of(value));
  for (const auto& [name, text] : overrides) {
    if (name == e.sweep) throw BadFile("--set " + name + ": this is what " + e.id + " sweeps; edit its `values`");
    set(p, "--set ", name, text);
  }
  return p;
}

PointResult run_point(const Experiment& e, const Series& series, double value, const Settings& overrides) {
  Point point{series.stack, e.workload, parameters_of(e, series, value, overrides)};
  PointResult all;
  for (uint64_t repeat = 0; repeat < e.repeats; ++repeat) {
    PointResult once;
    try {
      once = find_model(e.model)->run(point);
    } catch (const BadPoint& error) {
      throw BadFile(e.path + ": " + error.what());
    }
    check_measure(e, once);
    for (const auto& [name, each] : once.values) all.values[name] += each / static_cast<double>(e.repeats);
    all.events += once.events;
    if (all.invalid.empty()) all.invalid = once.invalid;
    if (repeat == 0) {
      all.ledger = once.ledger;
      all.begin = once.begin;
      all.curves = once.curves;
    }
    ++point.parameters.seed;
  }
  for (const auto& [name, each] : all.values)
    if (!std::isfinite(each) && all.invalid.empty()) all.invalid = name + " is no number";
  if (!all.invalid.empty()) all.values.clear();
  return all;
}

double measured(const Experiment& e, const PointResult& result) {
  const auto found = result.values.find(e.measure);
  return found == result.values.end() ? std::nan("") : found->second;
}

}  // namespace ub::emu
