// SPDX-License-Identifier: Apache-2.0
//
// When a packet is taken for lost on a network that also changes the order, by the packets sent later and by time
// (recovery.h), and how much out of order they may come (reorder_tolerance.h; UB Base Specification Rev 2.0, 6.4.2).
#include "tests/unit/tp/lossy.h"

namespace ub::tp {
namespace {

// ---- by the number of packets that were sent later -------------------------------------------------------------

TEST(Lost, a_packet_is_lost_when_more_than_the_tolerance_were_sent_after_it) {
  Lossy s(100, 4);
  s.send_one_by_one(20);
  s.sack(99, {104});
  EXPECT_TRUE(s.resend().empty()) << "104 is the fourth one after 100";
  s.sack(99, {104, 105});
  EXPECT_EQ(s.resend(), Psns{100});
  s.sack(99, {104, 105, 107});
  EXPECT_EQ(s.resend(), (Psns{101, 102}));
}

TEST(Lost, across_the_wrap) {
  Lossy s(0xFFFFFD, 4);
  s.send_one_by_one(20);
  s.sack(0xFFFFFC, {1});
  EXPECT_TRUE(s.resend().empty());
  s.sack(0xFFFFFC, {1, 3});
  EXPECT_EQ(s.resend(), (Psns{0xFFFFFD, 0xFFFFFE}));
}

TEST(Lost, what_arrives_within_the_tolerance_never_goes_again) {
  Lossy s(100, 4);
  s.send_one_by_one(20);
  s.sack(99, {104});
  s.sack(99, {101, 102, 103, 104});
  s.sack(104, {108});
  s.sack(108, {});
  EXPECT_TRUE(s.resend().empty());
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 0u);
}

// What is beyond the bitmap has arrived or not: nobody said it.
TEST(Lost, what_the_report_does_not_cover_is_not_judged) {
  Lossy s(100, 4);
  s.send_one_by_one(120);
  wire::SackView sack;
  std::byte bytes[wire::sack_size(0)];
  const uint64_t bits[1] = {1};
  ASSERT_EQ(wire::SackView::read(bytes, wire::write_sack(bytes, 0, Psn(219), bits), sack), wire::Drop::kNone);
  wire::RtpHeader rtp;
  rtp.psn = Psn(99);
  EXPECT_EQ(on_sack(*s.s, s.channel, s.now, rtp, sack).lost, 63u) << "219 has arrived, and 64 bits say of which others";
  EXPECT_EQ(s.resend(), psns(100, 63));
}

TEST(Lost, a_report_speaks_of_all_packets_of_its_bitmap) {
  Lossy s(100, 64);
  s.send_one_by_one(80);
  s.sack(99, {162});
  ASSERT_NE(s.ch().recovery, 0u);
  EXPECT_TRUE(arrived(s.recovery(), s.ch(), Psn(162))) << "the last one of 64 bits";
}

TEST(Lost, a_report_of_fewer_packets_takes_nothing_back) {
  Lossy s(100, 64);
  s.send_one_by_one(20);
  s.sack(99, {110});
  s.sack(99, {105});
  EXPECT_EQ(s.recovery().reach, Psn(110));
}

TEST(Lost, a_report_of_the_only_packet_in_flight_counts) {
  Lossy s(100, 64);
  s.send();
  s.sack(99, {100});
  ASSERT_NE(s.ch().recovery, 0u);
  EXPECT_TRUE(arrived(s.recovery(), s.ch(), Psn(100)));
}

TEST(Lost, a_report_of_nothing_new_leaves_no_block) {
  Lossy s(100, 64);
  s.send_one_by_one(2);
  s.sack(99, {});
  EXPECT_EQ(s.s->recovery.in_use(), 0u);
}

// ---- retransmissions -------------------------------------------------------------------------------------------

TEST(Lost, a_retransmission_when_more_than_the_tolerance_were_sent_after_it) {
  Lossy s(100, 4);
  s.send_one_by_one(6);
  s.sack(99, {105});
  EXPECT_EQ(s.resend(), Psns{100});
  s.send_one_by_one(10);  // 106 ..
  s.sack(99, psns(101, 13));
  EXPECT_EQ(s.ch().tolerance.packets, 8) << "101 was late by four";
  EXPECT_TRUE(s.resend().empty()) << "106 to 113 are eight";
  s.sack(99, psns(101, 14));
  EXPECT_EQ(s.resend(), Psns{100});
}

// Nothing new is sent while the window is closed, but retransmissions that arrive prove the older ones lost.
TEST(Lost, a_retransmission_when_later_ones_have_arrived) {
  Lossy s(100, 1);
  s.send_one_by_one(10);
  s.sack(99, {102, 104, 106, 109});
  EXPECT_EQ(s.resend(), (Psns{100, 101, 103, 105, 107}));
  s.pass(Lossy::kRoundTrip);
  s.sack(99, {101, 102, 104, 106, 109});
  EXPECT_EQ(s.resend(), Psns{108}) << "two were sent after it, and one after 100";
  s.sack(99, {101, 102, 103, 104, 106, 109});
  EXPECT_EQ(s.resend(), Psns{100}) << "two were";
}

TEST(Lost, an_answer_that_comes_too_early_is_none_to_a_retransmission) {
  Lossy s(100, 1);
  s.send_one_by_one(10);
  s.sack(99, {102, 104, 106, 109});
  s.resend();
  s.pass(Lossy::kRoundTrip / 2);
  s.sack(99, {101, 102, 103, 104, 105, 106, 107, 109});
  EXPECT_TRUE(s.resend().empty()) << "the first packets were late";
  EXPECT_EQ(s.count(Counter::kTpTxNeedless), 4u);
  EXPECT_GE(s.ch().tolerance.packets, 16);
}

TEST(Lost, an_answer_may_be_one_to_a_retransmission_after_the_least_time_of_one) {
  for (const bool too_early : {true, false}) {
    Lossy s(100, 1);
    s.send_one_by_one(10);
    s.sack(99, {102});
    EXPECT_EQ(s.resend(), Psns{100});
    s.pass(least_answer_time(s.ch().round_trip) - nanoseconds(too_early ? 1 : 0));
    s.sack(100, {102});
    EXPECT_EQ(s.count(Counter::kTpTxNeedless), too_early ? 1u : 0u);
  }
}

TEST(Lost, without_a_record_a_retransmission_waits_for_a_probe) {
  Lossy s(100, 1);
  while (s.s->resent.alloc() != 0) {
  }
  s.send_one_by_one(4);
  s.sack(99, {102});
  EXPECT_EQ(s.resend(), Psns{100});
  EXPECT_TRUE(s.records().empty());
  s.send_one_by_one(10);
  s.sack(99, psns(101, 12));
  EXPECT_TRUE(s.resend().empty());
  for (int i = 0; i < 2; ++i) {  // the newest packet did not ask, so it has more time once
    s.now = s.ch().rto_at;
    s.s->timers.cancel(s.s->timer_of_channel(s.channel));
    EXPECT_EQ(on_timer(*s.s, s.channel, s.now), TimerVerdict::kGoesOn);
  }
  const Psns again = s.resend();
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again.front(), 100u);
}

