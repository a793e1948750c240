// SPDX-License-Identifier: Apache-2.0
//
// What becomes of packets on several paths (docs/paths-design.md): what arrives and what that tells of a path, what is
// lost, and which paths are silent.
#include "lib/transport/tp/paths.h"
#include "tests/unit/tp/several_paths.h"

namespace ub::tp {
namespace {

using Counts = std::vector<uint32_t>;

constexpr Duration kTick = nanoseconds(1 << LeftAt::kShift);  // times of departure are told apart by it

// After so long without a packet, while others that left later arrive elsewhere, it is lost: paths are equally long,
// and the margin is one round trip.
constexpr Duration kLead = kRoundTrip;

// ---- arrivals --------------------------------------------------------------------------------------------------

TEST(PathArrival, tells_the_round_trip_of_its_own_path) {
  SeveralPaths s(2);
  s.send_on(0);
  s.pass(kTick * 80);
  s.send_on(1);
  s.pass(kRoundTrip);
  s.ack(101);
  EXPECT_EQ(s.path(0).round_trip.smoothed, kRoundTrip + kTick * 10);
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
  EXPECT_EQ(s.path(1).news_at, s.now);
  EXPECT_EQ(s.path(1).reach, 1u);
  EXPECT_EQ(s.path(1).arrived, 0u);
}

TEST(PathArrival, beyond_a_gap_tells_as_well) {
  SeveralPaths s(2);
  s.send_on(0);
  s.send_on(1, 2);
  s.pass(kRoundTrip + kTick * 80);
  s.sack(99, {102});
  EXPECT_EQ(s.in_flight(), (Counts{1, 1}));
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip + kTick * 10);
  EXPECT_EQ(s.path(1).reach, 2u);
  EXPECT_EQ(s.path_of(102), kNoPath);
  s.ack(102);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0})) << "once only";
}

TEST(PathArrival, beyond_a_gap_tells_as_well_where_gaps_are_left_to_the_timeout) {
  SeveralPaths s(2);
  s.ch().fast = false;
  s.send_on(0);
  s.send_on(1, 2);
  s.pass(kRoundTrip + kTick * 80);
  s.sack(99, {102});
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip + kTick * 10);
  EXPECT_EQ(s.path(1).arrived, 0u);
  EXPECT_EQ(s.acknowledged.lost, 0u);
}

TEST(PathArrival, of_several_packets_is_one_round_trip_that_of_the_newest) {
  SeveralPaths s(2);
  s.send_on(1);
  s.pass(kRoundTrip);
  s.send_on(1);
  s.pass(kRoundTrip);
  s.ack(101);
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip);
}

// That of a packet which others have overtaken would be that of the newest, measured too late.
TEST(PathArrival, of_a_packet_that_was_overtaken_measures_nothing) {
  SeveralPaths s(2);
  s.send_on(1, 2);
  s.pass(kRoundTrip);
  s.sack(99, {101});
  s.pass(milliseconds(10));
  s.ack(101);
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip);
  EXPECT_EQ(s.path(1).reach, 2u);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
}

// The peer has it, and nobody knows over which path it came.
TEST(PathArrival, sooner_than_a_round_trip_after_it_went_again_tells_nothing) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.sack(99, {101, 102, 103, 104});
  s.pass(kRoundTrip);
  ASSERT_EQ(s.resend(), Psns{100});
  ASSERT_EQ(s.path_of(100), 0);
  s.pass(kRoundTrip - kTick);
  s.ack(104);
  EXPECT_EQ(s.path(0).reach, 0u);
  EXPECT_EQ(s.path(0).round_trip.smoothed, kRoundTrip);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
}

TEST(PathArrival, a_round_trip_after_it_went_again_is_that_of_its_last_path) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.sack(99, {101, 102, 103, 104});
  ASSERT_EQ(s.resend(), Psns{100});
  s.pass(kRoundTrip + kTick);
  s.ack(104);
  EXPECT_EQ(s.path(0).reach, 1u);
  EXPECT_EQ(s.path(0).news_at, s.now);
}

