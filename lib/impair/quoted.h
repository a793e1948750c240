// SPDX-License-Identifier: Apache-2.0
//
// What somebody wrote, for a message that says what is wrong with it: in quotes, and cut off where it is long.
#pragma once

#include <string>
#include <string_view>

namespace ub::impair {

inline std::string quoted(std::string_view text) {
  constexpr size_t kMost = 60;
  const bool is_long = text.size() > kMost;
  return std::string("\"").append(text.substr(0, kMost)).append(is_long ? "...\"" : "\"");
}

}  // namespace ub::impair
