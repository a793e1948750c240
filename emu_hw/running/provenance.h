// SPDX-License-Identifier: Apache-2.0
//
// Where results come from: who finds the same again needs no more.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emu_hw/experiment/experiment.h"

namespace ub::emu {

struct Provenance {
  std::string version;                        // of the program, with the commit
  std::string seed;                           // of all points that set no other one
  std::map<std::string, std::string> inputs;  // files of experiments and profiles, with their SHA-256
  Settings overrides;

  bool operator==(const Provenance&) const = default;
};

Provenance provenance_of(const std::string& version, const std::vector<Experiment>&, const Profiles&,
                         const Settings& overrides);

}  // namespace ub::emu