TEST(PathArrival, of_what_was_taken_for_lost_makes_the_path_more_tolerant) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.sack(99, {101, 102, 103, 104});
  ASSERT_TRUE(s.departure(100).lost);
  EXPECT_EQ(s.path(1).tolerance.packets, 3);
  s.ack(104);
  EXPECT_EQ(s.path(1).tolerance.packets, 6);
  EXPECT_EQ(s.path(0).tolerance.packets, 3);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
}

// ---- packets that wait on a path -------------------------------------------------------------------------------

TEST(PathGap, is_measured_while_packets_wait) {
  SeveralPaths s(2);
  s.send_on(1, 8);
  s.pass(kRoundTrip * 2);
  s.ack(103);
  EXPECT_EQ(s.path(1).gap_ns, 0u) << "it was idle before";
  s.pass(nanoseconds(16'000));
  s.ack(107);
  EXPECT_EQ(s.path(1).gap_ns, 4'000u) << "four packets in 16 us";
}

TEST(PathGap, shrinks_when_packets_no_longer_wait) {
  SeveralPaths s(2);
  s.path(1).gap_ns = 1'600;
  s.send_on(1);
  s.pass(kRoundTrip);
  s.ack(100);
  EXPECT_EQ(s.path(1).gap_ns, 1'500u);
}

TEST(PathGap, that_is_small_vanishes) {
  SeveralPaths s(2);
  s.path(1).gap_ns = 1;
  s.send_on(1);
  s.pass(kRoundTrip);
  s.ack(100);
  EXPECT_EQ(s.path(1).gap_ns, 0u);
}

// LeftAt wraps. What left after the latest news was idle time before, however long.
TEST(PathGap, is_none_after_minutes_of_nothing) {
  SeveralPaths s(2);
  s.pass(seconds(150));
  s.send_on(1, 4);
  s.pass(kRoundTrip * 2);
  s.ack(103);
  EXPECT_EQ(s.path(1).gap_ns, 0u);
}

// ---- losses by number ------------------------------------------------------------------------------------------

TEST(PathLoss, is_what_more_than_three_have_overtaken_on_its_path) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.sack(99, {101, 102, 103});
  EXPECT_EQ(s.acknowledged.lost, 0u);
  s.sack(99, {101, 102, 103, 104});
  EXPECT_EQ(s.acknowledged.lost, 1u);
  EXPECT_TRUE(s.departure(100).lost);
  EXPECT_EQ(s.path(1).lost, 1u);
  EXPECT_TRUE(s.path(1).live);
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 1u);
}

TEST(PathLoss, is_told_once) {
  SeveralPaths s(2);
  s.send_on(1, 6);
  s.sack(99, {101, 102, 103, 104});
  s.sack(99, {101, 102, 103, 104, 105});
  EXPECT_EQ(s.acknowledged.lost, 0u);
  EXPECT_EQ(s.path(1).lost, 1u);
}

TEST(PathLoss, is_nothing_that_packets_of_other_paths_have_overtaken) {
  SeveralPaths s(2);
  s.send_on(1);
  s.send_on(0, 50);
  s.pass(kRoundTrip);
  s.sack(99, psns(101, 50));
  EXPECT_EQ(s.acknowledged.lost, 0u);
  EXPECT_EQ(s.in_flight(), (Counts{0, 1}));
}

TEST(PathLoss, is_what_fewer_have_overtaken_that_left_a_margin_later) {
  RoundTrip after = SeveralPaths(2).path(1).round_trip;  // the arrival tells a little, too
  add_sample(after, kRoundTrip, {});
  const Duration margin = margin_of(after);
  for (const Duration later : {margin - kTick, margin}) {
    SeveralPaths s(2);
    s.send_on(1);
    s.pass(later);
    s.send_on(1);
    s.pass(kRoundTrip);
    s.sack(99, {101});
    EXPECT_EQ(s.acknowledged.lost, later == margin ? 1u : 0u);
  }
}

TEST(PathLoss, is_not_judged_so_where_the_path_changes_the_order) {
  SeveralPaths s(2);
  s.path(1).tolerance.begin(10);
  s.send_on(1);
  s.pass(margin_of(s.path(1).round_trip));
  s.send_on(1, 10);
  s.sack(99, psns(101, 10));
  EXPECT_EQ(s.acknowledged.lost, 0u) << "ten may overtake it";
  s.send_on(1);
  s.sack(99, psns(101, 11));
  EXPECT_EQ(s.acknowledged.lost, 1u);
}

TEST(PathLoss, is_judged_of_what_the_report_covers_alone) {
  SeveralPaths s(2);
  s.send_on(1, 100);
  Psns beyond = psns(101, 20);
  s.sack(99, beyond);
  EXPECT_EQ(s.acknowledged.lost, 1u);
  EXPECT_FALSE(s.departure(121).lost);
}

// Its number on the other path is that of its last departure there.
TEST(PathLoss, comes_to_what_goes_again_by_its_new_path) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.sack(99, {101, 102, 103, 104});
  ASSERT_EQ(s.resend(), Psns{100});
  s.send_on(0, 4);
  s.sack(99, {101, 102, 103, 104, 105, 106, 107});
  EXPECT_EQ(s.acknowledged.lost, 0u);
  s.sack(99, {101, 102, 103, 104, 105, 106, 107, 108});
  EXPECT_EQ(s.acknowledged.lost, 1u);
  EXPECT_EQ(s.path(0).lost, 1u);
  ASSERT_EQ(s.resend(), Psns{100});
  EXPECT_EQ(s.path_of(100), 1) << "and back";
  s.ack(108);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
}

// ---- losses by others' lead ------------------------------------------------------------------------------------

TEST(PathLoss, is_what_others_have_overtaken_that_left_a_round_trip_later) {
  for (const Duration later : {kLead - kTick, kLead}) {
    SeveralPaths s(2);
    s.send_on(1);
    s.pass(later);
    s.send_on(0);
    s.pass(kRoundTrip);
    s.sack(99, {101});
    EXPECT_EQ(s.acknowledged.lost, later == kLead ? 1u : 0u);
    EXPECT_TRUE(s.path(1).live) << "one packet tells little";
  }
}

TEST(PathLoss, comes_so_much_later_as_the_path_is_longer) {
  for (const Duration later : {kRoundTrip * 9 - kTick, kRoundTrip * 9}) {
    SeveralPaths s(2);
    s.know(1, kRoundTrip * 5);
    s.send_on(1);
    s.pass(later);
    s.send_on(0);
    s.pass(kRoundTrip);
    s.sack(99, {101});
    EXPECT_EQ(s.acknowledged.lost, later == kRoundTrip * 9 ? 1u : 0u) << "four for the length, five for the margin";
  }
}

TEST(PathLoss, comes_later_where_such_packets_have_arrived_after_all) {
  SeveralPaths s(2);
  s.path(1).tolerance.begin(2 * ReorderTolerance::kLeastPackets);
  s.send_on(1);
  s.pass(kLead * 2 - kTick);
  s.send_on(0);
  s.pass(kTick);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {101});
  EXPECT_EQ(s.acknowledged.lost, 0u);
  s.sack(99, {101, 102});
  EXPECT_EQ(s.acknowledged.lost, 1u);
}

