// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/parts/ledger.h"

namespace ub::emu {

std::string Ledger::text_of(Time start, const std::vector<Line>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    const uint64_t ps = (lines[i].until - (i == 0 ? start : lines[i - 1].until)).ps;
    std::string fraction = std::to_string(1000 + ps % 1000).substr(1);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    text += (i == 0 ? "" : ", ") + std::string(lines[i].name.part) + " " + std::to_string(ps / 1000) +
            (fraction.empty() ? "" : "." + fraction);
  }
  return text;
}

}  // namespace ub::emu
