// SPDX-License-Identifier: Apache-2.0
// The clock of a driver that is away now and then.
#include "lib/base/driver_clock.h"

#include <gtest/gtest.h>

namespace ub {
namespace {
constexpr Instant kNever = Instant::never();

struct Driven {
  DriverClock clock;
  Instant deadline = kNever, slept;
  int64_t away_ms = 0;

  // The clock, in ms, of a turn at so many ms of the real one.
  int64_t at(int64_t ms) {
    const Instant real{static_cast<uint64_t>(milliseconds(ms).ns)};
    if (!clock.is_steady(real)) away_ms += clock.turn_after_gap(real, deadline, slept).ms();
    return static_cast<int64_t>(clock.turn(real).ns / 1'000'000);
  }
  void due(int64_t ms) { deadline = Instant{static_cast<uint64_t>(milliseconds(ms).ns)}; }
  void sleep(int64_t ms) { slept = Instant{static_cast<uint64_t>(milliseconds(ms).ns)}; }
};

TEST(DriverClock, with_a_turn_now_and_then__is_the_real_one) {
  Driven d;
  d.due(1);
  for (int64_t t = 0; t < 10'000; t += 50) EXPECT_EQ(d.at(t), t);
  EXPECT_EQ(d.away_ms, 0);
}

TEST(DriverClock, away_while_something_is_due_soon__counts_one_turn) {
  Driven d;
  EXPECT_EQ(d.at(10), 10);
  d.due(14);
  EXPECT_EQ(d.at(6000), 60);
  EXPECT_EQ(d.at(6010), 70);
  EXPECT_EQ(d.away_ms, 5940);
  EXPECT_EQ(d.clock.real_time_of(Instant{70'000'000}).ns, 6'010'000'000u);
}

TEST(DriverClock, away_beyond_a_deadline__stops_before_it_and_reaches_it_in_turns) {
  Driven d;
  d.due(4300);
  EXPECT_EQ(d.at(10), 10);
  EXPECT_EQ(d.at(9000), 4100);
  for (int64_t turn = 1; turn <= 4; ++turn) EXPECT_EQ(d.at(9000 + turn * 3000), 4100 + turn * 50);
}

TEST(DriverClock, away_with_nothing_due_before_long__counts) {
  Driven d;
  d.due(60'000);
  EXPECT_EQ(d.at(10), 10);
  EXPECT_EQ(d.at(8000), 8000);
  d.deadline = kNever;
  EXPECT_EQ(d.at(90'000), 90'000);
  EXPECT_EQ(d.clock.real_time_of(kNever), kNever);
}

TEST(DriverClock, asleep_with_nothing_there__counts_and_one_turn_more) {
  Driven d;
  d.due(4300);
  EXPECT_EQ(d.at(10), 10);
  d.sleep(4300);
  EXPECT_EQ(d.at(4301), 4301);
  d.due(8000);
  d.sleep(8000);
  EXPECT_EQ(d.at(12'000), 8050);
  d.due(8100);
  EXPECT_EQ(d.at(13'000), 8100);  // that sleep is over
}

TEST(DriverClock, asleep_before_it_was_away__loses_only_the_rest) {
  Driven d;
  d.due(2);
  EXPECT_EQ(d.at(0), 0);
  EXPECT_EQ(d.at(5000), 50);
  d.due(51);
  d.sleep(5002);
  EXPECT_EQ(d.at(7000), 102);
}

TEST(DriverClock, real_clock_that_goes_back__stands) {
  Driven d;
  EXPECT_EQ(d.at(40), 40);
  EXPECT_EQ(d.at(39), 40);
  EXPECT_EQ(d.at(49), 50);
  EXPECT_EQ(d.away_ms, -1);
}

}  // namespace
}  // namespace ub
