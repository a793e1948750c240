// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/ub_emu/inputs.h"

#include <algorithm>

#include "emu_hw/experiment/paper_order.h"
#include "ub_emu_version.h"

namespace ub::emu {
namespace {

Settings overrides_of(const std::vector<std::string>& texts) {
  Settings overrides;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw BadFile(text + ": give --set NAME=VALUE, as link_delay=200 or link_delay=0.2us");
    overrides[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return overrides;
}

// "T6" names T6-write, too.
bool is_named(const Experiment& e, const std::string& id) { return e.id == id || e.id.starts_with(id + "-"); }

// Those that are named; all if none is.
void keep_named(std::vector<Experiment>& experiments, const std::vector<std::string>& ids) {
  if (ids.empty()) return;
  for (const std::string& id : ids)
    if (std::none_of(experiments.begin(), experiments.end(), [&](const Experiment& e) { return is_named(e, id); }))
      throw BadFile(id + ": there is no experiment of that name; `ub_emu list` lists all");
  std::erase_if(experiments, [&](const Experiment& e) {
    return std::none_of(ids.begin(), ids.end(), [&](const std::string& id) { return is_named(e, id); });
  });
}

}  // namespace

Inputs read_inputs(const Options& options) {
  Inputs inputs;
  inputs.profiles = read_profiles(options.profiles_at);
  inputs.experiments = read_experiments(options.experiments_at, inputs.profiles);
  sort_as_in_paper(inputs.experiments);
  keep_named(inputs.experiments, options.ids);
  inputs.overrides = overrides_of(options.sets);
  return inputs;
}

Provenance provenance_of(const Inputs& inputs) {
  return provenance_of(UB_VERSION " (" UB_EMU_COMMIT ")", inputs.experiments, inputs.profiles, inputs.overrides);
}

}  // namespace ub::emu
