// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/running/whole_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "emu_hw/profiles/toml_file.h"

namespace ub::emu {
namespace {

[[noreturn]] void fail(const std::string& path) { throw BadFile(path + ": " + std::strerror(errno)); }

// `name` is for the message.
void write_as(const std::string& name, const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail(name);
}

// It can be replaced by another file: there is none yet, or it is a regular one.
bool is_replaceable(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::symlink_status(path, error).type();
  return type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::regular;
}

std::string temporary_of(const std::string& path) { return path + "." + std::to_string(getpid()); }

// Removes a file if something goes wrong until it is kept.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) std::remove(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::string& path() const { return path_; }
  void keep_as(const std::string& path) {
    if (std::rename(path_.c_str(), path.c_str()) != 0) fail(path);
    path_.clear();
  }

 private:
  std::string path_;
};

}  // namespace

std::string read_whole(const std::string& path) try {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) fail(path);
  return text;
} catch (const std::ios_base::failure&) {  // a directory, or a disk that fails
  fail(path);
}

void write_whole(const std::string& path, const std::string& text) {
  if (!is_replaceable(path)) return write_as(path, path, text);
  Temporary temporary(temporary_of(path));
  write_as(path, temporary.path(), text);
  temporary.keep_as(path);
}

void expect_writable(const std::string& path) {
  if (is_replaceable(path)) {
    const Temporary temporary(temporary_of(path));
    return write_as(path, temporary.path(), "");
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw BadFile(path + ": is a directory; name a file");
  const bool is_link_to_nothing = !std::filesystem::exists(path, error);  // the file will be made
  if (!is_link_to_nothing && access(path.c_str(), W_OK) != 0) fail(path);
}

}  // namespace ub::emu
