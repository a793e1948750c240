// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/report/number_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "emu_hw/profiles/parameters.h"

namespace ub::emu {
namespace {

constexpr const char* kThinSpace = "\u202f";  // no line ends there
constexpr const char* kMinus = "\u2212";

std::string with_spaces(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// "16253.5": "16 253.5"; numbers of four digits stay as they are.
std::string grouped(const std::string& digits) {
  const size_t whole = std::min(digits.find('.'), digits.size());
  if (whole <= 4) return digits;
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) text += kThinSpace;
    text += digits[i];
  }
  return text;
}

std::string without_zeros(std::string digits) {
  if (digits.find('.') == std::string::npos) return digits;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

}  // namespace

std::string readable(double number, int digits) {
  if (number == 0) return "0";
  if (!std::isfinite(number)) return "–";
  const double size = std::abs(number);
  const int whole_digits = static_cast<int>(std::floor(std::log10(size))) + 1;
  char text[64];
  if (size < 1e-4 || size >= 1e15) {
    std::snprintf(text, sizeof text, "%.*g", std::min(digits, 3), size);
    return (number < 0 ? kMinus : "") + std::string(text);
  }
  std::snprintf(text, sizeof text, "%.*f", std::max(0, digits - whole_digits), size);
  return (number < 0 ? kMinus : "") + grouped(without_zeros(text));
}

std::string tick_text(double number) {
  constexpr double kKi = 1024, kMi = kKi * kKi, kM = 1e6, kG = 1e9;
  const bool is_binary = std::fmod(number, 1000) != 0;
  if (is_binary && number >= kMi && std::fmod(number, kMi) == 0) return readable(number / kMi) + " Mi";
  if (is_binary && number >= kKi && std::fmod(number, kKi) == 0) return readable(number / kKi) + " Ki";
  if (number >= kG && std::fmod(number, kG / 10) == 0) return readable(number / kG) + " G";
  if (number >= kM && std::fmod(number, kM / 10) == 0) return readable(number / kM) + " M";
  if (number != 0 && std::abs(number) < 1e-2) {
    const int exponent = static_cast<int>(std::floor(std::log10(std::abs(number)) + 1e-9));
    const double mantissa = number / std::pow(10, exponent);
    return readable(mantissa, 3) + "e" + kMinus + std::to_string(-exponent);
  }
  return readable(number);
}

std::string percent_text(double percent) {
  if (percent == 0) return "equal";
  if (std::abs(percent) < 0.005) return "< 0.01 %";
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", std::abs(percent) < 10 ? 2 : 1, std::abs(percent));
  return (percent < 0 ? kMinus : "+") + std::string(text) + " %";
}

std::string title_of_measure(const std::string& measure) {
  static const std::map<std::string, std::string> known = {
      {"mean_ns", "mean latency, ns"},    {"p50_ns", "median latency, ns"},       {"p50i_ns", "median latency, ns"},
      {"max_ns", "greatest latency, ns"}, {"mops", "rate, million operations/s"},
  };
  if (const auto found = known.find(measure); found != known.end()) return found->second;
  static const std::map<std::string, std::string> quantiles = {
      {"p90", "90th"}, {"p99", "99th"}, {"p999", "99.9th"}, {"p999i", "99.9th"}};
  const size_t at = measure.rfind('_');
  const std::string name = measure.substr(0, at), unit = at == measure.npos ? "" : measure.substr(at + 1);
  if (const auto found = quantiles.find(name); found != quantiles.end())
    return "latency, " + found->second + " percentile, " + unit;
  static const std::map<std::string, std::string> units = {
      {"ns", "ns"},         {"us", "µs"},       {"ms", "ms"},
      {"s", "s"},           {"bytes", "bytes"}, {"percent", "%"},
      {"cycles", "cycles"}, {"gbps", "Gb/s"},   {"mops", "million operations/s"}};
  if (const auto found = units.find(unit); found != units.end()) return with_spaces(name) + ", " + found->second;
  return with_spaces(measure);
}

std::string title_of_parameter(const std::string& parameter) {
  for (const ParameterInfo& each : all_parameters())
    if (each.name == parameter && *each.unit != 0) return with_spaces(parameter) + ", " + each.unit;
  return with_spaces(parameter);
}

}  // namespace ub::emu
