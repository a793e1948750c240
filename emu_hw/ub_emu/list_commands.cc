// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "emu_hw/models/model.h"
#include "emu_hw/ub_emu/inputs.h"
#include "emu_hw/ub_emu/options.h"

namespace ub::emu {

int list_experiments(const Options& options) {
  for (const Experiment& e : read_inputs(options).experiments) {
    if (e.not_reproducible.empty())
      std::printf("%-10s %c  %s, by %s\n", e.id.c_str(), static_cast<char>(e.judged_as), e.title.c_str(),
                  e.sweep.c_str());
    else
      std::printf("%-10s -  %s: not here\n", e.id.c_str(), e.title.c_str());
  }
  return 0;
}

// As TOML.
int list_parameters() {
  for (const ParameterInfo& p : all_parameters()) {
    const std::string words = p.words;
    const std::string value = words.empty() ? p.default_text : '"' + p.default_text + '"';
    std::printf("%-22s = %8s  # %s%s%s%s%s\n", p.name, value.c_str(), p.unit, *p.unit == 0 ? "" : "; ", p.meaning,
                words.empty() ? "" : ": ", words.c_str());
  }
  return 0;
}

int list_models() {
  for (const Model& model : all_models())
    std::printf("%-16s %s\n", std::string(model.name).c_str(), std::string(model.meaning).c_str());
  return 0;
}

int list_profiles(const Options& options) {
  for (const auto& [name, profile] : read_profiles(options.profiles_at)) {
    std::printf("%-16s %s; stack %s", name.c_str(), profile.title.c_str(), profile.stack.c_str());
    for (const auto& [parameter, text] : profile.set) std::printf(", %s = %s", parameter.c_str(), text.c_str());
    std::printf("\n");
  }
  return 0;
}

}  // namespace ub::emu
