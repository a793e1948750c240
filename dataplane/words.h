// SPDX-License-Identifier: Apache-2.0
//
// Text that tools send a running NIC, word by word.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ub {

// Takes the part before the first separator off the text, and the separator.
inline std::string_view take_part(std::string_view* text, char separator) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

// False: it is more or less than a decimal number of that type.
template <class Number>
bool read_number(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc{} && end == text.data() + text.size();
}

// Calls fn(part) for each part that is not empty; false at once if fn says so.
template <class Fn>
bool each_part(std::string_view text, char separator, Fn fn) {
  while (!text.empty()) {
    const std::string_view part = take_part(&text, separator);
    if (!part.empty() && !fn(part)) return false;
  }
  return true;
}

struct ValueRange {
  uint32_t low, high;
};
using ValueRanges = std::vector<ValueRange>;

// "3" or "100..200", or several of these with commas; appended to `*ranges`. False: it is none.
inline bool read_ranges(std::string_view text, ValueRanges* ranges) {
  const size_t before = ranges->size();
  const bool read = each_part(text, ',', [&](std::string_view part) {
    ValueRange range{};
    const size_t dots = std::min(part.find(".."), part.size());
    if (!read_number(part.substr(0, dots), &range.low)) return false;
    range.high = range.low;
    if (dots != part.size() && !read_number(part.substr(dots + 2), &range.high)) return false;
    ranges->push_back(range);
    return range.low <= range.high;
  });
  return read && ranges->size() != before;
}

inline bool is_in(const std::vector<ValueRange>& ranges, uint32_t number) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [number](const ValueRange& r) { return r.low <= number && number <= r.high; });
}

// '*' stands for any text. Of several each takes as little as it can, which finds a match if there is one.
inline bool matches(std::string_view glob, std::string_view name) {
  if (glob.find('*') == std::string_view::npos) return glob == name;
  const std::string_view first = take_part(&glob, '*');
  if (!name.starts_with(first)) return false;
  name.remove_prefix(first.size());
  for (size_t stars = static_cast<size_t>(std::count(glob.begin(), glob.end(), '*')); stars != 0; --stars) {
    const std::string_view part = take_part(&glob, '*');
    const size_t at = name.find(part);
    if (at == std::string_view::npos) return false;
    name.remove_prefix(at + part.size());
  }
  return name.ends_with(glob);
}

}  // namespace ub
