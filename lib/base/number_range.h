// SPDX-License-Identifier: Apache-2.0
//
// Numbers that several parts of a program share, handed out in ranges while tables are laid out: who takes a range knows
// neither who took one before nor who will, and its own records count from 0 in it.
#pragma once

#include <cstdint>

namespace ub {

struct NumberRange {
  uint32_t first = 0;
  uint32_t count = 0;

  bool contains(uint32_t number) const { return number - first < count; }
  // Of the record with that index; back again, of a number that is in the range.
  uint32_t of(uint32_t index) const { return first + index; }
  uint32_t index_of(uint32_t number) const { return number - first; }
};

class NumberRanges {
 public:
  explicit NumberRanges(uint32_t first = 0) : used_(first) {}

  NumberRange take(uint32_t count) {
    const NumberRange range{used_, count};
    used_ += count;
    return range;
  }
  // All that were taken are below.
  uint32_t end() const { return used_; }

 private:
  uint32_t used_;
};

}  // namespace ub