TEST(Lost, all_records_are_given_back) {
  Lossy s(100, 1);
  s.send_one_by_one(40);
  for (uint32_t psn = 102; psn < 130; psn += 2) s.sack(99, {psn});
  s.resend();
  EXPECT_NE(s.s->resent.in_use(), 0u);
  s.ack(139);
  EXPECT_EQ(s.s->resent.in_use(), 0u);
}

TEST(Lost, all_records_are_given_back_when_the_channel_ends) {
  Lossy s(100, 1);
  s.send_one_by_one(10);
  s.sack(99, {104});
  s.resend();
  EXPECT_NE(s.s->resent.in_use(), 0u);
  free_recovery(*s.s, s.ch());
  EXPECT_EQ(s.s->resent.in_use() + s.s->recovery.in_use(), 0u);
}

TEST(Lost, a_packet_has_one_record_however_often_it_goes_again) {
  Lossy s(100, 1);
  s.send_one_by_one(10);
  s.sack(99, {102});
  ASSERT_EQ(s.resend(), Psns{100});
  queue_resend(s.recovery(), Psn(100));
  s.resend();
  const auto records = s.records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].number, 2u) << "of the last time";
}

TEST(Lost, a_record_ends_when_its_packet_has_arrived_though_older_ones_stay) {
  Lossy s(100, 1);
  s.send_one_by_one(10);
  s.sack(99, {103});
  ASSERT_EQ(s.resend(), (Psns{100, 101}));
  s.pass(Lossy::kRoundTrip);
  s.sack(99, {101, 103});
  ASSERT_EQ(s.records().size(), 1u);
  EXPECT_EQ(s.records()[0].psn, 100u);
}

