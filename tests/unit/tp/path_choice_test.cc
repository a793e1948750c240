// SPDX-License-Identifier: Apache-2.0
//
// Which of several paths a packet takes, by what is known of each.
#include "lib/transport/tp/path_choice.h"

#include <gtest/gtest.h>

#include <vector>

namespace ub::tp {
namespace {

constexpr Duration kRoundTrip = microseconds(20);
constexpr Instant kNow{1'000'000'000};

Path path(Duration round_trip = kRoundTrip, uint32_t in_flight = 0, uint32_t room = 100) {
  Path p{};
  p.live = true;
  p.round_trip = {round_trip, {}, round_trip, round_trip, kNow};
  p.in_flight = in_flight;
  p.room = room;
  p.news_at = kNow;
  return p;
}

uint8_t choose(const std::vector<Path>& paths) {
  PathChoice choice{.now = kNow};
  for (size_t i = 0; i < paths.size(); ++i) choice.consider(static_cast<uint8_t>(i), paths[i]);
  return choice.best;
}

// ---- room ------------------------------------------------------------------------------------------------------

TEST(PathRoom, ends_with_the_last_packet_that_may_be_in_flight) {
  EXPECT_TRUE(has_room(path(kRoundTrip, 9, 10), kNow));
  EXPECT_FALSE(has_room(path(kRoundTrip, 10, 10), kNow));
}

TEST(PathRoom, is_none_while_the_rate_lets_nothing_leave) {
  Path p = path();
  p.flow.next_packet = kNow + nanoseconds(1);
  EXPECT_FALSE(has_room(p, kNow));
  EXPECT_TRUE(has_room(p, kNow + nanoseconds(1)));
}

TEST(PathRoom, is_the_window_where_no_packets_wait) {
  Path p = path();
  p.flow.window_packets = 77;
  EXPECT_EQ(room_on(p, kRoundTrip), 77u);
}

TEST(PathRoom, on_a_slow_path_is_what_arrives_within_two_round_trips_of_the_fastest) {
  Path p = path();
  p.flow.window_packets = 77;
  p.gap_ns = 4'000;
  EXPECT_EQ(room_on(p, kRoundTrip), 10u);
  p.gap_ns = 100;
  EXPECT_EQ(room_on(p, kRoundTrip), 77u) << "never more than the window";
}

TEST(PathRoom, is_one_packet_at_least) {
  Path p = path();
  p.gap_ns = 1'000'000'000;
  EXPECT_EQ(room_on(p, kRoundTrip), 1u);
}

// ---- the expected arrival --------------------------------------------------------------------------------------

TEST(ExpectedArrival, is_a_round_trip_and_an_eighth_of_it_for_each_packet_in_flight) {
  EXPECT_EQ(expected_ns(path(kRoundTrip, 0)), 20'000u);
  EXPECT_EQ(expected_ns(path(kRoundTrip, 1)), 22'500u);
  EXPECT_EQ(expected_ns(path(kRoundTrip, 8)), 40'000u);
}

TEST(ExpectedArrival, waits_for_those_in_front_where_packets_wait) {
  Path p = path(kRoundTrip, 7);
  p.gap_ns = 2'000;
  EXPECT_EQ(expected_ns(p), 20'000u + 17'500u) << "eight gaps are shorter than a round trip";
  p.gap_ns = 10'000;
  EXPECT_EQ(expected_ns(p), 80'000u + 17'500u);
}

TEST(ExpectedArrival, goes_by_the_least_round_trip_not_by_the_usual_one) {
  Path p = path();
  p.round_trip.smoothed = kRoundTrip * 5;
  EXPECT_EQ(expected_ns(p), 20'000u);
}

TEST(ExpectedArrival, of_packets_that_wait_by_long_gaps_does_not_wrap) {
  Path p = path(kRoundTrip, 2047);
  p.gap_ns = 1'000'000'000;
  EXPECT_GT(expected_ns(p), 2'000'000'000'000u);
}

// ---- what is forgotten -----------------------------------------------------------------------------------------

TEST(ForgottenPath, had_no_news_for_sixteen_round_trips_and_nothing_is_on_its_way) {
  Path p = path();
  p.news_at = kNow - kRoundTrip * 16;
  EXPECT_FALSE(is_forgotten(p, kNow));
  EXPECT_TRUE(is_forgotten(p, kNow + nanoseconds(1)));
  p.in_flight = 1;
  EXPECT_FALSE(is_forgotten(p, kNow + seconds(1)));
}

TEST(ForgottenPath, gets_one_packet_although_it_was_slow) {
  Path slow = path(kRoundTrip * 10);
  slow.gap_ns = 1'000'000;
  EXPECT_EQ(choose({path(), slow}), 0);
  slow.news_at = kNow - seconds(1);
  EXPECT_EQ(choose({path(), slow}), 1);
  slow.in_flight = 1;
  EXPECT_EQ(choose({path(), slow}), 0);
}

// Else a path that is broken would be tried with each packet that finds it empty.
TEST(ForgottenPath, is_tried_half_as_often_for_each_packet_of_which_nothing_was_heard) {
  Path p = path();
  p.newest = 10;
  for (const uint32_t unanswered : {0u, 1u, 2u, 5u}) {
    p.reach = p.newest - unanswered;
    p.news_at = kNow - kRoundTrip * (16 << unanswered);
    EXPECT_FALSE(is_forgotten(p, kNow)) << unanswered;
    EXPECT_TRUE(is_forgotten(p, kNow + nanoseconds(1))) << unanswered;
  }
  p.reach = 0;
  p.news_at = kNow - kRoundTrip * (16 << 6) - nanoseconds(1);
  EXPECT_TRUE(is_forgotten(p, kNow)) << "but it is";
}

TEST(ForgottenPath, that_has_no_room_gets_none) {
  Path paced = path();
  paced.news_at = kNow - seconds(1);
  paced.flow.next_packet = kNow + nanoseconds(1);
  EXPECT_EQ(choose({path(kRoundTrip, 50), paced}), 0);
}

// ---- the choice ------------------------------------------------------------------------------------------------

TEST(PathChoice, is_the_first_arrival) {
  EXPECT_EQ(choose({path(kRoundTrip * 2), path(), path(kRoundTrip * 3)}), 1);
  EXPECT_EQ(choose({path(kRoundTrip, 3), path(kRoundTrip, 2), path(kRoundTrip, 4)}), 1);
}

TEST(PathChoice, among_equals_is_the_first) { EXPECT_EQ(choose({path(), path(), path()}), 0); }

TEST(PathChoice, is_a_longer_path_when_the_short_one_is_busy_enough) {
  EXPECT_EQ(choose({path(kRoundTrip, 8), path(kRoundTrip * 2)}), 0) << "equal";
  EXPECT_EQ(choose({path(kRoundTrip, 9), path(kRoundTrip * 2)}), 1);
}

TEST(PathChoice, is_one_that_has_room_however_late_a_packet_arrives_there) {
  EXPECT_EQ(choose({path(kRoundTrip, 10, 10), path(kRoundTrip * 9)}), 1);
  EXPECT_EQ(choose({path(kRoundTrip * 9), path(kRoundTrip, 10, 10)}), 0);
}

TEST(PathChoice, where_none_has_room_is_the_first_arrival) {
  EXPECT_EQ(choose({path(kRoundTrip, 10, 10), path(kRoundTrip, 9, 9), path(kRoundTrip, 12, 12)}), 1);
}

TEST(PathChoice, without_any_is_none) { EXPECT_EQ(choose({}), kNoPath); }

// ---- when a packet left ----------------------------------------------------------------------------------------

TEST(LeftAt, tells_times_apart_by_64_ns) {
  const LeftAt left = LeftAt::of(kNow);
  EXPECT_EQ(left.before(LeftAt::of(kNow + nanoseconds(6'400))).ns, 6'400);
  EXPECT_EQ(LeftAt::of(kNow + nanoseconds(6'400)).before(left).ns, -6'400);
}

TEST(LeftAt, tells_them_apart_across_its_wrap) {
  const Instant wrap{uint64_t{1} << (32 + LeftAt::kShift)};
  const LeftAt left = LeftAt::of(wrap - microseconds(64));
  EXPECT_EQ(LeftAt::of(wrap).ticks, 0u);
  EXPECT_EQ(left.before(LeftAt::of(wrap + microseconds(64))).ns, 128'000);
  EXPECT_EQ(LeftAt::of(wrap + microseconds(64)).before(left).ns, -128'000);
}

}  // namespace
}  // namespace ub::tp
