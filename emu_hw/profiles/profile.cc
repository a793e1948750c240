// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/profiles/profile.h"

#include "emu_hw/profiles/toml_file.h"

namespace ub::emu {
namespace {

Profile read_profile(const std::string& path) {
  const TomlFile file(path);
  file.expect_keys({"title", "stack", "set"});
  Profile profile{path, file.text("title"), file.text("stack"), file.settings("set")};
  Parameters scratch;
  for (const auto& [name, text] : profile.set)
    if (const std::string wrong = set_parameter(scratch, name, text); !wrong.empty()) file.fail("set", wrong);
  return profile;
}

}  // namespace

Profiles read_profiles(const std::string& directory) {
  Profiles all;
  for (const std::filesystem::path& path : toml_files_of(directory)) all[path.stem()] = read_profile(path);
  return all;
}

}  // namespace ub::emu
