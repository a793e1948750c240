// SPDX-License-Identifier: Apache-2.0
//
// What the timer of a channel does whose peer says nothing, or nothing of some packets (transmit_state.h; UB Base
// Specification Rev 2.0, 6.4.2).
#include "lib/transport/tp/held_packets.h"
#include "lib/transport/tp/owed_ack.h"
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
  ASSERT_EQ(take_active(*s.s), s.channel);
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

TEST(Probe, leaves_after_two_round_trips_with_the_oldest_and_the_newest_packet) {
  Lossy s;
  s.ch().asked = Psn(104);
  s.send_one_by_one(5);  // 100 .. 104
  const Instant sent = s.now;
  s.timer();
  EXPECT_EQ(s.now, sent + pause_of(s.ch().round_trip));
  EXPECT_EQ(s.resend(), (Psns{100, 104}));
  EXPECT_EQ(s.count(Counter::kTpTxProbe), 1u);
  EXPECT_EQ(s.count(Counter::kTpTimeout), 0u);
}

// Packets of which nothing was heard shut the window, and without a probe nothing would be heard of them.
TEST(Probe, leaves_where_the_window_of_the_flow_is_shut) {
  Lossy s;
  s.ch().asked = Psn(109);
  s.send_one_by_one(10);  // 100 .. 109
  s.ch().send_window = 2;
  s.timer();
  EXPECT_EQ(s.resend(), (Psns{100, 109}));
  EXPECT_EQ(s.resend(), Psns{});
}

TEST(Probe, alone_leaves_where_the_window_of_the_flow_is_shut) {
  Lossy s(100, 0);
  s.ch().asked = Psn(109);
  s.send_one_by_one(10);  // 100 .. 109
  s.ch().send_window = 2;
  s.sack(99, {103});
  EXPECT_EQ(s.resend(), Psns{}) << "100 to 102 are lost, and six are on their way";
  s.timer();
  EXPECT_EQ(s.resend(), (Psns{100, 109}));
}

TEST(Probe, a_single_packet_goes_once) {
  Lossy s;
  s.ch().asked = Psn(100);
  s.send();
  s.timer();
  EXPECT_EQ(s.resend(), Psns{100});
}

TEST(Probe, the_pause_doubles_until_it_is_a_timeout) {
  Lossy s;
  s.ch().asked = Psn(100);
  s.send();
  Duration pause = pause_of(s.ch().round_trip);
  uint64_t probes = 0;
  while (pause < s.ch().rto) {
    const Instant before = s.now;
    s.timer();
    EXPECT_EQ(s.now, before + pause);
    EXPECT_EQ(s.count(Counter::kTpTxProbe), ++probes);
    s.resend();
    pause = pause * 2;
  }
  EXPECT_EQ(s.count(Counter::kTpTimeout), 0u);
  s.timer();
  EXPECT_EQ(s.count(Counter::kTpTimeout), 1u);
  EXPECT_GT(probes, 3u);
}

TEST(Probe, only_news_makes_the_pause_short_again) {
  Lossy s;
  s.ch().asked = Psn(103);
  s.send_one_by_one(4);
  s.timer();
  s.timer();
  EXPECT_EQ(s.ch().probes, 2);
  s.ack(99);
  EXPECT_EQ(s.ch().probes, 2) << "it was known";
  s.sack(99, {102});
  EXPECT_EQ(s.ch().probes, 0);
  EXPECT_EQ(s.ch().rto_at, s.now + pause_of(s.ch().round_trip));
}

// A peer may wait for more packets before it acknowledges those that do not ask for it.
TEST(Probe, waits_longer_if_the_newest_packet_did_not_ask) {
  Lossy s;
  s.ch().asked = Psn(100);
  s.send_one_by_one(2);
  const Instant sent = s.now;
  s.timer();
  EXPECT_TRUE(s.resend().empty());
  s.timer();
  EXPECT_EQ(s.now, sent + pause_of(s.ch().round_trip) + kAckDelay);
  EXPECT_EQ(s.resend(), (Psns{100, 101}));
}

TEST(Probe, of_a_message_that_waits_to_be_executed_repeats_its_oldest_packet) {
  Lossy s;
  s.ch().asked = Psn(102);
  s.send_one_by_one(3);
  s.sack(99, {100, 101, 102});
  s.timer();  // set when they were sent
  s.timer();
  EXPECT_EQ(s.resend(), Psns{100});
  EXPECT_TRUE(s.records().empty()) << "nothing is lost";
}

TEST(Probe, none_leaves_on_a_wire_that_loses_nothing) {
  Lossy s;
  s.ch().asks_soon = false;
  s.ch().patience = first_patience(s.ch());
  s.send();
  s.timer();
  EXPECT_EQ(s.count(Counter::kTpTxProbe), 0u);
  EXPECT_EQ(s.count(Counter::kTpTimeout), 1u);
}

TEST(Probe, is_told_to_who_looks) {
  Lossy s;
  TestHost host;
  s.s->looker.begin(host);
  s.ch().asked = Psn(101);
  s.send_one_by_one(2);
  s.timer();
  EXPECT_EQ(host.noted(Stage::kProbe), (std::vector<Note>{{Stage::kProbe, s.channel, 100, 101}}));
}

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

}  // namespace
}  // namespace ub::tp
