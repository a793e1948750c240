// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/profiles/parameters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <sstream>

namespace ub::emu {
namespace {

constexpr double kMostNs = 1e12;  // a quarter of an hour of virtual time for one step is a mistake

// How much of another unit a unit is.
struct Unit {
  std::string_view name, of;
  double factor;
};
constexpr Unit kUnits[] = {
    {"ps", "ns", 1e-3},        {"us", "ns", 1e3},         {"ms", "ns", 1e6},       {"s", "ns", 1e9},
    {"KiB", "bytes", 1 << 10}, {"MiB", "bytes", 1 << 20}, {"B", "bytes", 1},       {"Mb/s", "Gb/s", 1e-3},
    {"Tb/s", "Gb/s", 1e3},
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string names_of_units(std::string_view unit) {
  std::string names(unit);
  for (const Unit& each : kUnits)
    if (each.of == unit) names += ", " + std::string(each.name);
  return names;
}

// A number in that unit. Returns what is wrong with it, or "".
std::string read_number(std::string_view text, std::string_view unit, double* value) {
  text = trimmed(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc()) return "is no number";
  const std::string_view given = trimmed(text.substr(static_cast<size_t>(end - text.data())));
  if (given.empty() || given == unit) return "";
  for (const Unit& each : kUnits) {
    if (each.name != given || each.of != unit) continue;
    *value *= each.factor;
    return "";
  }
  if (unit.empty()) return "has no unit; leave out \"" + std::string(given) + "\"";
  return "unknown unit \"" + std::string(given) + "\"; it is given in " + names_of_units(unit);
}

struct Limits {
  double least, most;
  bool is_whole;
};

std::string read_between(std::string_view text, std::string_view unit, const Limits& limits, double* value) {
  if (std::string wrong = read_number(text, unit, value); !wrong.empty()) return wrong;
  const bool is_between = *value >= limits.least && *value <= limits.most;
  if (is_between && (!limits.is_whole || *value == std::floor(*value))) return "";
  return std::string("give a ") + (limits.is_whole ? "whole " : "") + "number from " + text_of(limits.least) + " to " +
         text_of(limits.most) + (unit.empty() ? "" : " " + std::string(unit));
}

std::string read_time(std::string_view text, Span* span) {
  double ns = 0;
  const std::string wrong = read_between(text, "ns", {0, kMostNs, false}, &ns);
  if (wrong.empty()) span->ps = static_cast<uint64_t>(std::llround(ns * 1000));
  return wrong;
}

std::string read_count(std::string_view text, std::string_view unit, const Limits& limits, uint64_t* count) {
  double value = 0;
  const std::string wrong = read_between(text, unit, limits, &value);
  if (wrong.empty()) *count = static_cast<uint64_t>(value);
  return wrong;
}

// "a b c": three words.
std::vector<std::string> split(const std::string& words) {
  std::istringstream in(words);
  return {std::istream_iterator<std::string>(in), {}};
}

template <class Type>
std::string read_choice(std::string_view text, const std::string& words, Type* choice) {
  const std::vector<std::string> all = split(words);
  const auto found = std::find(all.begin(), all.end(), trimmed(text));
  if (found == all.end()) return "give one of: " + words;
  *choice = static_cast<Type>(found - all.begin());
  return "";
}

}  // namespace

std::string text_of(double number) {
  char text[32];
  const bool is_whole = number == std::floor(number) && std::abs(number) < 1e15;
  const auto result = is_whole ? std::to_chars(text, text + sizeof text, static_cast<int64_t>(number))
                               : std::to_chars(text, text + sizeof text, number);
  return {text, result.ptr};
}

const std::vector<ParameterInfo>& all_parameters() {
  static const std::vector<ParameterInfo> all = {
#define EMU_TIME(name, default_ps, meaning) {#name, "ns", meaning, "", text_of(static_cast<double>(default_ps) / 1000)},
#define EMU_COUNT(name, default_value, least, most, unit, meaning) {#name, unit, meaning, "", text_of(default_value)},
#define EMU_NUMBER(name, default_value, least, most, unit, meaning) {#name, unit, meaning, "", text_of(default_value)},
#define EMU_CHOICE(name, type, default_value, words, meaning) \
  {#name, "", meaning, words, split(words)[static_cast<size_t>(default_value)]},
#include "emu_hw/profiles/parameters.def"
#undef EMU_TIME
#undef EMU_COUNT
#undef EMU_NUMBER
#undef EMU_CHOICE
  };
  return all;
}

std::string set_parameter(Parameters& p, std::string_view name, std::string_view text) {
  const auto told = [&](const std::string& wrong) {
    return wrong.empty() ? "" : std::string(name) + " = " + std::string(text) + ": " + wrong;
  };
#define EMU_TIME(member, default_ps, meaning) \
  if (name == #member) return told(read_time(text, &p.member));
#define EMU_COUNT(member, default_value, least, most, unit, meaning) \
  if (name == #member) return told(read_count(text, unit, {least, most, true}, &p.member));
#define EMU_NUMBER(member, default_value, least, most, unit, meaning) \
  if (name == #member) return told(read_between(text, unit, {least, most, false}, &p.member));
#define EMU_CHOICE(member, type, default_value, words, meaning) \
  if (name == #member) return told(read_choice(text, words, &p.member));
#include "emu_hw/profiles/parameters.def"
#undef EMU_TIME
#undef EMU_COUNT
#undef EMU_NUMBER
#undef EMU_CHOICE
  return std::string(name) + ": there is no parameter of that name; `ub_emu parameters` lists all";
}

Settings changed_parameters(const Parameters& p) {
  const Parameters by_default;
  Settings changed;
#define EMU_TIME(member, default_ps, meaning) \
  if (p.member.ps != by_default.member.ps) changed[#member] = text_of(static_cast<double>(p.member.ps) / 1000);
#define EMU_COUNT(member, default_value, least, most, unit, meaning) \
  if (p.member != by_default.member) changed[#member] = text_of(static_cast<double>(p.member));
#define EMU_NUMBER(member, default_value, least, most, unit, meaning) \
  if (p.member != by_default.member) changed[#member] = text_of(p.member);
#define EMU_CHOICE(member, type, default_value, words, meaning) \
  if (p.member != by_default.member) changed[#member] = split(words)[static_cast<size_t>(p.member)];
#include "emu_hw/profiles/parameters.def"
#undef EMU_TIME
#undef EMU_COUNT
#undef EMU_NUMBER
#undef EMU_CHOICE
  return changed;
}

}  // namespace ub::emu
