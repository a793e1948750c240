// SPDX-License-Identifier: Apache-2.0
//
// Bounds of what path_table prints.
#include <gtest/gtest.h>

#include <string>

#include "tests/bench/path_scenarios.h"

namespace ub::bench {
namespace {

class PathTable : public testing::TestWithParam<const char*> {
 protected:
  const Algorithm& algorithm() const { return *find_algorithm(GetParam()); }
  double one_path() const { return run_paths(algorithm(), {.paths = 1}).whole; }
};

TEST_P(PathTable, four_paths_are_as_good_as_one_of_their_sum) {
  EXPECT_GE(run_paths(algorithm(), {}).whole, 0.95 * one_path());
}

TEST_P(PathTable, a_path_at_a_tenth_of_its_rate_costs_no_more_than_itself) {
  const PathResult r = run_paths(algorithm(), {});
  // LDCP keeps 66 %: the windows of its paths are small, and one packet on the slow path holds up many (docs/paths.md).
  const double least = algorithm().control == cc::Control::kLdcp ? 0.6 : 0.75;
  EXPECT_GE(r.degraded, least * r.whole) << "without that path 75 % are left";
  EXPECT_GE(r.degraded_healed, 0.95 * r.whole);
}

TEST_P(PathTable, a_cut_path_is_done_without_within_ten_round_trips_and_used_again) {
  const PathResult r = run_paths(algorithm(), {});
  EXPECT_LE(r.stall, r.round_trip * 10);
  EXPECT_GE(r.cut, 0.65 * r.whole) << "without that path 75 % are left";
  EXPECT_GE(r.cut_healed, 0.95 * r.whole);
  EXPECT_GE(r.deaths, 1u);
  EXPECT_EQ(r.lives, 6 + r.deaths) << "three of each lane began, and what died came back";
}

TEST_P(PathTable, sixty_four_paths_with_jitter_are_nearly_as_good_as_one) {
  const PathResult r = run_paths(algorithm(), {.paths = 64, .jitter = microseconds(5)});
  EXPECT_GE(r.whole, 0.9 * one_path());
}

INSTANTIATE_TEST_SUITE_P(Algorithms, PathTable, testing::Values("none", "caqm", "ldcp", "swift"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Paths, the_same_seed_gives_the_same_figures) {
  const Algorithm& a = *find_algorithm("caqm");
  EXPECT_EQ(run_paths(a, {.jitter = microseconds(1)}), run_paths(a, {.jitter = microseconds(1)}));
  EXPECT_NE(run_paths(a, {.jitter = microseconds(1)}), run_paths(a, {.jitter = microseconds(1), .seed = 2}));
}

}  // namespace
}  // namespace ub::bench
