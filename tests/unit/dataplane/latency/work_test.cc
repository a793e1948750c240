// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/operation_totals.h"
#include "dataplane/regime_clock.h"

namespace ub {
namespace {

TEST(OperationTotals, go_on_where_the_counts_wrap) {
  OperationTotals totals;
  totals.see({UINT32_MAX - 1, 0, 0, 0});  // more than half of all numbers: a ring that began anew
  totals.see({3, 7, 0, 0});
  uint64_t out[kOperationCounts];
  totals.copy_to(out);
  EXPECT_EQ(out[0], 5u);
  EXPECT_EQ(out[1], 7u);
}

TEST(OperationTotals, a_ring_that_begins_anew_takes_nothing_back) {
  OperationTotals totals;
  totals.see({1000, 0, 0, 0});
  totals.see({10, 0, 0, 0});
  totals.see({15, 0, 0, 0});
  uint64_t out[kOperationCounts];
  totals.copy_to(out);
  EXPECT_EQ(out[0], 1005u);
}

TEST(RegimeClock, time_belongs_to_what_was_said_last) {
  RegimeClock clock;
  clock.begin(Instant{100});
  clock.spend(Regime::kBusy, Instant{150});
  clock.spend(Regime::kBusy, Instant{140});  // known already
  clock.spend(Regime::kIdle, Instant{160});
  clock.spend(Regime::kAsleep, Instant{1160});
  uint64_t out[kRegimes];
  clock.copy_to(out);
  EXPECT_EQ(out[static_cast<size_t>(Regime::kBusy)], 50u);
  EXPECT_EQ(out[static_cast<size_t>(Regime::kIdle)], 10u);
  EXPECT_EQ(out[static_cast<size_t>(Regime::kAsleep)], 1000u);
}

}  // namespace
}  // namespace ub
