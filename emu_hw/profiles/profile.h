// SPDX-License-Identifier: Apache-2.0
//
// A profile: a stack with values of some parameters, under a name. Files of emu_hw/profiles.
#pragma once

#include <map>
#include <string>

#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

struct Profile {
  std::string path;  // of the file
  std::string title;
  std::string stack;
  Settings set;
};

using Profiles = std::map<std::string, Profile>;

// All files (*.toml) of a directory; the name of one is that of its file. Throws BadFile, which names file, key and
// remedy.
Profiles read_profiles(const std::string& directory);

}  // namespace ub::emu
