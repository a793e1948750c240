// SPDX-License-Identifier: Apache-2.0
//
// What a channel notes of packets in flight (recovery.h): how long it keeps that, what it knows of retransmissions, and
// what follows from a report that does not reach all of them (UB Base Specification Rev 2.0, 6.4.2.3).
#include "lib/transport/tp/recovery.h"

#include "lib/transport/tp/retransmission_timeout.h"
#include "tests/unit/tp/sender.h"
#include "tests/unit/transport/test_host.h"

namespace ub::tp {
namespace {

constexpr Duration kRoundTrip = microseconds(80);

// What judge_overdue() finds lost goes again.
Psns lost_after_the_pause(Sender& s) {
  Psn first;
  const uint32_t lost = judge_overdue(*s.s, s.ch(), &first);
  const Psns again = s.resend();
  EXPECT_EQ(again.size(), lost);
  EXPECT_TRUE(again.empty() || first == Psn(again.front()));
  return again;
}

// ---- how long the block lives ----------------------------------------------------------------------------------

// The packet that has arrived is farther from the oldest one than the bitmap of its report reaches.
struct FarReport : Sender {
  FarReport() : Sender(100) {
    ch().tolerance.begin(200);
    send(120);
    sack(99, {219});
  }
};

TEST(RecoveryBlock, is_kept_for_a_retransmission_that_waits_for_memory) {
  Sender s(100);
  s.send();
  s.timeout();
  resend_waits(s.recovery(), Psn(100));
  s.sack(99, {});
  ASSERT_NE(s.ch().recovery, 0u);
  EXPECT_TRUE(goes_again(s.recovery(), Psn(100)));
}

// It notes of no packet that it has arrived or goes again.
TEST(RecoveryBlock, is_kept_while_a_pause_passes) {
  FarReport s;
  EXPECT_TRUE(s.resend().empty());
  ASSERT_NE(s.ch().recovery, 0u);
  EXPECT_FALSE(s.recovery().judge_at.is_never());
}

TEST(RecoveryBlock, is_given_back_during_a_pause_when_nothing_is_in_flight) {
  Sender s(100);
  s.ch().tolerance.begin(64);
  s.send(4);
  s.sack(99, {102});
  ASSERT_NE(s.ch().recovery, 0u);
  EXPECT_FALSE(s.recovery().judge_at.is_never());
  s.ack(103);
  EXPECT_EQ(s.ch().recovery, 0u);
  EXPECT_EQ(s.s->recovery.in_use(), 0u);
}

TEST(RecoveryBlock, does_not_outlast_a_report_of_packets_never_sent) {
  Sender s(100);
  s.send(3);
  s.sack(100, {150});
  EXPECT_EQ(s.ch().recovery, 0u);
}

TEST(RecoveryBlock, notes_of_a_packet_that_it_went_again) {
  Sender s(100);
  s.send(4);
  s.sack(99, {101});
  EXPECT_EQ(s.resend(), Psns{100});
  EXPECT_FALSE(nothing_noted(*s.s, s.ch(), Psn(100)));
}

// ---- records of retransmissions --------------------------------------------------------------------------------

TEST(Retransmissions, an_acknowledgement_ends_the_records_of_those_that_arrived_among_the_64_oldest) {
  for (const uint32_t older : {63u, 64u}) {
    Sender s(100);
    s.send(80);
    s.timeout();
    s.resend();
    ASSERT_EQ(s.records().size(), 80u);
    s.sack(99, {100 + older}, 1);
    EXPECT_EQ(s.records().size(), older < 64 ? 79u : 80u) << older << " are older";
  }
}

TEST(Retransmissions, an_acknowledgement_without_a_bitmap_answers_them_too) {
  Sender s(100);
  add_sample(s.ch().round_trip, kRoundTrip, s.now);
  s.ch().tolerance.begin(1);
  s.send(10);
  s.sack(99, {103});
  EXPECT_EQ(s.resend(), (Psns{100, 101}));
  s.pass(kRoundTrip / 2);
  s.ack(100);
  EXPECT_EQ(s.records(), (std::vector<Sender::Record>{{101, 110, 2}}));
  EXPECT_EQ(s.ch().tolerance.packets, 2) << "the answer was too early to be one to the retransmission";
}

// ---- what is lost ----------------------------------------------------------------------------------------------

TEST(Judgement, what_waits_to_go_again_is_not_lost_once_more) {
  Sender s(100);
  s.send(6);
  s.timeout();
  s.sack(99, {103});
  EXPECT_EQ(s.acknowledged.lost, 0u);
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 0u);
  EXPECT_EQ(s.resend(), (Psns{100, 101, 102, 104, 105}));
}

TEST(Judgement, what_was_judged_is_not_looked_at_again) {
  Sender s(100);
  s.ch().tolerance.begin(4);
  s.send(20);
  s.sack(99, {110});
  EXPECT_EQ(s.recovery().border, Psn(106));
  s.ack(107);
  EXPECT_EQ(s.recovery().border, Psn(108)) << "what is acknowledged is not looked at, either";
}

// A retransmission that is lost again has a lower number than what was sent after it, and is found after that.
TEST(Judgement, names_the_lowest_packet_of_those_lost_for_the_first_time_and_again) {
  Sender s(100);
  TestHost host;
  s.s->looker.begin(host);
  s.send(6);
  s.sack(99, {101});
  EXPECT_EQ(s.resend(), Psns{100});
  s.send(2);
  s.sack(99, {101, 107});
  EXPECT_EQ(host.noted(Stage::kPacketsLost).back(), (Note{Stage::kPacketsLost, s.channel, 6, 100}));
}

TEST(Judgement, of_retransmissions_beyond_the_bitmap_too_nothing_is_said) {
  Sender s(100);
  s.send(200);
  s.timeout();
  resent(*s.s, s.ch(), Psn(180), s.now);  // the others wait
  s.send(2);
  s.sack(99, {301});
  EXPECT_EQ(s.acknowledged.lost, 0u) << "the bitmap ends at 162";
  EXPECT_FALSE(goes_again(s.recovery(), Psn(180)));
}

// ---- after a pause ---------------------------------------------------------------------------------------------

TEST(Judgement, after_a_pause_packets_beyond_the_bitmap_are_not_lost) {
  FarReport s;
  EXPECT_EQ(lost_after_the_pause(s), psns(100, 62)) << "162 is the last one of the bitmap: it overtook the others";
}

TEST(Judgement, after_a_pause_one_retransmission_that_was_sent_later_is_enough) {
  Sender s(100);
  add_sample(s.ch().round_trip, kRoundTrip, s.now);
  s.ch().tolerance.begin(3);
  s.send(5);
  s.sack(99, {104});
  EXPECT_EQ(s.resend(), Psns{100});
  EXPECT_EQ(lost_after_the_pause(s), (Psns{101, 102, 103}));
  s.pass(kRoundTrip);
  s.sack(99, {102, 104});
  EXPECT_TRUE(s.resend().empty()) << "two were sent after 100";
  EXPECT_EQ(lost_after_the_pause(s), (Psns{100, 101})) << "103 was sent after 102";
}

TEST(Judgement, no_pause_begins_for_packets_that_are_known_as_lost_and_wait_for_memory) {
  Sender s(100);
  s.send(4);
  s.sack(99, {102});
  resend_waits(s.recovery(), Psn(100));
  s.sack(99, {102});
  EXPECT_EQ(s.recovery().resend_count, 1u);
  EXPECT_TRUE(s.recovery().judge_at.is_never());
}

}  // namespace
}  // namespace ub::tp