// However often that happened.
TEST(PathLoss, comes_after_eight_times_as_long_at_the_latest) {
  for (const Duration later : {kLead * 8 - kTick, kLead * 8}) {
    SeveralPaths s(2);
    s.path(1).tolerance.begin(ReorderTolerance::kMostPackets);
    s.send_on(1);
    s.pass(later);
    s.send_on(0);
    s.pass(kRoundTrip);
    s.sack(99, {101});
    EXPECT_EQ(s.acknowledged.lost, later == kLead * 8 ? 1u : 0u);
  }
}

TEST(PathLoss, comes_after_a_timeout_where_no_round_trip_is_known) {
  SeveralPaths s(2);
  s.path(1).round_trip = {};
  s.send_on(1);
  s.pass(s.ch().rto - kTick);
  s.send_on(0);
  s.pass(kTick);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {101});
  EXPECT_EQ(s.acknowledged.lost, 0u);
  s.sack(99, {101, 102});
  EXPECT_EQ(s.acknowledged.lost, 1u);
}

// What a probe sent again, and was answered, left late: all that left before is late.
TEST(PathLoss, is_told_by_a_packet_that_went_again_elsewhere) {
  SeveralPaths s(2);
  s.send_on(1, 3);
  recovery_block(*s.s, s.ch());
  ASSERT_TRUE(queue_resend(s.recovery(), Psn(102)));
  s.pass(kLead);
  ASSERT_EQ(s.resend(), Psns{102});
  ASSERT_EQ(s.path_of(102), 0);
  s.pass(kRoundTrip + kTick);
  s.sack(99, {102});
  EXPECT_EQ(s.acknowledged.lost, 2u);
}

