// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "dataplane/config_checks.h"
#include "dataplane/config_key.h"
#include "dataplane/config_names.h"

extern char** environ;

namespace ub::configuration {

namespace {

// A key of a known section, or nearly a key; other SOFTUB_ variables may belong to anybody.
bool meant_for_us(const std::string& name) {
  constexpr size_t kTypingError = 2;
  return std::any_of(keys().begin(), keys().end(), [&](const Key& key) {
    const std::string known = key.env_name();
    return name.starts_with(known.substr(0, known.size() - key.name.size())) ||
           edit_distance(name, known) <= kTypingError;
  });
}

}  // namespace

void load_variables(const Environment& environment, LoadedConfig* config, std::vector<std::string>* errors) {
  std::set<std::string> unknown;
  for (std::string& name : environment.names("SOFTUB_")) {
    if (meant_for_us(name)) unknown.insert(std::move(name));
  }
  for (size_t i = 0; i < keys().size(); ++i) {
    const std::string name = keys()[i].env_name();
    unknown.erase(name);
    const auto text = environment.get(name);
    if (!text) continue;
    const std::string error = put_in_force(i, parse_text(keys()[i], *text), "env " + name, config);
    if (!error.empty()) errors->push_back("env " + name + ": " + error);
  }
  for (const std::string& name : unknown) {
    errors->push_back("env " + name + ": unknown key" + did_you_mean(name, &Key::env_name));
  }
}

}  // namespace ub::configuration

// ---- of the process --------------------------------------------------------------------------------------------

namespace ub {

std::optional<std::string> ProcessEnvironment::get(const std::string& name) const {
  const char* value = secure_getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::vector<std::string> ProcessEnvironment::names(const std::string& prefix) const {
  std::vector<std::string> found;
  if (getauxval(AT_SECURE) != 0) return found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with(prefix)) found.emplace_back(text.substr(0, text.find('=')));
  }
  return found;
}

Environment::File ProcessEnvironment::read_file(const std::string& path) const {
  constexpr size_t kMaxBytes = 1 << 20;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {FileStatus::kMissing, {}};
    return {errno == EACCES ? FileStatus::kForbidden : FileStatus::kUnreadable, strerror(errno)};
  }
  File file{FileStatus::kOk, {}};
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t bytes = read(fd, buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) file = {FileStatus::kUnreadable, strerror(errno)};
    if (bytes <= 0) break;
    file.text.append(buffer.data(), static_cast<size_t>(bytes));
    if (file.text.size() > kMaxBytes) {
      file = {FileStatus::kUnreadable, "larger than 1 MiB"};
      break;
    }
  }
  close(fd);
  return file;
}

}  // namespace ub