TEST(Lost, a_timeout_ends_all_records) {
  Lossy s(100, 1);
  s.send_one_by_one(10);
  s.sack(99, {104});
  s.resend();
  ASSERT_FALSE(s.records().empty());
  s.timeout();
  EXPECT_TRUE(s.records().empty());
}

TEST(Lost, a_new_block_knows_what_was_acknowledged) {
  Lossy s(100);
  const RecoveryBlock& r = recovery_block(*s.s, s.ch());
  EXPECT_EQ(r.reach, Psn(99));
  EXPECT_EQ(r.late.mark, Psn(99));
  EXPECT_EQ(r.border, Psn(100));
}

// ---- by time ---------------------------------------------------------------------------------------------------

TEST(Lost, after_a_pause_one_packet_that_was_sent_later_is_enough) {
  Lossy s(100, 64);
  s.send_one_by_one(4);
  s.pass(Lossy::kRoundTrip);
  s.sack(99, {102});
  EXPECT_TRUE(s.resend().empty());
  const Instant lost_at = s.now + pause_of(s.ch().round_trip);
  while (s.now < lost_at) {
    EXPECT_TRUE(s.resend().empty());
    s.timer();
  }
  EXPECT_EQ(s.now, lost_at);
  EXPECT_EQ(s.resend(), (Psns{100, 101}));
}

TEST(Lost, on_a_path_that_keeps_the_order_the_pause_is_short) {
  Lossy s(100, ReorderTolerance::kLeastPackets);
  s.send_one_by_one(4);
  s.pass(Lossy::kRoundTrip);
  s.sack(99, {102});
  const Instant heard = s.now;
  s.timer();
  EXPECT_EQ(s.now, heard + margin_of(s.ch().round_trip));
  EXPECT_EQ(s.resend(), (Psns{100, 101}));
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 2u);
}

TEST(Lost, what_has_arrived_within_the_pause_does_not_go_again) {
  Lossy s(100, ReorderTolerance::kLeastPackets);
  s.send_one_by_one(4);
  s.sack(99, {102});
  s.sack(100, {102});
  s.timer();
  EXPECT_EQ(s.resend(), Psns{101});
}

// A packet that 64 large ones overtake is late by more than a pause.
TEST(Lost, the_pause_begins_anew_while_so_many_overtake_that_their_number_will_tell) {
  Lossy s(100, 64);
  s.send_one_by_one(40);
  s.sack(99, {102});
  const Duration pause = pause_of(s.ch().round_trip);
  const Instant lost_at = s.now + pause;
  s.pass(pause / 2);
  s.sack(99, psns(101, 9));
  EXPECT_EQ(s.recovery().judge_at, lost_at) << "109 is the seventh one since 102";
  s.sack(99, psns(101, 10));
  EXPECT_EQ(s.recovery().judge_at, s.now + pause) << "110 is the eighth one, an eighth of the tolerance";
}

TEST(Lost, before_the_round_trip_is_known_by_time_only_after_a_timeout) {
  Lossy s(100, 64);
  s.ch().round_trip = {};
  s.send_one_by_one(4);
  s.sack(99, {102});
  EXPECT_EQ(s.recovery().judge_at, s.now + s.ch().rto);
}

// ---- the tolerance ---------------------------------------------------------------------------------------------

TEST(ReorderTolerance, is_halved_while_packets_come_in_order) {
  ReorderTolerance t;
  t.begin(64);
  for (uint32_t expected : {32u, 16u, 8u, 4u, 3u, 3u}) {
    t.acknowledged(ReorderTolerance::kTrialPackets - 1);
    EXPECT_NE(t.packets, expected == 3 ? 0 : expected);
    t.acknowledged(1);
    EXPECT_EQ(t.packets, expected);
  }
  EXPECT_TRUE(t.keeps_order());
}

