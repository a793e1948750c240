// SPDX-License-Identifier: Apache-2.0
#include "tools/common/json_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/common/tool_error.h"

namespace ub::tools {
namespace {

ToolError cannot_write(const std::string& path, int error) {
  return ToolError(fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

}  // namespace

JsonFile::JsonFile(const std::string& path) : path_(path), temporary_(fmt::format("{}.{}.tmp", path, getpid())) {
  std::error_code error;
  if (const auto there = std::filesystem::status(path, error);
      std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    throw ToolError(fmt::format("cannot write {}: not a regular file", path));
  }
  file_ = std::fopen(temporary_.c_str(), "wxe");
  if (file_ == nullptr) throw cannot_write(temporary_, errno);
}

JsonFile::~JsonFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::remove(temporary_.c_str());
}

void JsonFile::write(const nlohmann::json& document) {
  const std::string text = document.dump(2) + '\n';
  const bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0;
  if (!written || std::rename(temporary_.c_str(), path_.c_str()) != 0) throw cannot_write(path_, errno);
  std::fclose(file_);
  file_ = nullptr;
}

}  // namespace ub::tools
