// SPDX-License-Identifier: Apache-2.0
//
// Instances at two moments, and what they did between them.
#pragma once

#include <string_view>
#include <vector>

#include "tools/admin/instance_pages.h"

namespace ub::tools {

// An instance as it is, and as it was some seconds before.
struct InstanceChange {
  Instance now;
  StatsReport before;
  double seconds = 0;  // between the two; 0: there is nothing to compare yet

  // How much of a count that was `earlier` comes in a second.
  double rate(uint64_t later, uint64_t earlier) const {
    return seconds > 0 && later > earlier ? static_cast<double>(later - earlier) / seconds : 0;
  }
  double counter_rate(std::string_view name) const;
  // The channel with this number as it was, or one of zeros.
  StatsChannel channel_before(uint32_t tpn) const;
};

// What came of instances, each with its latest change.
class InstanceRates {
 public:
  // Takes what was loaded at this time. A page that was not renewed since the last time keeps its rates for
  // `patience_s`, for pages are renewed less often than somebody may look; then its instance is idle.
  void take(std::vector<Instance>, uint64_t at_ns, double patience_s);
  const std::vector<InstanceChange>& instances() const { return changes_; }

 private:
  std::vector<InstanceChange> changes_;
};

}  // namespace ub::tools