// LeftAt wraps, and what arrived minutes ago is no later than what leaves now.
TEST(PathLoss, is_nothing_only_because_minutes_went_by_without_a_packet) {
  for (const Duration idle : {seconds(100), seconds(150), seconds(250)}) {
    SeveralPaths s(2);
    s.send_on(0);
    s.pass(kRoundTrip);
    s.ack(100);
    s.pass(idle);
    s.send_on(0);
    s.send_on(1, 2);
    s.pass(kRoundTrip);
    s.sack(100, {103});
    EXPECT_EQ(s.acknowledged.lost, 0u) << idle.ns;
    EXPECT_EQ(s.in_flight(), (Counts{1, 1})) << idle.ns;
  }
}

// ---- silence ---------------------------------------------------------------------------------------------------

TEST(SilentPath, has_several_packets_under_way_and_none_of_them_arrives) {
  SeveralPaths s(2);
  s.send_on(1, 3);
  s.pass(kLead);
  s.send_on(1, 20);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {123});
  EXPECT_FALSE(s.path(1).live);
  EXPECT_EQ(s.path(1).deaths, 1u);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
  EXPECT_EQ(s.path(1).lost, 23u) << "all of them";
  EXPECT_EQ(s.acknowledged.lost, 23u);
  EXPECT_EQ(s.resend(), psns(100, 23));
  EXPECT_EQ(s.in_flight(), (Counts{23, 0}));
  s.ack(123);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
}

TEST(SilentPath, is_one_with_a_single_packet_after_twice_the_time) {
  SeveralPaths s(2);
  s.send_on(1);
  s.pass(kLead * 2);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {101});
  EXPECT_FALSE(s.path(1).live);
  EXPECT_EQ(s.acknowledged.lost, 1u);
}

TEST(SilentPath, is_none_on_which_something_arrived_that_left_later) {
  SeveralPaths s(2);
  s.send_on(1, 3);
  s.pass(kLead * 2);
  s.send_on(1);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {103, 104});
  EXPECT_EQ(s.acknowledged.lost, 3u);
  EXPECT_TRUE(s.path(1).live);
}

TEST(SilentPath, is_not_judged_by_packets_that_left_before_it_lived_again) {
  SeveralPaths s(2);
  s.send_on(1, 3);
  suspect_path(*s.s, s.channel, 1, s.now);
  path_answers(*s.s, s.channel, 1, s.now, kRoundTrip);
  s.pass(kLead);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {103});
  EXPECT_TRUE(s.path(1).live);
}

TEST(SilentPath, goes_on_if_it_is_the_last_one) {
  SeveralPaths s(2);
  s.send_on(1, 3);
  s.send_on(0);
  suspect_path(*s.s, s.channel, 0, s.now);
  s.pass(kLead * 3);
  s.block().latest_left = LeftAt::of(s.now);
  s.sack(99, {103});
  EXPECT_TRUE(s.path(1).live);
  EXPECT_EQ(s.path(1).deaths, 0u);
  EXPECT_EQ(s.acknowledged.lost, 3u);
}

TEST(SilentPath, may_be_one_of_several) {
  SeveralPaths s(3);
  s.send_on(1, 3);
  s.send_on(2, 3);
  s.pass(kLead * 2);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {106});
  EXPECT_FALSE(s.path(1).live || s.path(2).live);
  EXPECT_EQ(s.acknowledged.lost, 6u);
  EXPECT_EQ(s.count(Counter::kTpPathDead), 2u);
}

