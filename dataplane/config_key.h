// SPDX-License-Identifier: Apache-2.0
//
// The keys of the configuration, one for each line of config_keys.def, and their values as text: numbers with units,
// lists, choices. Used by the checks and by the sources of a configuration; nobody else needs it (config.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dataplane/config.h"

namespace ub::configuration {

using StringList = std::vector<std::string>;

enum class KeyType { String, Bool, U32, Bytes, Duration, List };
using Value = std::variant<std::string, bool, uint64_t, std::chrono::nanoseconds, StringList>;

// One line of config_keys.def with access to its field.
struct Key {
  std::string_view section, name;
  KeyType type;
  std::string_view default_text, min, max, rule, unit, help;
  Value (*get)(const Config&);
  void (*set)(Config&, Value&&);

  std::string full_name() const;  // "section.key"
  std::string env_name() const;   // "SOFTUB_SECTION_KEY"
};

// In the order of config_keys.def; their numbers are those of LoadedConfig::sources.
std::span<const Key> keys();

// A value, or a sentence that says what is wrong with it.
struct Parsed {
  Value value;
  std::string error;
};
// As it stands in an environment variable. Its range is not looked at.
Parsed parse_text(const Key& key, std::string_view text);
// As one would write it in an environment variable.
std::string format(const Key& key, const Value& value);

// ---- what a key takes, for people ----
// What a value has to be one of; empty: anything.
StringList choices(const Key& key);
std::string range_text(const Key& key);
std::string in_unit(const Key& key);
// A sentence.
std::string out_of_range(const Key& key, std::string_view shown);

// ---- text ----
std::string join(const StringList& list, std::string_view separator);
std::string quoted(std::string_view text);
// Also because `"literal" + std::string()` makes gcc 12 warn of overlapping copies that do not exist.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  (text.append(parts), ...);
  return text;
}

}  // namespace ub::configuration
