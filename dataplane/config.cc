// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

// Header only: do not compile this file with the flags of tomlplusplus.pc, which ask for its shared library.
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "dataplane/eid.h"

extern char** environ;

namespace ub {
namespace {

using std::chrono::nanoseconds;
using StringList = std::vector<std::string>;

enum class KeyType { String, Bool, U32, Bytes, Duration, List };
using Value = std::variant<std::string, bool, uint64_t, nanoseconds, StringList>;

// One line of config_keys.def with access to its field.
struct Key {
  std::string_view section, name;
  KeyType type;
  std::string_view default_text, min, max, rule, unit, help;
  Value (*get)(const Config&);
  void (*set)(Config&, Value&&);

  std::string full_name() const { return std::string(section) + "." + std::string(name); }
  std::string env_name() const {
    std::string text = std::string("SOFTUB_").append(section).append("_").append(name);
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
  }
};

Value to_value(const std::string& field) { return field; }
Value to_value(bool field) { return field; }
Value to_value(uint32_t field) { return uint64_t{field}; }
Value to_value(uint64_t field) { return field; }
Value to_value(nanoseconds field) { return field; }
Value to_value(const StringList& field) { return field; }

void from_value(Value&& value, uint32_t& field) {
  field = static_cast<uint32_t>(std::get<uint64_t>(value));  // check_value has seen the range
}
template <typename Field>
void from_value(Value&& value, Field& field) {
  field = std::get<Field>(std::move(value));
}

constexpr Key kKeys[] = {
#define UB_CONFIG_KEY(section, key, type, default_text, min, max, rule, unit, help) \
  {#section,                                                                        \
   #key,                                                                            \
   KeyType::type,                                                                   \
   default_text,                                                                    \
   min,                                                                             \
   max,                                                                             \
   rule,                                                                            \
   unit,                                                                            \
   help,                                                                            \
   [](const Config& config) { return to_value(config.section.key); },               \
   [](Config& config, Value&& value) { from_value(std::move(value), config.section.key); }},
#include "dataplane/config_keys.def"
#undef UB_CONFIG_KEY
};
constexpr size_t kKeyCount = std::size(kKeys);

// -- text <-> value

struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr Unit kTimeUnits[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}};
constexpr Unit kByteUnits[] = {{"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}, {"B", 1}};

template <size_t N>
std::string format_with_unit(uint64_t number, const Unit (&units)[N]) {
  if (number == 0) return "0";
  const Unit* unit = std::find_if(std::begin(units), std::end(units),
                                  [&](const Unit& candidate) { return number % candidate.factor == 0; });
  return std::to_string(number / unit->factor) + std::string(unit->name);
}

std::string join(const StringList& list, std::string_view separator) {
  std::string text;
  for (const std::string& element : list) text += (text.empty() ? "" : std::string(separator)) + element;
  return text;
}

StringList split(std::string_view text, char separator) {
  StringList list;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    list.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

// As one would write it in an environment variable.
std::string format(const Key& key, const Value& value) {
  switch (key.type) {
    case KeyType::String:
      return std::get<std::string>(value);
    case KeyType::Bool:
      return std::get<bool>(value) ? "true" : "false";
    case KeyType::U32:
      return std::to_string(std::get<uint64_t>(value));
    case KeyType::Bytes:
      return format_with_unit(std::get<uint64_t>(value), kByteUnits);
    case KeyType::Duration:
      return format_with_unit(static_cast<uint64_t>(std::get<nanoseconds>(value).count()), kTimeUnits);
    case KeyType::List:
      return join(std::get<StringList>(value), ",");
  }
  return {};
}

// Also because `"literal" + std::string()` makes gcc 12 warn of overlapping copies that do not exist.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  (text.append(parts), ...);
  return text;
}

std::string quoted(std::string_view text) { return concat("\"", text, "\""); }

StringList choices(const Key& key) {
  constexpr std::string_view kPrefix = "choice:";
  if (!key.rule.starts_with(kPrefix)) return {};
  return split(key.rule.substr(kPrefix.size()), '|');
}

std::string range_text(const Key& key) {
  if (key.rule == "ip") return "IP address";
  if (key.rule == "ip=ip") return "EID=IP";
  if (key.rule == "ip=mac") return "IP=MAC";
  if (key.rule == "ip/prefix@name") return "IP/prefix, IP/prefix@device";
  if (key.rule == "path") return "absolute path";
  if (key.rule == "core") return "CPU number";
  if (key.rule == "name") return "1 to 63 of A-Z a-z 0-9 _ . -";
  if (key.type == KeyType::Bool) return "true, false";
  if (key.rule.starts_with("choice:")) return join(choices(key), ", ");
  if (key.min.empty()) return {};
  const std::string range = std::string(key.min) + ".." + std::string(key.max);
  if (key.rule == "pow2") return range + ", power of two";
  return key.rule.empty() ? range : range + ", " + std::string(key.rule);
}

std::string in_unit(const Key& key) { return key.unit.empty() ? std::string() : concat(" (", key.unit, ")"); }

std::string out_of_range(const Key& key, std::string_view shown) {
  const std::string subject = key.full_name() + " = " + std::string(shown);
  if (key.rule.starts_with("choice:")) {
    return subject + ": expected one of " + range_text(key) + in_unit(key);
  }
  return subject + " is out of range " + std::string(key.min) + ".." + std::string(key.max) + in_unit(key);
}

// A value, or a sentence that says what is wrong with it.
struct Parsed {
  Value value;
  std::string error;
};

Parsed parse_failure(const Key& key, std::string_view text, const std::string& why) {
  return {{}, key.full_name() + " = " + quoted(text) + ": " + why};
}

// Digits and one of `units`; without unit if `bare` or zero.
template <size_t N>
Parsed parse_with_unit(const Key& key, std::string_view text, const Unit (&units)[N], bool bare, const char* expected,
                       const char* unit_list) {
  uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status == std::errc::result_out_of_range) return {{}, out_of_range(key, text)};
  if (status != std::errc()) return parse_failure(key, text, expected);
  std::string_view unit_name = text.substr(static_cast<size_t>(end - text.data()));
  while (!unit_name.empty() && unit_name.front() == ' ') unit_name.remove_prefix(1);
  if (unit_name.empty()) {
    if (bare || number == 0) return {number, {}};
    return parse_failure(key, text, expected);
  }
  for (const Unit& unit : units) {
    if (unit.name != unit_name) continue;
    uint64_t product = 0;
    if (__builtin_mul_overflow(number, unit.factor, &product) || product > INT64_MAX) {
      return {{}, out_of_range(key, text)};
    }
    return {product, {}};
  }
  return parse_failure(key, text, "unknown unit " + quoted(unit_name) + "; use " + unit_list);
}

Parsed parse_text(const Key& key, std::string_view text) {
  switch (key.type) {
    case KeyType::String:
      return {std::string(text), {}};
    case KeyType::List:
      return {split(text, ','), {}};
    case KeyType::Bool:
      for (std::string_view yes : {"true", "1", "yes", "on"}) {
        if (text == yes) return {true, {}};
      }
      for (std::string_view no : {"false", "0", "no", "off"}) {
        if (text == no) return {false, {}};
      }
      return parse_failure(key, text, "expected true or false");
    case KeyType::U32: {
      uint64_t number = 0;
      const char* end = text.data() + text.size();
      const bool negative = text.size() > 1 && text.front() == '-';
      const auto [last, status] = std::from_chars(text.data() + (negative ? 1 : 0), end, number);
      if (last != end || status == std::errc::invalid_argument) {
        return parse_failure(key, text, "expected a whole number");
      }
      if (negative || status != std::errc()) return {{}, out_of_range(key, text)};
      return {number, {}};
    }
    case KeyType::Bytes:
      return parse_with_unit(key, text, kByteUnits, true, "expected a size such as \"8MiB\"", "B, KiB, MiB or GiB");
    case KeyType::Duration: {
      Parsed parsed =
          parse_with_unit(key, text, kTimeUnits, false, "expected a time with unit such as \"4ms\"", "ns, us, ms or s");
      if (parsed.error.empty()) parsed.value = nanoseconds(std::get<uint64_t>(parsed.value));
      return parsed;
    }
  }
  return {};
}

const char* type_name(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a float";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

Parsed wrong_type(const Key& key, const char* expected, const toml::node& found) {
  return {{}, key.full_name() + ": expected " + expected + ", found " + type_name(found.type())};
}

Parsed parse_node(const Key& key, const toml::node& node) {
  const auto* text = node.as_string();
  const auto* integer = node.as_integer();
  switch (key.type) {
    case KeyType::String:
      if (text == nullptr) return wrong_type(key, "a string", node);
      return parse_text(key, text->get());
    case KeyType::Bool:
      if (!node.is_boolean()) return wrong_type(key, "true or false", node);
      return {node.as_boolean()->get(), {}};
    case KeyType::U32:
      if (integer == nullptr) return wrong_type(key, "an integer", node);
      return parse_text(key, std::to_string(integer->get()));
    case KeyType::Bytes:
      if (integer != nullptr && integer->get() < 0) return {{}, out_of_range(key, std::to_string(integer->get()))};
      if (integer != nullptr) return {static_cast<uint64_t>(integer->get()), {}};
      if (text != nullptr) return parse_text(key, text->get());
      return wrong_type(key, "an integer or a string such as \"8MiB\"", node);
    case KeyType::Duration:
      if (text != nullptr) return parse_text(key, text->get());
      if (integer != nullptr && integer->get() == 0) return {nanoseconds(0), {}};
      return wrong_type(key, "a string with unit such as \"4ms\"", node);
    case KeyType::List: {
      if (!node.is_array()) return wrong_type(key, "an array of strings", node);
      StringList list;
      for (const toml::node& element : *node.as_array()) {
        if (key.rule == "core" && element.is_integer()) {
          list.push_back(std::to_string(element.as_integer()->get()));
          continue;
        }
        if (!element.is_string()) return wrong_type(key, "an array of strings", element);
        list.push_back(element.as_string()->get());
      }
      return {std::move(list), {}};
    }
  }
  return {};
}

// -- checks of one value ---------------------------------------------------------------------------

bool is_ip_address(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

// One string, or one element of a list. Returns what is wrong with it, or nothing.
std::string check_string(const Key& key, const std::string& text) {
  if (text.find('\0') != std::string::npos) return key.full_name() + " contains a NUL character";
  const std::string subject = key.full_name() + ": " + quoted(text);
  if (key.rule == "name") {
    const bool good = !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
    });
    return good ? "" : subject + " is not a name of " + range_text(key);
  }
  if (key.rule == "path") return text.empty() || text[0] == '/' ? "" : subject + " is not an absolute path";
  if (key.rule == "core") {
    const bool good = !text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == std::string::npos;
    return good ? "" : subject + " is no number of a CPU";
  }
  if (key.rule == "ip") return is_ip_address(text) ? "" : subject + " is not an IP address";
  if (key.rule == "ip/prefix@name")
    return parse_network(text.substr(0, text.find('@'))) ? "" : subject + " is no network such as 10.1.0.2/24";
  if (key.rule == "ip=mac")
    return parse_neighbour(text) ? "" : subject + " is no pair such as 10.1.0.3=02:00:00:00:00:03";
  if (key.rule == "ip=ip") {
    const size_t equals = text.find('=');
    const bool good =
        equals != std::string::npos && is_ip_address(text.substr(0, equals)) && is_ip_address(text.substr(equals + 1));
    return good ? "" : subject + " is not of the form EID=IP, two IP addresses";
  }
  const StringList allowed = choices(key);
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return {};
  return key.full_name() + " = " + quoted(text) + ": expected one of " + range_text(key);
}

std::string check_list(const Key& key, const StringList& list) {
  std::set<std::string> seen;
  for (const std::string& element : list) {
    if (std::string error = check_string(key, element); !error.empty()) return error;
    if (!seen.insert(element).second) return key.full_name() + ": " + quoted(element) + " occurs twice";
  }
  if (list.empty() && key.rule.starts_with("choice:")) {
    return key.full_name() + " is empty: expected at least one of " + range_text(key);
  }
  return {};
}

uint64_t as_number(const Key& key, std::string_view text) {
  const Value value = parse_text(key, text).value;
  return key.type == KeyType::Duration ? static_cast<uint64_t>(std::get<nanoseconds>(value).count())
                                       : std::get<uint64_t>(value);
}

std::string check_number(const Key& key, const std::string& shown, uint64_t number) {
  const StringList allowed = choices(key);
  if (!allowed.empty()) {
    const bool found = std::find(allowed.begin(), allowed.end(), shown) != allowed.end();
    return found ? std::string() : out_of_range(key, shown);
  }
  if (number < as_number(key, key.min) || number > as_number(key, key.max)) return out_of_range(key, shown);
  if (key.rule == "pow2" && (number & (number - 1)) != 0) {
    return key.full_name() + " = " + shown + " is not a power of two in " + std::string(key.min) + ".." +
           std::string(key.max) + in_unit(key);
  }
  if (key.rule == "not 4791" && number == 4791) {
    return key.full_name() + " = " + shown +
           " is the port of RoCE: peers would take UB packets for its own; choose another";
  }
  return {};
}

std::string check_value(const Key& key, const Value& value) {
  switch (key.type) {
    case KeyType::Bool:
      return {};
    case KeyType::String:
      return check_string(key, std::get<std::string>(value));
    case KeyType::List:
      return check_list(key, std::get<StringList>(value));
    case KeyType::U32:
    case KeyType::Bytes:
      return check_number(key, format(key, value), std::get<uint64_t>(value));
    case KeyType::Duration:
      return check_number(key, format(key, value), static_cast<uint64_t>(std::get<nanoseconds>(value).count()));
  }
  return {};
}

// -- "did you mean" --------------------------------------------------------------------------------

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// `wrong` is "section.key" or "SOFTUB_SECTION_KEY"; `name_of` makes the same of a key.
template <typename NameOf>
std::string did_you_mean(std::string_view wrong, NameOf name_of) {
  size_t best = 1 + wrong.size() / 3;
  std::string nearest;
  for (const Key& key : kKeys) {
    const std::string name = name_of(key);
    const size_t distance = edit_distance(wrong, name);
    if (distance < best) std::tie(best, nearest) = std::make_tuple(distance, name);
  }
  for (const Key& key : kKeys) {  // the right key under the wrong section
    if (best > 2 && wrong.ends_with(concat(".", key.name))) nearest = name_of(key);
  }
  return nearest.empty() ? "; urma_admin config lists all keys" : concat("; did you mean ", quoted(nearest), "?");
}

// -- loading ---------------------------------------------------------------------------------------

class Loader {
 public:
  explicit Loader(const Environment& environment) : environment_(environment) {
    config_.sources.assign(kKeyCount, "default");
  }

  ConfigResult load() {
    load_default_file("/etc/softub/softub.toml", true);
    if (const std::string path = user_file(); !path.empty()) load_default_file(path, false);
    if (const auto path = environment_.get("SOFTUB_CONFIG"); path && !path->empty()) load_named_file(*path);
    load_variables();
    if (errors_.empty()) check_together();
    if (!errors_.empty()) return {std::nullopt, join(errors_, "\n")};
    return {std::move(config_), {}};
  }

 private:
  std::string user_file() const {
    if (const auto dir = environment_.get("XDG_CONFIG_HOME"); dir && !dir->empty()) {
      return *dir + "/softub/softub.toml";
    }
    if (const auto home = environment_.get("HOME"); home && !home->empty()) {
      return *home + "/.config/softub/softub.toml";
    }
    return {};
  }

  // A program may run with the HOME of another user: what it may not see there is not meant for it.
  void load_default_file(const std::string& path, bool must_be_allowed) {
    const Environment::File file = environment_.read_file(path);
    if (file.status == Environment::FileStatus::kMissing) return;
    if (file.status == Environment::FileStatus::kForbidden && !must_be_allowed) return;
    load_file(path, file);
  }

  void load_named_file(const std::string& path) {
    const Environment::File file = environment_.read_file(path);
    if (file.status == Environment::FileStatus::kMissing) {
      errors_.push_back("env SOFTUB_CONFIG: the file \"" + path + "\" does not exist");
      return;
    }
    load_file(path, file);
  }

  void load_file(const std::string& path, const Environment::File& file) {
    if (file.status != Environment::FileStatus::kOk) {
      errors_.push_back(path + ": cannot be read: " + file.text);
      return;
    }
    config_.files.push_back(path);
    try {
      load_table(path, toml::parse(std::string_view(file.text), std::string_view(path)));
    } catch (const toml::parse_error& error) {
      errors_.push_back(position(path, error.source()) + "syntax error: " + std::string(error.description()));
    }
  }

  static std::string position(const std::string& path, const toml::source_region& region) {
    return path + ":" + std::to_string(region.begin.line) + ":" + std::to_string(region.begin.column) + ": ";
  }

  // The table iterates by name; people read errors by line.
  void load_table(const std::string& path, const toml::table& root) {
    file_errors_.clear();
    for (const auto& [section_name, node] : root) load_section(path, section_name, node);
    std::sort(file_errors_.begin(), file_errors_.end());
    for (FileError& error : file_errors_) errors_.push_back(std::move(error.text));
  }

  void load_section(const std::string& path, const toml::key& name, const toml::node& node) {
    const std::string section(name.str());
    const bool known =
        std::any_of(std::begin(kKeys), std::end(kKeys), [&](const Key& key) { return key.section == section; });
    if (!known && node.is_table()) {
      add_error(path, name.source(), "unknown section " + quoted(section) + nearest_section(section));
    } else if (!known) {
      add_error(path, name.source(),
                "unknown key " + quoted(section) +
                    did_you_mean(concat(".", section), [](const Key& key) { return key.full_name(); }));
    } else if (!node.is_table()) {
      add_error(path, name.source(), quoted(section) + " is a section: write [" + section + "]");
    } else {
      for (const auto& [key_name, value] : *node.as_table()) load_key(path, section, key_name, value);
    }
  }

  void load_key(const std::string& path, const std::string& section, const toml::key& name, const toml::node& node) {
    for (size_t i = 0; i < kKeyCount; ++i) {
      if (kKeys[i].section != section || kKeys[i].name != name.str()) continue;
      Parsed parsed = parse_node(kKeys[i], node);
      if (parsed.error.empty()) parsed.error = check_value(kKeys[i], parsed.value);
      if (!parsed.error.empty()) {
        add_error(path, name.source(), parsed.error);
      } else {
        kKeys[i].set(config_, std::move(parsed.value));
        config_.sources[i] = path + ":" + std::to_string(name.source().begin.line);
      }
      return;
    }
    const std::string wrong = section + "." + std::string(name.str());
    add_error(path, name.source(),
              "unknown key " + quoted(wrong) + did_you_mean(wrong, [](const Key& key) { return key.full_name(); }));
  }

  static std::string nearest_section(const std::string& wrong) {
    size_t best = 1 + wrong.size() / 2;
    std::string nearest;
    for (const Key& key : kKeys) {
      const size_t distance = edit_distance(wrong, key.section);
      if (distance < best) std::tie(best, nearest) = std::make_tuple(distance, std::string(key.section));
    }
    return nearest.empty() ? "; urma_admin config lists all keys" : concat("; did you mean ", quoted(nearest), "?");
  }

  // A key of a known section, or nearly a key; other SOFTUB_ variables may belong to anybody.
  static bool meant_for_us(const std::string& name) {
    constexpr size_t kTypingError = 2;
    return std::any_of(std::begin(kKeys), std::end(kKeys), [&](const Key& key) {
      const std::string known = key.env_name();
      return name.starts_with(known.substr(0, known.size() - key.name.size())) ||
             edit_distance(name, known) <= kTypingError;
    });
  }

  void load_variables() {
    std::set<std::string> unknown;
    for (std::string& name : environment_.names("SOFTUB_")) {
      if (meant_for_us(name)) unknown.insert(std::move(name));
    }
    for (size_t i = 0; i < kKeyCount; ++i) {
      const std::string name = kKeys[i].env_name();
      unknown.erase(name);
      const auto text = environment_.get(name);
      if (!text) continue;
      Parsed parsed = parse_text(kKeys[i], *text);
      if (parsed.error.empty()) parsed.error = check_value(kKeys[i], parsed.value);
      if (!parsed.error.empty()) {
        errors_.push_back("env " + name + ": " + parsed.error);
      } else {
        kKeys[i].set(config_, std::move(parsed.value));
        config_.sources[i] = "env " + name;
      }
    }
    for (const std::string& name : unknown) {
      errors_.push_back("env " + name + ": unknown key" +
                        did_you_mean(name, [](const Key& key) { return key.env_name(); }));
    }
  }

  // -- checks of several values together: each is valid by itself --

  size_t index_of(std::string_view full_name) const {
    for (size_t i = 0; i < kKeyCount; ++i) {
      if (kKeys[i].full_name() == full_name) return i;
    }
    abort();  // a typing error in check_together, met by every test
  }

  void check_not_above(std::string_view low_name, std::string_view high_name) {
    const size_t low = index_of(low_name);
    const size_t high = index_of(high_name);
    const Value low_value = kKeys[low].get(config_);
    const Value high_value = kKeys[high].get(config_);
    if (low_value <= high_value) return;
    const std::string& culprit = config_.sources[low] == "default" ? config_.sources[high] : config_.sources[low];
    errors_.push_back(culprit + ": " + kKeys[low].full_name() + " = " + format(kKeys[low], low_value) + " (" +
                      config_.sources[low] + ") is above " + kKeys[high].full_name() + " = " +
                      format(kKeys[high], high_value) + " (" + config_.sources[high] + ")");
  }

  void check_together() {
    check_not_above("transport.rto_min", "transport.rto_max");
    check_not_above("transport.rto_max", "transport.channel_timeout");
    check_not_above("transport.setup_retry_min", "transport.channel_timeout");
    check_not_above("progress.helper_backoff_min", "progress.helper_backoff_max");
  }

  struct FileError {
    uint32_t line, column;
    std::string text;
    bool operator<(const FileError& other) const { return std::tie(line, column) < std::tie(other.line, other.column); }
  };

  void add_error(const std::string& path, const toml::source_region& region, const std::string& text) {
    file_errors_.push_back({region.begin.line, region.begin.column, position(path, region) + text});
  }

  const Environment& environment_;
  LoadedConfig config_;
  std::vector<std::string> errors_;
  std::vector<FileError> file_errors_;
};

}  // namespace

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

ConfigResult load_config(const Environment& environment) { return Loader(environment).load(); }

ConfigResult load_config() { return load_config(ProcessEnvironment()); }

std::vector<ConfigRow> describe(const LoadedConfig& config) {
  std::vector<ConfigRow> rows;
  for (size_t i = 0; i < kKeyCount; ++i) {
    const Key& key = kKeys[i];
    rows.push_back({key.full_name(), format(key, key.get(config)), std::string(key.default_text), range_text(key),
                    std::string(key.unit), i < config.sources.size() ? config.sources[i] : "default",
                    std::string(key.help)});
  }
  return rows;
}

}  // namespace ub
