// SPDX-License-Identifier: Apache-2.0
//
// Text that others chose, such as the name of a program, made fit for a terminal and for a text format.
#pragma once

#include <algorithm>
#include <string>

namespace ub::tools {

// Every byte that is not printable ASCII becomes a question mark.
inline std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace ub::tools
