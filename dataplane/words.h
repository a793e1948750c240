// SPDX-License-Identifier: Apache-2.0
//
// Text that tools send a running NIC, word by word.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

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

}  // namespace ub
