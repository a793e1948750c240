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

TEST_F(StarvationTest, NothingToReadIsUnseen) {
  EXPECT_EQ(judge({}), Condition::kUnseen);
  EXPECT_EQ(judge({{1, 'S', {}, {}, 5}}), Condition::kUnclear);
  EXPECT_EQ(judge({}), Condition::kUnseen);
  EXPECT_EQ(judge({{1, 'Z', {}, {}, 5}}), Condition::kUnseen) << "dead";
}

TEST_F(StarvationTest, OneReadingTellsOnlyThatItIsStopped) {
  for (char state : {'R', 'S', 'D', 'I', '?'}) {
    judge_.forget();
    EXPECT_EQ(judge({{1, state, {}, {}, 5}}), Condition::kUnclear) << state;
  }
  for (char state : {'T', 't'}) {
    judge_.forget();
    EXPECT_EQ(judge({{1, state, {}, {}, 5}, {2, 'Z', {}, {}, 5}}), Condition::kStopped) << state;
  }
}

TEST_F(StarvationTest, ForgettingIsBeginningAgain) {
  judge({{1, 'R', {}, {}, 5}});
  judge_.forget();
  EXPECT_EQ(judge({{1, 'R', {}, {}, 5}}), Condition::kUnclear);
  EXPECT_EQ(judge({{1, 'R', {}, {}, 5}}), Condition::kStarved);
}

TEST_F(StarvationTest, AThreadThatWantsToRunAndNeverDid) {
  judge({{1, 'S', {}, {}, 5}, {2, 'R', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'S', {}, {}, 5}, {2, 'R', seconds(3), seconds(1), 70}}), Condition::kStarved);
}

TEST_F(StarvationTest, AThreadThatRanForAMomentBetweenLongWaits) {
  judge({{1, 'S', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'R', seconds(3) + milliseconds(3), seconds(1) + milliseconds(90), 71}}), Condition::kStarved);
}

TEST_F(StarvationTest, WhoSleptAndWokeJustNowIsNotStarved) {
  judge({{1, 'S', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'R', seconds(3), seconds(1), 70}}), Condition::kAsleep);
  EXPECT_EQ(judge({{1, 'R', seconds(3), seconds(1), 70}}), Condition::kStarved) << "and wants to run since";
}

TEST_F(StarvationTest, WhoWaitedAndSleepsNowCouldHaveCopied) {
  judge({{1, 'R', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'S', seconds(3) + milliseconds(1), seconds(1) + milliseconds(150), 71}}), Condition::kAsleep);
}

TEST_F(StarvationTest, WhoRanCouldHaveCopied) {
  judge({{1, 'R', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'R', seconds(3) + kBetween, seconds(1), 70}}), Condition::kRan) << "all the time";
  EXPECT_EQ(judge({{1, 'R', seconds(3) + kBetween + milliseconds(20), seconds(1) + milliseconds(140), 90}}),
            Condition::kRan)
      << "an eighth of the time";
}

TEST_F(StarvationTest, WhoNapsWithAFreeCpuIsNotStarved) {
  judge({{1, 'R', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'R', seconds(3) + milliseconds(1), seconds(1) + microseconds(500), 170}}), Condition::kAsleep);
}

TEST_F(StarvationTest, SleepInTheKernelIsSleep) {
  judge({{1, 'D', seconds(3), seconds(1), 70}});
  EXPECT_EQ(judge({{1, 'D', seconds(3), seconds(1), 70}}), Condition::kAsleep);
}

// The one that copies, or what it waits for: which one that is the kernel does not say.
TEST_F(StarvationTest, OneStarvedThreadIsEnough) {
  judge({{1, 'R', seconds(3), seconds(1), 70}, {2, 'S', {}, {}, 1}, {7, 'R', {}, {}, 3}});
  EXPECT_EQ(judge({{1, 'R', seconds(3) + kBetween, seconds(1), 70}, {2, 'S', {}, {}, 1}, {7, 'R', {}, {}, 3}}),
            Condition::kStarved);
}

TEST_F(StarvationTest, ThreadsThatCameOrWentProveNothing) {
  judge({{1, 'S', {}, {}, 5}, {3, 'R', {}, {}, 0}});
  EXPECT_EQ(judge({{1, 'S', {}, {}, 5}, {2, 'R', {}, {}, 0}, {4, 'R', {}, {}, 0}}), Condition::kAsleep);
}

TEST_F(StarvationTest, StoppedByHalvesIsJudgedByTheOtherHalf) {
  judge({{1, 'T', {}, {}, 5}, {2, 'R', {}, {}, 8}});
  EXPECT_EQ(judge({{1, 'T', {}, {}, 5}, {2, 'R', {}, {}, 8}}), Condition::kStarved);
  EXPECT_EQ(judge({{1, 'T', {}, {}, 5}, {2, 'S', {}, {}, 8}}), Condition::kAsleep);
}

}  // namespace
}  // namespace ub
