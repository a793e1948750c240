// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/properties.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tools/common/tool_error.h"

namespace ub::ycsb {
namespace {

using tools::kExitUsage;
using tools::ToolError;

constexpr std::string_view kBlank = " \t\r\f";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// A line that ends with an odd number of backslashes goes on in the next one.
bool goes_on(std::string_view line) {
  const size_t last = line.find_last_not_of('\\');
  return (line.size() - (last == std::string_view::npos ? 0 : last + 1)) % 2 == 1;
}

template <class Number>
bool parse(const std::string& text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void Properties::read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file || text.bad()) {
    throw ToolError(kExitUsage, fmt::format("-P {}: cannot be read: {}", path, std::strerror(errno)));
  }
  read_text(text.str(), path);
}

void Properties::read_text(std::string_view text, const std::string& name) {
  std::string logical;
  size_t number = 0, begin = 0;  // lines; the one that the logical line begins with
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    ++number;
    if (logical.empty()) {
      if (line.empty() || line[0] == '#' || line[0] == '!') continue;
      begin = number;
    }
    if (goes_on(line) && !text.empty()) {
      logical += line.substr(0, line.size() - 1);
      continue;
    }
    logical += line;
    // The name ends at the first '=' or ':', or else at a blank.
    size_t split = logical.find_first_of("=:");
    if (split == std::string::npos) split = logical.find_first_of(kBlank);
    const std::string_view all = logical;
    const std::string_view key = trimmed(all.substr(0, split));
    const std::string origin = fmt::format("{}:{}", name, begin);
    if (key.empty()) throw ToolError(kExitUsage, fmt::format("{}: '{}' has no name before the =", origin, logical));
    set(std::string(key), std::string(split == std::string::npos ? "" : trimmed(all.substr(split + 1))), origin);
    logical.clear();
  }
}

void Properties::set_pair(const std::string& pair) {
  const size_t split = pair.find('=');
  if (split == std::string::npos || split == 0) {
    throw ToolError(kExitUsage, fmt::format("-p {}: it needs the form name=value", pair));
  }
  set(std::string(trimmed(pair.substr(0, split))), std::string(trimmed(pair.substr(split + 1))), "command line");
}

void Properties::set(const std::string& name, const std::string& value, const std::string& origin) {
  entries_[name] = {value, origin};
}

const Properties::Entry* Properties::find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return nullptr;
  found->second.read = true;
  return &found->second;
}

std::string Properties::text(const std::string& name, const std::string& otherwise) const {
  const Entry* entry = find(name);
  return entry == nullptr ? otherwise : entry->value;
}

std::string Properties::choice(const std::string& name, const std::string& otherwise,
                               std::initializer_list<const char*> choices) const {
  const std::string value = text(name, otherwise);
  std::string names;
  for (const char* choice : choices) {
    if (value == choice) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", choice);
  }
  throw ToolError(kExitUsage, fmt::format("{}: it must be one of {}", describe(name), names));
}

uint64_t Properties::number(const std::string& name, uint64_t otherwise, uint64_t least, uint64_t most) const {
  const Entry* entry = find(name);
  if (entry == nullptr) return otherwise;
  uint64_t value = 0;
  if (!parse(entry->value, &value) || value < least || value > most) {
    const std::string range =
        most == UINT64_MAX ? fmt::format("of at least {}", least) : fmt::format("from {} to {}", least, most);
    throw ToolError(kExitUsage, fmt::format("{}: it must be a whole number {}", describe(name), range));
  }
  return value;
}

double Properties::real(const std::string& name, double otherwise, double least, double most) const {
  const Entry* entry = find(name);
  if (entry == nullptr) return otherwise;
  double value = 0;
  if (!parse(entry->value, &value) || !(value >= least && value <= most)) {
    throw ToolError(kExitUsage, fmt::format("{}: it must be a number from {} to {}", describe(name), least, most));
  }
  return value;
}

bool Properties::flag(const std::string& name, bool otherwise) const {
  return choice(name, otherwise ? "true" : "false", {"true", "false"}) == "true";
}

std::string Properties::describe(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return name;
  return fmt::format("{}={} ({})", name, found->second.value, found->second.origin);
}

std::vector<std::string> Properties::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (!entry.read) names.push_back(name);
  }
  return names;
}

std::map<std::string, std::string> Properties::values() const {
  std::map<std::string, std::string> values;
  for (const auto& [name, entry] : entries_) values[name] = entry.value;
  return values;
}

}  // namespace ub::ycsb