TEST(ReorderTolerance, stays_while_a_packet_comes_late_by_more_than_half_of_it) {
  ReorderTolerance t;
  t.begin(64);
  t.came_late(33);
  t.acknowledged(ReorderTolerance::kTrialPackets);
  EXPECT_EQ(t.packets, 64);
  t.came_late(32);
  t.acknowledged(ReorderTolerance::kTrialPackets);
  EXPECT_EQ(t.packets, 32);
}

TEST(ReorderTolerance, no_packet_of_a_new_trial_was_late) {
  ReorderTolerance t;
  t.begin(64);
  t.came_late(40);
  EXPECT_EQ(t.latest, 40);
  t.acknowledged(ReorderTolerance::kTrialPackets);
  EXPECT_EQ(t.latest, 0);
}

TEST(ReorderTolerance, hears_of_each_packet_that_is_acknowledged) {
  Lossy s(100, 64);
  for (uint32_t psn = 100; psn < 100 + ReorderTolerance::kTrialPackets; ++psn) {
    s.send();
    s.ack(psn);
  }
  EXPECT_EQ(s.ch().tolerance.packets, 32);
}

TEST(ReorderTolerance, grows_at_once_and_has_an_end) {
  ReorderTolerance t;
  t.begin(4);
  t.came_late(20);
  EXPECT_EQ(t.packets, 20);
  t.was_too_small();
  EXPECT_EQ(t.packets, 40);
  t.came_late(100'000);
  EXPECT_EQ(t.packets, ReorderTolerance::kMostPackets);
  t.was_too_small();
  EXPECT_EQ(t.packets, ReorderTolerance::kMostPackets);
}

TEST(ReorderTolerance, learns_from_packets_that_fill_a_gap_and_not_from_those_that_went_again) {
  Lossy s(100, 10);
  s.send_one_by_one(60);
  s.sack(99, {108});
  s.sack(108, {});
  EXPECT_EQ(s.ch().tolerance.latest, 2 * 8) << "100 came when 108 had";
  s.sack(108, {130});
  s.resend();
  s.sack(130, {});
  EXPECT_EQ(s.ch().tolerance.latest, 2 * 16) << "114 came late; 109 to 113 went again";
}

TEST(ReorderTolerance, does_not_fall_below_64_while_any_packet_is_late) {
  Lossy s(100, 64);
  s.send_one_by_one(30);
  s.sack(99, {101});
  s.sack(101, {});
  s.ch().tolerance.acknowledged(ReorderTolerance::kTrialPackets);
  EXPECT_EQ(s.ch().tolerance.packets, 64);
  s.ch().tolerance.acknowledged(ReorderTolerance::kTrialPackets);
  EXPECT_EQ(s.ch().tolerance.packets, 32) << "all of these came in order";
}

// A window of 2048 packets is longer than the bitmap. What lies beyond it has arrived in order, and is told later.
TEST(ReorderTolerance, learns_nothing_from_packets_that_no_report_covered) {
  Lossy s(100, 64);
  s.send_one_by_one(300);
  for (uint32_t highest : {162u, 399u}) {
    wire::SackView sack;
    std::byte bytes[wire::sack_size(0)];
    const uint64_t bits[1] = {~uint64_t{2}};  // 100 is missing
    ASSERT_EQ(wire::SackView::read(bytes, wire::write_sack(bytes, 0, Psn(highest), bits), sack), wire::Drop::kNone);
    wire::RtpHeader rtp;
    rtp.psn = Psn(99);
    (void)on_sack(*s.s, s.channel, s.now, rtp, sack);
  }
  EXPECT_EQ(s.resend(), Psns{100});
  s.pass(Lossy::kRoundTrip);
  s.ack(399);
  EXPECT_EQ(s.ch().tolerance.packets, 64) << "163 and those behind it were beyond the bitmap";
}

TEST(RoundTrip, the_least_one_is_forgotten_after_two_seconds) {
  RoundTrip r;
  Instant now;
  add_sample(r, microseconds(10), now);
  add_sample(r, microseconds(40), now += milliseconds(999));
  EXPECT_EQ(least_answer_time(r), nanoseconds(7500));
  add_sample(r, microseconds(40), now += milliseconds(1));
  EXPECT_EQ(least_answer_time(r), nanoseconds(7500)) << "of the second before";
  add_sample(r, microseconds(20), now += seconds(1));
  EXPECT_EQ(least_answer_time(r), microseconds(15));
}

}  // namespace
}  // namespace ub::tp