// Fewer packets than tell of a loss leave behind each packet of the path, and a probe sends each of them again. The
// path must not go on for ever, a pause for each of its packets.
TEST(SilentPath, is_one_of_which_nothing_but_probes_recovers_packets) {
  SeveralPaths s(3);
  for (uint32_t n = 0; n < 3; ++n) {
    EXPECT_TRUE(s.path(1).live) << n;
    const uint32_t psn = 100 + 2 * n;
    s.send_on(1);
    s.pass(kTick);
    s.send_on(0);
    s.pass(kRoundTrip);
    s.sack(psn - 1, {psn + 1});
    ASSERT_EQ(s.acknowledged.lost, 0u);
    ASSERT_TRUE(queue_resend(s.recovery(), Psn(psn)));
    ASSERT_EQ(s.resend(), Psns{psn});
    s.pass(kRoundTrip);
    s.ack(psn + 1);
  }
  EXPECT_FALSE(s.path(1).live);
}

// The rest of a burst goes again with the first packet of it that a probe sends, and not two packets for each probe.
TEST(SilentPath, loses_the_rest_of_a_burst_with_what_a_probe_sends_again) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.pass(kTick);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {105});
  ASSERT_EQ(s.acknowledged.lost, 0u);
  ASSERT_TRUE(queue_resend(s.recovery(), Psn(100)));
  EXPECT_EQ(s.resend(), psns(100, 5));
  EXPECT_FALSE(s.path(1).live);
  EXPECT_EQ(s.path(1).lost, 5u);
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 4u) << "the first one is the probe's";
  EXPECT_EQ(s.in_flight(), (Counts{5, 0}));
  s.ack(105);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
}

// A probe asks where answers are late everywhere, too.
TEST(SilentPath, is_none_if_a_probe_asks_before_anything_that_left_later_has_arrived) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.send_on(0);
  recovery_block(*s.s, s.ch());
  ASSERT_TRUE(queue_resend(s.recovery(), Psn(100)));
  EXPECT_EQ(s.resend(), Psns{100});
  EXPECT_TRUE(s.path(1).live);
}

TEST(SilentPath, is_none_if_one_of_two_packets_goes_again) {
  SeveralPaths s(2);
  s.send_on(1, 2);
  s.pass(kTick);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {102});
  ASSERT_TRUE(queue_resend(s.recovery(), Psn(100)));
  EXPECT_EQ(s.resend(), Psns{100});
  EXPECT_TRUE(s.path(1).live);
}

// ---- living again ----------------------------------------------------------------------------------------------

TEST(PathThatLivesAgain, knows_the_round_trip_of_the_answer) {
  SeveralPaths s(2);
  s.send_on(1, 4);
  s.path(1).gap_ns = 777;
  s.path(1).asked = 9;
  suspect_path(*s.s, s.channel, 1, s.now);
  s.pass(seconds(3));
  path_answers(*s.s, s.channel, 1, s.now, kRoundTrip * 3);
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip * 3);
  EXPECT_EQ(s.path(1).gap_ns, 0u);
  EXPECT_EQ(s.path(1).asked, 0);
  EXPECT_EQ(s.path(1).news_at, s.now);
}

TEST(PathThatLivesAgain, learns_nothing_from_what_left_before) {
  SeveralPaths s(2);
  s.send_on(1, 4);
  s.timeout();
  ASSERT_TRUE(s.departure(100).lost);
  suspect_path(*s.s, s.channel, 1, s.now);
  s.pass(milliseconds(50));
  path_answers(*s.s, s.channel, 1, s.now, kRoundTrip);
  s.pass(microseconds(1));
  s.ack(103);
  EXPECT_EQ(s.path(1).round_trip.smoothed, kRoundTrip);
  EXPECT_EQ(s.path(1).gap_ns, 0u);
}

// ---- timeouts --------------------------------------------------------------------------------------------------

TEST(PathTimeout, loses_all_that_is_in_flight) {
  SeveralPaths s(2);
  s.send_on(0, 2);
  s.send_on(1, 3);
  s.timeout();
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
  EXPECT_EQ(s.path(0).lost, 2u);
  EXPECT_EQ(s.path(1).lost, 3u);
  EXPECT_EQ(s.resend(), psns(100, 5));
}

TEST(PathTimeout, suspects_the_path_without_news_for_as_long) {
  SeveralPaths s(3);
  s.send_on(0, 2);
  s.send_on(1, 3);
  s.pass(s.ch().rto_at - s.now);
  s.path(0).news_at = s.now - s.ch().rto;
  s.path(1).news_at = s.now - s.ch().rto * 3;
  s.timeout();
  EXPECT_TRUE(s.path(0).live);
  EXPECT_FALSE(s.path(1).live);
  EXPECT_TRUE(s.path(2).live) << "it owes nothing";
}

