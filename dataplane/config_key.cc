// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config_key.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <utility>

namespace ub::configuration {

using std::chrono::nanoseconds;

namespace {

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

}  // namespace

std::string Key::full_name() const { return std::string(section) + "." + std::string(name); }

std::string Key::env_name() const {
  std::string text = std::string("SOFTUB_").append(section).append("_").append(name);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::span<const Key> keys() { return kKeys; }

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

StringList choices(const Key& key) {
  constexpr std::string_view kPrefix = "choice:";
  if (!key.rule.starts_with(kPrefix)) return {};
  return split(key.rule.substr(kPrefix.size()), '|');
}

std::string range_text(const Key& key) {
  if (key.rule == "ip") return "IP address";
  if (key.rule == "ip=ip") return "EID=IP";
  if (key.rule == "ip=ip>ip") return "PEER=LOCAL>REMOTE";
  if (key.rule == "ip=mac") return "IP=MAC";
  if (key.rule == "ip/prefix@name") return "IP/prefix, IP/prefix@device";
  if (key.rule == "path") return "absolute path";
  if (key.rule == "core") return "CPU number";
  if (key.rule == "name") return "1 to 63 of A-Z a-z 0-9 _ . -";
  if (key.rule == "faults") return "faults";
  if (key.rule == "nic faults") return "faults of a NIC";
  if (key.rule == "impairments") return "impairments";
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

std::string join(const StringList& list, std::string_view separator) {
  std::string text;
  for (const std::string& element : list) text += (text.empty() ? "" : std::string(separator)) + element;
  return text;
}

std::string quoted(std::string_view text) { return concat("\"", text, "\""); }

}  // namespace ub::configuration
