// SPDX-License-Identifier: Apache-2.0
//
// Round trips (UB Base Specification Rev 2.0, 6.4.2.1): which packets give a sample, and what follows from them.
#include "lib/transport/tp/retransmission_timeout.h"
#include "tests/unit/tp/sender.h"

namespace ub::tp {
namespace {

constexpr RtoLimits kLimits{8, milliseconds(4), milliseconds(512)};

RoundTrip seen(Duration sample) {
  RoundTrip r;
  add_sample(r, sample, Instant{});
  return r;
}

TEST(RoundTrip, the_first_sample_counts_whole_and_each_further_one_an_eighth) {
  RoundTrip r;
  add_sample(r, microseconds(80), Instant{});
  EXPECT_EQ(r.smoothed, microseconds(80));
  add_sample(r, microseconds(160), Instant{});
  EXPECT_EQ(r.smoothed, microseconds(90));
  add_sample(r, microseconds(10), Instant{});
  EXPECT_EQ(r.smoothed, microseconds(80));
}

TEST(RoundTrip, deviates_by_half_of_the_first_sample_and_then_by_a_quarter_of_what_is_new) {
  RoundTrip r;
  add_sample(r, microseconds(80), Instant{});
  EXPECT_EQ(r.deviation, microseconds(40));
  add_sample(r, microseconds(160), Instant{});
  EXPECT_EQ(r.deviation, microseconds(50)) << "80 apart";
  add_sample(r, microseconds(10), Instant{});
  EXPECT_EQ(r.deviation, nanoseconds(57'500)) << "80 apart, to the other side";
}

TEST(RoundTrip, the_timeout_is_a_multiple_of_it_within_limits) {
  EXPECT_EQ(rto_of(seen(milliseconds(1)), kLimits), milliseconds(8));
  EXPECT_EQ(rto_of(seen(microseconds(1)), kLimits), milliseconds(4));
  EXPECT_EQ(rto_of(seen(seconds(1)), kLimits), milliseconds(512));
  EXPECT_EQ(backed_off(milliseconds(8), kLimits), milliseconds(16));
  EXPECT_EQ(backed_off(milliseconds(300), kLimits), milliseconds(512));
  EXPECT_EQ(backed_off(milliseconds(512), kLimits), milliseconds(512));
}

constexpr uint32_t kTimed = 6 * kPacketsPerTiming;  // a PSN whose packet is timed

TEST(RoundTrip, is_measured_from_a_packet_to_the_acknowledgement_that_covers_it) {
  Sender s(kTimed);
  s.send();
  s.pass(milliseconds(1));
  s.send();
  s.pass(milliseconds(1));
  s.ack(kTimed + 1);
  EXPECT_EQ(s.ch().round_trip.smoothed, milliseconds(2)) << "of the first of the two";
  EXPECT_EQ(s.ch().rto, milliseconds(16));
  EXPECT_EQ(s.count(Counter::kTpTimeout), 0u);
}

TEST(RoundTrip, one_packet_at_a_time_is_timed) {
  Sender s(kTimed);
  s.send_one_by_one(3);
  s.pass(milliseconds(2));
  s.ack(kTimed);
  EXPECT_EQ(s.ch().round_trip.smoothed, milliseconds(2));
  s.pass(milliseconds(50));
  s.ack(kTimed + 2);
  EXPECT_EQ(s.ch().round_trip.smoothed, milliseconds(2)) << "nobody timed those";
  s.send_one_by_one(kPacketsPerTiming - 3);
  s.send();  // the next one that is timed
  s.pass(milliseconds(10));
  s.ack(kTimed + kPacketsPerTiming);
  EXPECT_EQ(s.ch().round_trip.smoothed, milliseconds(3));
}

TEST(RoundTrip, few_packets_are_timed_where_nothing_is_lost) {
  Sender s(kPacketsPerTiming - 1);
  s.send();
  EXPECT_FALSE(s.ch().timing);
  s.send();
  EXPECT_TRUE(s.ch().timing);
  EXPECT_EQ(s.ch().timed_psn, Psn(kPacketsPerTiming));
  s.pass(milliseconds(2));
  s.ack(kPacketsPerTiming);
  EXPECT_EQ(s.ch().round_trip.smoothed, milliseconds(2));
  s.send_one_by_one(kPacketsPerTiming - 1);
  EXPECT_FALSE(s.ch().timing);
  s.send();
  EXPECT_EQ(s.ch().timed_psn, Psn(2 * kPacketsPerTiming));
}

TEST(RoundTrip, an_acknowledgement_of_earlier_packets_is_no_sample) {
  Sender s(0x1000000 - kPacketsPerTiming);
  s.send_one_by_one(3);
  s.pass(milliseconds(2));
  s.ack(0x1000000 - kPacketsPerTiming);
  s.send_one_by_one(kPacketsPerTiming - 3);
  s.send();  // 0 is timed
  s.pass(milliseconds(9));
  s.ack(0xFFFFFF);
  EXPECT_EQ(s.ch().round_trip.smoothed, milliseconds(2));
  EXPECT_TRUE(s.ch().timing);
  s.ack(0);
  EXPECT_EQ(s.ch().round_trip.smoothed, milliseconds(2) + milliseconds(7) / 8);
}

// The clock may not tell the time of a packet from that of its acknowledgement.
TEST(RoundTrip, one_that_took_no_time_says_nothing_of_when_to_ask) {
  Sender s(kTimed);
  s.ch().asks_soon = true;
  s.ch().asked = Psn(kTimed);
  s.send();
  ASSERT_TRUE(s.ch().timing);
  s.ack(kTimed);
  EXPECT_EQ(s.ch().round_trip.smoothed, Duration{});
  EXPECT_EQ(s.ch().patience, s.ch().rto);
}

// Karn: an acknowledgement of a packet that went twice does not tell which of the two it is for.
TEST(RoundTrip, a_packet_that_went_again_gives_no_sample) {
  Sender s(kTimed);
  s.send_one_by_one(3);
  s.sack(kTimed - 1, {kTimed + 1});
  EXPECT_EQ(s.resend(), (Psns{kTimed}));
  s.pass(milliseconds(9));
  s.ack(kTimed + 2);
  EXPECT_EQ(s.ch().round_trip.smoothed, Duration{});
}

TEST(RoundTrip, another_one_that_went_again_does_not_spoil_the_sample) {
  Sender s(kTimed + kPacketsPerTiming - 4);
  s.send_one_by_one(4);
  const uint32_t next = kTimed + kPacketsPerTiming;
  s.sack(next - 5, {next - 3, next - 1});
  s.sack(next - 4, {next - 3, next - 1});
  s.send();
  EXPECT_EQ(s.ch().timed_psn, Psn(next));
  EXPECT_EQ(s.resend(), (Psns{next - 2}));
  s.pass(milliseconds(8));
  s.ack(next);
  EXPECT_NE(s.ch().round_trip.smoothed, Duration{});
}

// What was timed may have arrived behind a gap long ago.
TEST(RoundTrip, a_sample_does_not_outlast_a_timeout) {
  Sender s(kTimed - 3);
  s.send_one_by_one(3);
  s.ack(kTimed - 3);
  s.send();
  EXPECT_TRUE(s.ch().timing);
  s.sack(kTimed - 3, {kTimed});
  s.timeout();
  s.resend();
  s.pass(milliseconds(300));
  s.ack(kTimed);
  EXPECT_EQ(s.ch().round_trip.smoothed, Duration{});
}

TEST(RoundTrip, nor_does_one_that_arrives_behind_a_gap_after_it) {
  Sender s(kTimed - 1);
  s.send_one_by_one(2);
  EXPECT_EQ(s.ch().timed_psn, Psn(kTimed));
  s.timeout();
  s.pass(milliseconds(300));
  s.sack(kTimed - 2, {kTimed});
  EXPECT_EQ(s.ch().round_trip.smoothed, Duration{});
}

TEST(RoundTrip, a_timeout_ends_the_measurement) {
  Sender s(kTimed);
  s.send();
  s.timeout();
  s.resend();
  const Duration rto = s.ch().rto;
  s.pass(milliseconds(1));
  s.ack(kTimed);
  EXPECT_EQ(s.ch().round_trip.smoothed, Duration{});
  EXPECT_EQ(s.ch().rto, rto) << "backed off until there is a new sample";
  s.send_one_by_one(kPacketsPerTiming - 1);
  s.ack(kTimed + kPacketsPerTiming - 1);
  s.send();
  s.pass(milliseconds(1));
  s.ack(kTimed + kPacketsPerTiming);
  EXPECT_EQ(s.ch().rto, milliseconds(8));
}

// Its deviation is half of it.
TEST(RoundTrip, after_a_single_sample_the_pause_is_four_of_them) {
  RoundTrip r;
  add_sample(r, microseconds(80), Instant{1});
  EXPECT_EQ(pause_of(r), microseconds(320));
}

// On a path that keeps the order.
TEST(RoundTrip, the_margin_is_four_deviations_and_an_eighth_of_it_at_least) {
  RoundTrip r;
  r.smoothed = microseconds(80);
  r.deviation = microseconds(3);
  EXPECT_EQ(margin_of(r), microseconds(12));
  r.deviation = microseconds(2);
  EXPECT_EQ(margin_of(r), microseconds(10));
}

TEST(RoundTrip, the_least_one_of_a_second_may_be_any_of_it) {
  RoundTrip r;
  add_sample(r, microseconds(40), Instant{1});
  add_sample(r, microseconds(10), Instant{2});
  add_sample(r, microseconds(40), Instant{1} + seconds(1));
  EXPECT_EQ(least_answer_time(r), nanoseconds(7500));
}

TEST(RoundTrip, a_new_second_begins_with_the_first_sample_after_the_last_one) {
  RoundTrip r;
  Instant now{1};
  add_sample(r, microseconds(10), now);
  add_sample(r, microseconds(40), now += seconds(1));
  add_sample(r, microseconds(40), now += milliseconds(999));
  EXPECT_EQ(least_answer_time(r), nanoseconds(7500)) << "the second of the least one was the last one";
}

// Without that no retransmission would be known to be needless in the first second of the clock.
TEST(RoundTrip, the_first_sample_behind_a_guess_begins_a_second_at_any_time) {
  RoundTrip r{microseconds(80), microseconds(25), seconds(3600), seconds(3600), {}};
  add_sample(r, microseconds(40), Instant{1});
  EXPECT_EQ(r.since, Instant{1});
  EXPECT_EQ(least_answer_time(r), microseconds(30));
}

}  // namespace
}  // namespace ub::tp
