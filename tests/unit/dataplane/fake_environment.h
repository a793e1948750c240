// SPDX-License-Identifier: Apache-2.0
// fake_environment.h - where a configuration comes from, in the hands of a test: variables and files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/config.h"

namespace ub {

class FakeEnvironment final : public Environment {
 public:
  std::map<std::string, std::string> variables = {{"HOME", "/users/ann"}, {"PATH", "/bin"}};
  std::map<std::string, File> files;

  void add_file(const std::string& path, const std::string& text) { files[path] = {FileStatus::kOk, text}; }

  std::optional<std::string> get(const std::string& name) const override {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> names(const std::string& prefix) const override {
    std::vector<std::string> found;
    for (const auto& [name, value] : variables) {
      if (name.starts_with(prefix)) found.push_back(name);
    }
    return found;
  }
  File read_file(const std::string& path) const override {
    const auto found = files.find(path);
    return found == files.end() ? File{} : found->second;
  }
};

}  // namespace ub
