// SPDX-License-Identifier: Apache-2.0
//
// What the timer of a channel finds whose peer says nothing, or nothing of some packets (transmit_state.h), and what
// may leave meanwhile (UB Base Specification Rev 2.0, 6.4.2).
#include "lib/transport/tp/held_packets.h"
#include "tests/unit/tp/lossy.h"
#include "tests/unit/transport/test_host.h"

namespace ub::tp {
namespace {

// ---- a pause ---------------------------------------------------------------------------------------------------

TEST(Pause, another_report_does_not_put_it_off) {
  Lossy s(100, ReorderTolerance::kLeastPackets);
  s.send_one_by_one(6);
  s.sack(99, {102});
  const Instant end = s.recovery().judge_at;
  s.pass(microseconds(1));
  s.sack(99, {102, 103});
  EXPECT_EQ(s.recovery().judge_at, end);
}

TEST(Pause, nor_does_one_that_reaches_less_far) {
  Lossy s(100, 64);
  s.send(100);
  s.sack(99, {163}, 1);
  const Instant end = s.recovery().judge_at;
  s.pass(microseconds(1));
  s.sack(99, {101});
  EXPECT_EQ(s.recovery().judge_at, end);
}

TEST(Pause, a_single_packet_that_is_lost_after_it_counts_and_has_its_turn) {
  Lossy s(100, ReorderTolerance::kLeastPackets);
  s.send_one_by_one(2);
  s.sack(99, {101});
  EXPECT_FALSE(s.ch().on_active_list);
  s.timer();
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 1u);
  EXPECT_TRUE(s.ch().on_active_list);
  EXPECT_EQ(s.resend(), Psns{100});
}

TEST(Pause, after_it_a_block_that_says_nothing_is_given_back) {
  Lossy s(100, ReorderTolerance::kLeastPackets);
  s.send_one_by_one(4);
  s.sack(99, {102});
  s.ack(102);
  EXPECT_NE(s.ch().recovery, 0u);
  s.timer();
  EXPECT_EQ(s.ch().recovery, 0u);
}

TEST(Pause, a_timer_that_fires_early_is_set_to_its_end_again) {
  Lossy s(100, ReorderTolerance::kLeastPackets);
  s.send_one_by_one(4);
  s.sack(99, {102});
  const Instant end = s.recovery().judge_at;
  s.s->timers.cancel(s.s->timer_of_channel(s.channel));
  s.pass(microseconds(1));
  EXPECT_EQ(on_timer(*s.s, s.channel, s.now), TimerVerdict::kGoesOn);
  EXPECT_EQ(s.s->timers.earliest(), end);
}

// ---- probes ----------------------------------------------------------------------------------------------------

TEST(Probe, has_its_turn_with_the_newest_packet_that_has_not_arrived) {
  Lossy s;
  s.ch().fast = false;
  s.ch().asked = Psn(104);
  s.send_one_by_one(5);
  s.pass(Lossy::kRoundTrip);
  s.sack(99, {104});
  s.timer();  // set when they were sent
  s.timer();
  EXPECT_TRUE(s.ch().on_active_list);
  EXPECT_EQ(s.resend(), (Psns{100, 103}));
}

// The peer acknowledges nothing new: it has no room yet.
TEST(Probe, the_second_one_does_not_wait_for_a_delayed_acknowledgement) {
  Lossy s;
  s.ch().asked = Psn(100);
  s.send_one_by_one(2);
  s.timer();
  s.timer();
  EXPECT_EQ(s.count(Counter::kTpTxProbe), 1u);
  s.resend();
  s.ack(99);
  s.timer();
  EXPECT_EQ(s.count(Counter::kTpTxProbe), 2u);
}

TEST(Probe, news_after_a_single_one_make_the_pause_short_again) {
  Lossy s;
  s.ch().asked = Psn(103);
  s.send_one_by_one(4);
  s.timer();
  EXPECT_EQ(s.ch().probes, 1);
  s.sack(99, {102});
  EXPECT_EQ(s.ch().probes, 0);
  EXPECT_EQ(s.ch().patience, pause_of(s.ch().round_trip));
}

TEST(Probe, none_leaves_while_a_packet_waits_for_memory) {
  Lossy s(100, 4, with_slow_memory());
  TxMessage& m = s.send(1, false);
  s.ch().asked = Psn(100);
  HeldFrame& h = take_held(*s.s, s.channel);
  h.message = &m;
  h.psn = next_new_psn(s.ch());
  h.pending = 1;
  append_held(*s.s, s.channel, h, s.now);
  s.timer();
  EXPECT_EQ(s.count(Counter::kTpTxProbe), 0u);
  EXPECT_EQ(s.count(Counter::kTpTimeout), 1u);
}

// ---- timeouts --------------------------------------------------------------------------------------------------

TEST(Timeout, is_noted_with_what_waits_for_memory_too) {
  Sender s(100);
  TestHost host;
  s.send(3);
  s.timeout();
  resend_waits(s.recovery(), Psn(100));
  s.s->looker.begin(host);
  s.timeout();
  EXPECT_EQ(host.noted(Stage::kTimerRanOut), (std::vector<Note>{{Stage::kTimerRanOut, s.channel, 3, 100}}));
}

TEST(Patience, is_a_pause_where_packets_may_be_lost_and_a_timeout_elsewhere) {
  Lossy s;
  EXPECT_EQ(first_patience(s.ch()), pause_of(s.ch().round_trip));
  EXPECT_LT(first_patience(s.ch()), s.ch().rto);
  s.ch().asks_soon = false;
  EXPECT_EQ(first_patience(s.ch()), s.ch().rto);
}

TEST(Patience, follows_each_measurement) {
  Lossy s;
  const Duration before = s.ch().patience;
  s.ch().asked = Psn(100);
  s.send();
  s.pass(Lossy::kRoundTrip * 2);
  s.ack(100);
  EXPECT_GT(s.ch().patience, before);
  EXPECT_EQ(s.ch().patience, pause_of(s.ch().round_trip));
}

TEST(AsksForAck, the_newest_packet_that_did_is_known) {
  Lossy s(101);
  for (int i = 0; i < 40; ++i) {
    asks_for_ack(s.ch(), false);
    s.send();
  }
  EXPECT_EQ(s.ch().asked, Psn(128)) << "those behind it did not";
}

// ---- what may leave --------------------------------------------------------------------------------------------

TEST(OnTheirWay, fewer_than_the_window_of_the_flow_let_another_one_leave) {
  Lossy s(100, 0);
  s.send_one_by_one(8);
  s.sack(99, {101});
  ASSERT_EQ(on_their_way(s.recovery(), numbered(s.ch())), 6u);
  s.ch().send_window = 6;
  EXPECT_FALSE(window_open(*s.s, s.ch()));
  s.ch().send_window = 7;
  EXPECT_TRUE(window_open(*s.s, s.ch()));
}

TEST(OnTheirWay, packets_that_wait_for_memory_are_numbered_too) {
  Lossy s;
  s.send(2, false);
  s.ch().held_new = 3;
  EXPECT_EQ(numbered(s.ch()), 5u);
}

TEST(OnTheirWay, if_there_is_none_one_retransmission_leaves_through_any_window) {
  for (const uint32_t window : {0u, 1u}) {
    Lossy s;
    s.send_one_by_one(3);
    s.timeout();
    s.ch().send_window = window;
    EXPECT_EQ(s.resend(), Psns{100});
  }
}

TEST(OnTheirWay, what_a_report_shows_to_be_lost_obeys_the_window_of_the_flow) {
  Lossy s(100, 0);
  s.send_one_by_one(4);
  s.sack(99, {103});
  s.ch().send_window = 1;
  EXPECT_EQ(s.resend(), Psns{100});
  s.ch().send_window = 3;
  EXPECT_EQ(s.resend(), (Psns{101, 102}));
}

TEST(OnTheirWay, after_probes_a_timeout_obeys_the_window_of_the_flow_too) {
  Lossy s;
  s.ch().asked = Psn(102);
  s.send_one_by_one(3);
  s.timer();
  s.timeout();
  EXPECT_EQ(s.ch().probes, 1);
  s.ch().send_window = 1;
  EXPECT_EQ(s.resend(), Psns{100});
}

TEST(OnTheirWay, retransmissions_obey_the_rate_of_the_flow) {
  Lossy s(100, 0);
  s.send_one_by_one(4);
  s.sack(99, {101});
  s.ch().paced = true;
  EXPECT_TRUE(s.resend().empty());
  s.ch().paced = false;
  EXPECT_EQ(s.resend(), Psns{100});
}

}  // namespace
}  // namespace ub::tp
