// SPDX-License-Identifier: Apache-2.0
//
// A JSON file that appears whole or not at all. That it can be written is tried when it is opened.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace ub::tools {

class JsonFile {
 public:
  explicit JsonFile(const std::string& path);
  ~JsonFile();  // without write(): nothing has changed
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;

  void write(const nlohmann::json& document);

 private:
  std::string path_, temporary_;
  std::FILE* file_ = nullptr;
};

}  // namespace ub::tools
