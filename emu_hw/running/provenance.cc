// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/provenance.h"

#include <filesystem>

#include "emu_hw/running/sha256.h"
#include "emu_hw/running/whole_file.h"

namespace ub::emu {
namespace {

void add_input(Provenance& provenance, const char* kind, const std::string& path) {
  const std::string name = std::string(kind) + "/" + std::filesystem::path(path).filename().string();
  provenance.inputs[name] = sha256_of(read_whole(path));
}

}  // namespace

Provenance provenance_of(const std::string& version, const std::vector<Experiment>& experiments,
                         const Profiles& profiles, const Settings& overrides) {
  Provenance provenance{version, text_of(static_cast<double>(Parameters().seed)), {}, overrides};
  if (const auto seed = overrides.find("seed"); seed != overrides.end()) provenance.seed = seed->second;
  for (const Experiment& e : experiments) add_input(provenance, "experiments", e.path);
  for (const auto& [name, profile] : profiles) add_input(provenance, "profiles", profile.path);
  return provenance;
}

}  // namespace ub::emu
