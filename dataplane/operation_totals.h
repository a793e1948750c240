// SPDX-License-Identifier: Apache-2.0
//
// Counts that wrap after 32 bits, as totals that do not, for whoever sees them often enough.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/work_figures.h"

namespace ub {

using OperationCounts = std::array<uint32_t, kOperationCounts>;  // in the order of kOperationNames

class OperationTotals {
 public:
  // One that is less than before is of a ring that began anew, and counts from there on.
  void see(const OperationCounts& now) {
    for (size_t i = 0; i < now.size(); ++i) {
      const uint32_t more = now[i] - seen_[i];
      if (more <= INT32_MAX) totals_[i] += more;
      seen_[i] = now[i];
    }
  }
  void copy_to(uint64_t (&out)[kOperationCounts]) const { std::copy(totals_.begin(), totals_.end(), out); }

 private:
  OperationCounts seen_{};
  std::array<uint64_t, kOperationCounts> totals_{};
};

}  // namespace ub
