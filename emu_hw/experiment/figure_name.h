// SPDX-License-Identifier: Apache-2.0
//
// The name of the file of a figure. Two experiments with the same one would overwrite each other's.
#pragma once

#include <cctype>
#include <string>

namespace ub::emu {

// Letters and digits of a text, and dashes for what is between them.
inline std::string figure_name_of(const std::string& text) {
  std::string name;
  for (const char each : text) {
    const auto letter = static_cast<unsigned char>(each);
    if (std::isalnum(letter) != 0)
      name += static_cast<char>(std::tolower(letter));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  return name;
}

}  // namespace ub::emu