TEST(PathTimeout, counts_each_packet_as_lost_once) {
  SeveralPaths s(2);
  s.send_on(1, 5);
  s.sack(99, {101, 102, 103, 104});
  s.timeout();
  EXPECT_EQ(s.path(1).lost, 1u);
}

TEST(PathTimeout, of_go_back_n_moves_it_to_a_path_that_lives) {
  SeveralPaths s(2);
  s.ch().go_back_n = true;
  s.send_on(0, 3);
  ASSERT_EQ(s.in_flight(), (Counts{3, 0}));
  s.pass(seconds(1));
  s.ch().rto_at = s.now;
  s.timeout();
  EXPECT_FALSE(s.path(0).live);
  EXPECT_EQ(s.resend(), psns(100, 3));
  EXPECT_EQ(s.in_flight(), (Counts{0, 3}));
  s.send_on(0);
  EXPECT_EQ(s.path_of(103), 1);
}

TEST(PathLoss, of_go_back_n_is_all_from_the_report_on) {
  SeveralPaths s(2);
  s.ch().go_back_n = true;
  s.send_on(0, 5);
  s.nak(102);
  EXPECT_EQ(s.acknowledged.lost, 3u);
  EXPECT_EQ(s.path(0).lost, 3u);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
  EXPECT_TRUE(s.path(0).live);
}

// ---- wraps -----------------------------------------------------------------------------------------------------

TEST(PathNumbers, wrap) {
  for (const uint32_t newest : {0xfffdu, 0xfffffdu, 0xfffffffdu}) {
    SeveralPaths s(2);
    s.path(1).newest = s.path(1).reach = newest;
    s.send_on(1, 3);
    s.sack(99, {101, 102});
    EXPECT_EQ(s.path(1).reach, newest + 3);
    s.send_on(1, 3);
    s.sack(99, {101, 102, 103});
    EXPECT_EQ(s.acknowledged.lost, 0u);
    s.sack(99, {101, 102, 103, 104});
    EXPECT_EQ(s.acknowledged.lost, 1u) << newest;
    s.ack(105);
    EXPECT_EQ(s.path(1).reach, newest + 6);
    EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
  }
}

TEST(PathNumbers, do_not_care_about_the_wrap_of_psns) {
  SeveralPaths s(2, cc::Algorithm::kLossWindow, 0xfffffe);
  s.send_on(1, 5);
  s.sack(0xfffffd, {0xffffff, 0, 1, 2});
  EXPECT_EQ(s.acknowledged.lost, 1u);
  EXPECT_EQ(s.resend(), Psns{0xfffffe});
  s.ack(2);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
}

TEST(PathTimes, wrap) {
  SeveralPaths s(2);
  s.now = Instant{(uint64_t{1} << (32 + LeftAt::kShift)) - 6'400};
  for (uint8_t path : {0, 1}) s.know(path);
  s.send_on(1);
  s.pass(kLead - kTick);
  s.send_on(0);
  s.pass(kTick);
  s.send_on(0);
  s.pass(kRoundTrip);
  s.sack(99, {101});
  EXPECT_EQ(s.acknowledged.lost, 0u);
  s.sack(99, {101, 102});
  EXPECT_EQ(s.acknowledged.lost, 1u);
  EXPECT_LT((s.path(0).round_trip.smoothed - kRoundTrip).ns, kTick.ns);
}

TEST(PathNumbers, of_the_whole_window_are_told_apart) {
  CoreConfig config = several_paths();
  config.window_packets = kMaxWindow;
  SeveralPaths s(2, cc::Algorithm::kNone, 100, config);
  for (int round = 0; round < 40; ++round) {
    s.send_on(1, kMaxWindow / 2);
    s.ack((s.ch().next_psn - 1).value());
  }
  EXPECT_EQ(s.path(1).reach, 40u * kMaxWindow / 2);
  EXPECT_EQ(s.in_flight(), (Counts{0, 0}));
}

}  // namespace
}  // namespace ub::tp
