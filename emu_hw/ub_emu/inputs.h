// SPDX-License-Identifier: Apache-2.0
//
// What a command works on: files of experiments and profiles, and values from the command line.
#pragma once

#include "emu_hw/running/provenance.h"
#include "emu_hw/ub_emu/options.h"

namespace ub::emu {

struct Inputs {
  Profiles profiles;
  std::vector<Experiment> experiments;  // in the order of the paper
  Settings overrides;
};

Inputs read_inputs(const Options&);
// With the version of this build.
Provenance provenance_of(const Inputs&);

}  // namespace ub::emu
