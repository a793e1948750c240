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
  EXPECT_GE(r.degraded, 0.75 * r.whole) << "without that path 75 % are left";
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

// A rate that was cut comes back in milliseconds, so what DCQCN keeps depends on which packets happened to be marked.
TEST(Paths, of_dcqcn_never_stand_still) {
  for (const uint64_t seed : {1, 2, 3}) {
    const PathResult r = run_paths(*find_algorithm("dcqcn"), {.seed = seed});
    EXPECT_GE(r.degraded, 0.5 * r.whole) << seed;
    EXPECT_GE(r.cut, 0.6 * r.whole) << seed;
    EXPECT_GE(r.cut_healed, 0.9 * r.whole) << seed;
  }
}

TEST(Paths, of_which_one_of_sixty_four_is_cut_go_on) {
  for (const char* name : {"none", "caqm"}) {
    const PathResult r = run_paths(*find_algorithm(name), {.paths = 64});
    EXPECT_GE(r.cut, 0.75 * r.whole) << name;
  }
}

TEST(Paths, the_same_seed_gives_the_same_figures) {
  const Algorithm& a = *find_algorithm("caqm");
  EXPECT_EQ(run_paths(a, {.jitter = microseconds(1)}), run_paths(a, {.jitter = microseconds(1)}));
  EXPECT_NE(run_paths(a, {.jitter = microseconds(1)}), run_paths(a, {.jitter = microseconds(1), .seed = 2}));
}

}  // namespace
}  // namespace ub::bench
