// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <tuple>

#include "dataplane/helper_policy.h"

namespace ub {
namespace {

using Place = HelperPolicy::Place;

constexpr Duration kLong = milliseconds(10);  // so that no number of drives used here is "all the time"

// How often it has to wake like that until it thinks that the application polls; 99: so often that it never will.
int wakes_until_away(HelperPolicy& policy, bool found, uint64_t drives, Duration slept) {
  int wakes = 0;
  while (!policy.application_polls() && wakes < 99) {
    policy.woke(found, drives, slept);
    ++wakes;
  }
  return wakes;
}

TEST(HelperPolicy, polls__not_before_something_was_seen) { EXPECT_FALSE(HelperPolicy().application_polls()); }

TEST(HelperPolicy, polls__who_drove_and_left_nothing_twice) {
  HelperPolicy policy;
  EXPECT_EQ(wakes_until_away(policy, false, 4, kLong), 2);
}

TEST(HelperPolicy, polls__not_who_drove_thrice) {
  HelperPolicy policy;
  EXPECT_EQ(wakes_until_away(policy, false, 3, kLong), 99);
  EXPECT_EQ(wakes_until_away(policy, false, 0, kLong), 99);
  EXPECT_EQ(wakes_until_away(policy, false, 4, kLong), 2) << "what tells nothing changes nothing";
}

// Frames that were left to us, once, and it takes eight wakes for nothing, however often that happened.
TEST(HelperPolicy, trust__one_frame_found_restores_it_all) {
  HelperPolicy policy;
  policy.woke(true, 4, kLong);
  EXPECT_EQ(wakes_until_away(policy, false, 4, kLong), 8);
  for (int i = 0; i < 100; ++i) policy.woke(true, 0, kLong);
  EXPECT_FALSE(policy.application_polls());
  // A poller of before that leaves frames to us.
  HelperPolicy back;
  for (int i = 0; i < 50; ++i) back.woke(true, 0, kLong);
  EXPECT_EQ(wakes_until_away(back, false, 4, kLong), 8);
}

// To have found frames says nothing if the application would have found them, too.
TEST(HelperPolicy, polls__who_drives_all_the_time_though_frames_were_found) {
  for (bool found : {false, true}) {
    HelperPolicy policy;
    policy.woke(false, 0, kLong);
    EXPECT_EQ(wakes_until_away(policy, found, 32, nanoseconds(32 * 200)), 1) << found;
    HelperPolicy trusted;
    trusted.woke(true, 0, kLong);
    EXPECT_EQ(wakes_until_away(trusted, found, 32, nanoseconds(32 * 200)), 2) << found;
  }
}

// Where each look is a system call, fewer of them are all the time.
TEST(HelperPolicy, all_the_time__by_udp) {
  for (const auto& [slept, all_the_time] : {std::pair{32 * 12'000, true}, {32 * 12'000 + 1, false}}) {
    HelperPolicy policy;
    policy.woke(true, 32, nanoseconds(slept), HelperPolicy::kTurnOfUdp);
    EXPECT_EQ(policy.application_polls(), all_the_time) << slept;
  }
}

// Nobody drove, and who shares our CPU had no chance to: frames that were found then restore no trust.
TEST(HelperPolicy, trust__not_by_frames_that_came_at_once) {
  HelperPolicy policy;
  policy.woke(true, 0, nanoseconds(49'999));
  EXPECT_EQ(wakes_until_away(policy, false, 4, kLong), 2);
  HelperPolicy slower, driven;
  slower.woke(true, 0, nanoseconds(50'000));
  EXPECT_EQ(wakes_until_away(slower, false, 4, kLong), 8);
  driven.woke(true, 1, nanoseconds(1));
  EXPECT_EQ(wakes_until_away(driven, false, 4, kLong), 8);
}

// 32 drives at least, one each 200 ns at least.
TEST(HelperPolicy, all_the_time__bounds) {
  struct {
    uint64_t drives;
    int64_t slept_ns;
    bool all_the_time;
  } const cases[] = {
      {31, 0, false},        {31, 31 * 200, false},     {32, 0, true},
      {32, 32 * 200, true},  {32, 32 * 200 + 1, false}, {33, 33 * 200, true},
      {1000, 200'000, true}, {1000, 200'001, false},
  };
  for (const auto& c : cases) {
    HelperPolicy policy;
    policy.woke(true, c.drives, nanoseconds(c.slept_ns));
    EXPECT_EQ(policy.application_polls(), c.all_the_time) << c.drives << " drives in " << c.slept_ns << " ns";
  }
}

// Whoever is met inside the Core, and has driven twice, drives all the time, however long its turns are.
TEST(HelperPolicy, all_the_time__who_is_met) {
  for (const auto& [drives, met, all_the_time] :
       {std::tuple{2, true, true}, {1, true, false}, {2, false, false}, {0, true, false}}) {
    for (bool found : {false, true}) {
      HelperPolicy policy;
      policy.woke(found, static_cast<uint64_t>(drives), kLong, HelperPolicy::kTurnOfMemory, met);
      EXPECT_EQ(policy.application_polls(), all_the_time) << drives << met << found;
    }
  }
}

// Half of the trust is lost each time, so that what is left of it may be less than that.
TEST(HelperPolicy, trust__never_falls_below_nothing) {
  HelperPolicy policy;
  policy.woke(true, 0, kLong);                               // 8
  for (int i = 0; i < 5; ++i) policy.woke(false, 4, kLong);  // 3
  policy.woke(false, 100, nanoseconds(1));
  EXPECT_TRUE(policy.application_polls());
  for (int i = 0; i < 3; ++i) {
    policy.woke(false, 100, nanoseconds(1));
    policy.woke(false, 100, kLong);
    EXPECT_TRUE(policy.application_polls());
  }
}

TEST(HelperPolicy, polls__until_it_stopped__and_then_as_at_first) {
  HelperPolicy policy;
  policy.woke(true, 0, kLong);
  policy.woke(false, 100, nanoseconds(1));
  policy.woke(false, 100, nanoseconds(1));
  ASSERT_TRUE(policy.application_polls());
  policy.application_stopped();
  EXPECT_FALSE(policy.application_polls());
  EXPECT_EQ(wakes_until_away(policy, false, 4, kLong), 2);
}

// ---- where it runs ----

TEST(HelperPolicy, place__anywhere_before_four_rings_from_one_cpu) {
  HelperPolicy policy;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(policy.answered(5, true), Place{}) << i;
  EXPECT_EQ(policy.answered(5, true), (Place{5, false}));
  EXPECT_EQ(policy.answered(5, true), (Place{5, false}));
}

TEST(HelperPolicy, place__away_from_one_that_polls) {
  HelperPolicy policy;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(policy.answered(0, false), Place{}) << i;
  EXPECT_EQ(policy.answered(0, false), (Place{0, true}));
}

// It stays where it is until something else happened as often.
TEST(HelperPolicy, place__rings_in_a_row_are_of_one_cpu_and_one_kind) {
  HelperPolicy policy;
  for (int i = 0; i < 4; ++i) policy.answered(5, true);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(policy.answered(i % 2, true), (Place{5, false})) << i;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(policy.answered(6, i % 2 == 0), (Place{5, false})) << i;
  policy.answered(7, true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(policy.answered(6, false), (Place{5, false})) << i;
  EXPECT_EQ(policy.answered(6, false), (Place{6, true}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(policy.answered(6, true), (Place{6, true})) << i;
  EXPECT_EQ(policy.answered(6, true), (Place{6, false}));
}

TEST(HelperPolicy, place__unknown_ringers_leave_it_anywhere) {
  HelperPolicy policy;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(policy.answered(HelperPolicy::kAnyCpu, i < 5).cpu, HelperPolicy::kAnyCpu) << i;
  }
  for (int i = 0; i < 4; ++i) policy.answered(3, true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(policy.answered(HelperPolicy::kAnyCpu, true), (Place{3, false})) << i;
  EXPECT_EQ(policy.answered(HelperPolicy::kAnyCpu, true), Place{});
}

// What it learned of CPUs and of polling are two things.
TEST(HelperPolicy, place__stays_when_the_application_stops_polling) {
  HelperPolicy policy;
  for (int i = 0; i < 4; ++i) policy.answered(5, true);
  policy.woke(false, 100, nanoseconds(1));
  policy.application_stopped();
  EXPECT_EQ(policy.answered(1, true), (Place{5, false}));
}

}  // namespace
}  // namespace ub
