// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/whole_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "emu_hw/profiles/toml_file.h"

namespace ub::emu {
namespace {

[[noreturn]] void fail(const std::string& path) { throw BadFile(path + ": " + std::strerror(errno)); }

}  // namespace

std::string read_whole(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) fail(path);
  return text;
}

void write_whole(const std::string& path, const std::string& text) {
  const std::string temporary = path + "." + std::to_string(getpid());
  errno = 0;
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail(path);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    std::remove(temporary.c_str());
    errno = reason;
    fail(path);
  }
}

void make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw BadFile(path + ": " + error.message());
}

void expect_writable(const std::string& path) {
  const std::string temporary = path + "." + std::to_string(getpid());
  errno = 0;
  if (!std::ofstream(temporary, std::ios::binary)) fail(path);
  std::remove(temporary.c_str());
}

}  // namespace ub::emu
