// SPDX-License-Identifier: Apache-2.0
// Starved or stuck, by made-up readings: the kernel's numbers for each kind of process.
#include "dataplane/softubd/starvation.h"

#include <gtest/gtest.h>

namespace ub {
namespace {

constexpr Duration kBetween = milliseconds(160);

class StarvationTest : public testing::Test {
 protected:
  Condition judge(std::vector<ThreadReading> threads) {
    now += kBetween;
    return judge_.judge({now, std::move(threads)});
  }
  Instant now = Instant{} + seconds(1000);
  StarvationJudge judge_;
};

TEST_F(StarvationTest, nothing_to_read_is_unseen) {
  EXPECT_EQ(judge({}), Condition::kUnseen);
  EXPECT_EQ(judge({{1, 'S', {}, {}, 5}}), Condition::kUnclear);
  EXPECT_EQ(judge({}), Condition::kUnseen);
  EXPECT_EQ(judge({{1, 'Z', {}, {}, 5}}), Condition::kUnseen) << "dead";
}

TEST_F(StarvationTest, one_reading_tells_only_that_it_is_stopped) {
  for (char state : {'R', 'S', 'D', 'I', '?'}) {
    judge_.forget();
    EXPECT_EQ(judge({{1, state, {}, {}, 5}}), Condition::kUnclear) << state;
  }
  for (char state : {'T', 't'}) {
    judge_.forget();
    EXPECT_EQ(judge({{1, state, {}, {}, 5}, {2, 'Z', {}, {}, 5}}), Condition::kStopped) << state;
  }
}

TEST_F(StarvationTest, forgetting_is_beginning_again) {
  judge({{1, 'R', {}, {}, 5}});
  judge_.forget();
  EXPECT_EQ(judge({{1, 'R', {}, {}, 5}}), Condition::kUnclear);
  EXPECT_EQ(judge({{1, 'R', {}, {}, 5}}), Condition::kStarved);
}

TEST_F(StarvationTest, a_thread_that_wants_to_run_and_never_did) {
  judge({{1, 'S', {}, {}, 5}, {2, 'R', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'S', {}, {}, 5}, {2, 'R', seconds(3), seconds(1), 70}}), Condition::kStarved);
}

TEST_F(StarvationTest, a_thread_that_ran_for_a_moment_between_long_waits) {
  judge({{1, 'S', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'R', seconds(3) + milliseconds(3), seconds(1) + milliseconds(90), 71}}), Condition::kStarved);
}

TEST_F(StarvationTest, who_slept_and_woke_just_now_is_not_starved) {
  judge({{1, 'S', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'R', seconds(3), seconds(1), 70}}), Condition::kAsleep);
  EXPECT_EQ(judge({{1, 'R', seconds(3), seconds(1), 70}}), Condition::kStarved) << "and wants to run since";
}

TEST_F(StarvationTest, who_waited_and_sleeps_now_could_have_copied) {
  judge({{1, 'R', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'S', seconds(3) + milliseconds(1), seconds(1) + milliseconds(150), 71}}), Condition::kAsleep);
}

TEST_F(StarvationTest, who_ran_could_have_copied) {
  judge({{1, 'R', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'R', seconds(3) + kBetween, seconds(1), 70}}), Condition::kRan) << "all the time";
  EXPECT_EQ(judge({{1, 'R', seconds(3) + kBetween + milliseconds(20), seconds(1) + milliseconds(140), 90}}),
            Condition::kRan)
      << "an eighth of the time";
}

TEST_F(StarvationTest, who_naps_with_a_free_cpu_is_not_starved) {
  judge({{1, 'R', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'R', seconds(3) + milliseconds(1), seconds(1) + microseconds(500), 170}}), Condition::kAsleep);
}

TEST_F(StarvationTest, sleep_in_the_kernel_is_sleep) {
  judge({{1, 'D', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'D', seconds(3), seconds(1), 70}}), Condition::kAsleep);
}

// The one that copies, or what it waits for: which one that is the kernel does not say.
TEST_F(StarvationTest, one_starved_thread_is_enough) {
  judge({{1, 'R', seconds(3), seconds(1), 70}, {2, 'S', {}, {}, 1}, {7, 'R', {}, {}, 3}});
  EXPECT_EQ(judge({{1, 'R', seconds(3) + kBetween, seconds(1), 70}, {2, 'S', {}, {}, 1}, {7, 'R', {}, {}, 3}}),
            Condition::kStarved);
}

TEST_F(StarvationTest, threads_that_came_or_went_prove_nothing) {
  judge({{1, 'S', {}, {}, 5}, {3, 'R', {}, {}, 0}});
  EXPECT_EQ(judge({{1, 'S', {}, {}, 5}, {2, 'R', {}, {}, 0}, {4, 'R', {}, {}, 0}}), Condition::kAsleep);
}

TEST_F(StarvationTest, stopped_by_halves_is_judged_by_the_other_half) {
  judge({{1, 'T', {}, {}, 5}, {2, 'R', {}, {}, 8}});
  EXPECT_EQ(judge({{1, 'T', {}, {}, 5}, {2, 'R', {}, {}, 8}}), Condition::kStarved);
  EXPECT_EQ(judge({{1, 'T', {}, {}, 5}, {2, 'S', {}, {}, 8}}), Condition::kAsleep);
}

}  // namespace
}  // namespace ub
