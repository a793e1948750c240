// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/ub_emu/inputs.h"

#include <cctype>
#include <set>

#include "emu_hw/experiment/paper_order.h"
#include "emu_hw/experiment/run_point.h"
#include "ub_emu_version.h"

namespace ub::emu {
namespace {

Settings overrides_of(const std::vector<std::string>& texts) {
  Settings overrides;
  Parameters scratch;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw BadFile(text + ": give --set NAME=VALUE, as link_delay=200 or link_delay=0.2us");
    const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
    if (const std::string wrong = set_parameter(scratch, name, value); !wrong.empty()) throw BadFile("--set " + wrong);
    overrides[name] = value;
  }
  return overrides;
}

// "T6" has T6-write, and "F25" has F25a.
bool is_part_of(const Experiment& e, const std::string& id) {
  if (id.empty() || !e.id.starts_with(id) || e.id.size() == id.size()) return false;
  return std::isdigit(static_cast<unsigned char>(e.id[id.size()])) == 0;
}

// Those that are named, or, if no one has that name, its parts; all if none is named.
void keep_named(std::vector<Experiment>& experiments, const std::vector<std::string>& ids) {
  if (ids.empty()) return;
  std::set<std::string> kept;
  for (const std::string& id : ids) {
    const size_t before = kept.size();
    for (const Experiment& e : experiments)
      if (e.id == id) kept.insert(id);
    if (kept.contains(id)) continue;
    for (const Experiment& e : experiments)
      if (is_part_of(e, id)) kept.insert(e.id);
    if (kept.size() == before)
      throw BadFile("\"" + id + "\": there is no experiment of that name; `ub_emu list` lists all");
  }
  std::erase_if(experiments, [&](const Experiment& e) { return !kept.contains(e.id); });
}

}  // namespace

Inputs read_inputs(const Options& options) {
  Inputs inputs;
  inputs.overrides = overrides_of(options.sets);
  inputs.profiles = read_profiles(options.profiles_at);
  inputs.experiments = read_experiments(options.experiments_at, inputs.profiles);
  sort_as_in_paper(inputs.experiments);
  keep_named(inputs.experiments, options.ids);
  for (const Experiment& e : inputs.experiments)
    for (const Series& series : e.series)
      for (const double value : e.values) parameters_of(e, series, value, inputs.overrides);
  return inputs;
}

Provenance provenance_of(const Inputs& inputs) {
  return provenance_of(UB_VERSION " (" UB_EMU_COMMIT ")", inputs.experiments, inputs.profiles, inputs.overrides);
}

}  // namespace ub::emu
