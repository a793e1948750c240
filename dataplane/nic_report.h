// SPDX-License-Identifier: Apache-2.0
//
// What a Core holds, counted for the statistics page.
//
// Thread: the owner of the Core.
#pragma once

#include <vector>

#include "dataplane/operation_totals.h"
#include "dataplane/stats_page.h"
#include "lib/transport/core_state.h"
#include "lib/transport/roce/state.h"

namespace ub {

struct NicReport {
  StatsObjects objects;
  std::vector<StatsSegment> segments;
};

// Looks at every record up to the tables' high-water marks: some microseconds for each thousand objects.
NicReport report_nic(const CoreState&);
// What ended so far. `roce`: null if the Core has none.
OperationCounts count_operations(const CoreState&, const roce::State* roce);

}  // namespace ub
