// SPDX-License-Identifier: Apache-2.0
//
// Numbers that several parts of a program share. They are handed out in ranges while tables are laid out. A part that
// takes a range needs not know who else takes one, and counts its own records from 0 within it.
#pragma once

#include <cstdint>

namespace ub {

struct NumberRange {
  uint32_t first = 0;
  uint32_t count = 0;

  bool contains(uint32_t number) const { return number - first < count; }
  // The number of the record with this index, and the index of a number that is in the range.
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
  // All numbers that were taken are below this one.
  uint32_t end() const { return used_; }

 private:
  uint32_t used_;
};

}  // namespace ub
