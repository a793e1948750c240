// SPDX-License-Identifier: Apache-2.0
//
// What a channel's next packet is (UB Base Specification Rev 2.0, 6.4.2, 6.7.1), and what its timer finds: packets to
// send again, a peer to ask, a peer to give up (6.4.2.1).
#include "tests/unit/tp/sender.h"
#include "tests/unit/transport/test_host.h"

namespace ub::tp {
namespace {

Turn turn_of(Sender& s, Psn* psn = nullptr) {
  Psn unused;
  return next_turn(*s.s, s.ch(), psn != nullptr ? psn : &unused);
}

// ---- turns -----------------------------------------------------------------------------------------------------

TEST(Turn, a_channel_that_is_not_up_has_none) {
  Sender s;
  for (ChannelState state : {ChannelState::kReqSent, ChannelState::kHalfOpen, ChannelState::kClosing}) {
    s.ch().state = state;
    EXPECT_EQ(turn_of(s), Turn::kNothing);
  }
}

TEST(Turn, with_no_message_half_sent_another_may_begin) {
  Sender s;
  EXPECT_EQ(turn_of(s), Turn::kBegin);
  s.send(2);
  EXPECT_EQ(turn_of(s), Turn::kBegin);
}

TEST(Turn, a_message_that_is_half_sent_goes_on_first) {
  Sender s;
  s.send(2, false);
  EXPECT_EQ(turn_of(s), Turn::kContinue);
  s.send_more(1);
  EXPECT_EQ(turn_of(s), Turn::kBegin);
}

// 6.4.2.3: what is missing goes before what is new, the oldest first.
TEST(Turn, what_is_missing_goes_before_what_is_new) {
  Sender s(100);
  s.send(5, false);
  s.sack(99, {101, 103});
  Psn psn;
  ASSERT_EQ(turn_of(s, &psn), Turn::kSendAgain);
  EXPECT_EQ(psn, Psn(100));
  resent(*s.s, s.ch(), psn, s.now);
  ASSERT_EQ(turn_of(s, &psn), Turn::kSendAgain);
  EXPECT_EQ(psn, Psn(102));
  resent(*s.s, s.ch(), psn, s.now);
  EXPECT_EQ(turn_of(s), Turn::kContinue);
}

// ---- who has something to send ---------------------------------------------------------------------------------

TEST(ActiveChannels, take_turns_in_the_order_in_which_they_came) {
  Sender s;
  const uint32_t second = s.s->channels.alloc();
  s.s->channels[second] = Channel{};
  for (int round = 0; round < 2; ++round) {
    activate(*s.s, s.channel);
    activate(*s.s, second);
    activate(*s.s, s.channel);
    EXPECT_EQ(take_active(*s.s), s.channel);
    EXPECT_EQ(take_active(*s.s), second);
    EXPECT_TRUE(s.s->active.empty()) << "each stood there once";
    EXPECT_FALSE(s.ch().on_active_list);
  }
}

// ---- memory that answers later ---------------------------------------------------------------------------------

struct Holding : Sender {
  Holding() : Sender(100, with_slow_memory()) {}
  // A packet was built that waits for so many gathers; its record.
  uint32_t hold(TxMessage& m, Psn psn, bool again = false, uint32_t gathers = 1) {
    HeldFrame& h = take_held(*s, channel);
    h.message = &m;
    h.psn = psn;
    h.again = again;
    h.pending = gathers;
    append_held(*s, channel, h, now);
    return s->held.number_of(h);
  }
  uint32_t hold_new(TxMessage& m, uint32_t gathers = 1) { return hold(m, next_new_psn(ch()), false, gathers); }
  // A gather of that record is done; true: it was the last one.
  bool done(uint32_t record, bool ok = true) {
    const uint32_t gathered = s->held.on_gather_done(s->held.tag_of(s->held[record]), ok);
    if (gathered != 0) on_gathered(*s, s->held[gathered], now);
    return gathered != 0;
  }
  const HeldFrame& first() { return s->held.first(ch().held); }
};

TEST(HeldPacket, while_the_first_waits_others_are_built_and_it_goes_first) {
  Holding s;
  TxMessage& m = s.send(1, false);
  const uint32_t first = s.hold_new(m), second = s.hold_new(m);
  EXPECT_EQ(turn_of(s), Turn::kContinue);
  EXPECT_EQ(next_new_psn(s.ch()), Psn(103));
  s.done(second);
  EXPECT_EQ(turn_of(s), Turn::kContinue) << "they leave in order";
  EXPECT_FALSE(s.ch().on_active_list);
  s.done(first);
  EXPECT_EQ(turn_of(s), Turn::kHeld);
  EXPECT_TRUE(s.ch().on_active_list);
  drop_first_held(*s.s, s.ch(), s.now);
  EXPECT_EQ(turn_of(s), Turn::kHeld);
  drop_first_held(*s.s, s.ch(), s.now);
  EXPECT_EQ(turn_of(s), Turn::kContinue);
  EXPECT_EQ(s.ch().held_new, 0u);
}

TEST(HeldPacket, there_are_only_so_many_of_one_channel) {
  Holding s;
  TxMessage& m = s.send(1, false);
  for (uint32_t i = 0; i < kHeldOfSender; ++i) {
    ASSERT_EQ(turn_of(s), Turn::kContinue) << i;
    s.hold_new(m);
  }
  EXPECT_EQ(turn_of(s), Turn::kWaits);
}

TEST(HeldPacket, waits_for_the_rate_of_its_flow_like_any_other) {
  Holding s;
  TxMessage& m = s.send(1, false);
  const uint32_t first = s.hold_new(m);
  s.ch().paced = true;
  EXPECT_EQ(turn_of(s), Turn::kWaits);
  s.done(first);
  EXPECT_EQ(turn_of(s), Turn::kWaits) << "its memory has answered";
  s.ch().paced = false;
  EXPECT_EQ(turn_of(s), Turn::kHeld);
}

TEST(HeldPacket, one_of_each_channel_needs_nothing_of_the_pool) {
  Holding s;
  for (uint32_t i = 0; i <= kMoreHeld; ++i) s.s->held.take(s.s->home_of_channel(s.channel + 1));
  TxMessage& m = s.send(1, false);
  ASSERT_EQ(turn_of(s), Turn::kContinue);
  EXPECT_EQ(s.hold_new(m), s.s->home_of_channel(s.channel));
  EXPECT_EQ(turn_of(s), Turn::kWaits);
}

TEST(HeldPacket, what_waits_takes_room_in_the_window) {
  Holding s;
  TxMessage& m = s.send(1, false);
  s.ch().send_window = 3;
  s.hold_new(m);
  EXPECT_TRUE(window_open(*s.s, s.ch()));
  s.hold_new(m);
  EXPECT_FALSE(window_open(*s.s, s.ch()));
}

// The next message is numbered behind those that wait.
TEST(HeldPacket, a_message_behind_it_has_the_numbers_behind_it) {
  Holding s;
  TxMessage& m = *begin_message(*s.s, s.ch());
  s.hold_new(m);
  s.hold_new(m);
  TxMessage& next = *begin_message(*s.s, s.ch());
  EXPECT_EQ(next.first_psn, Psn(102));
  EXPECT_EQ(next.tpmsn, Tpmsn(1));
  s.hold_new(next);
  EXPECT_EQ(begin_message(*s.s, s.ch())->tpmsn, Tpmsn(2));
  packet_sent(*s.s, s.channel, m, s.now);
  packet_sent(*s.s, s.channel, m, s.now);
  message_sent(s.ch(), m);
  EXPECT_TRUE(m.complete);
  EXPECT_EQ(s.ch().next_tpmsn, Tpmsn(1));
}

// Everything in flight is acknowledged while one of its packets waits to go again.
TEST(HeldPacket, one_that_goes_again_has_no_number_that_the_next_message_would_follow) {
  Holding s;
  s.send_one_by_one(2);
  TxMessage& m = s.send();
  s.timeout();
  s.hold(m, Psn(102), true);
  s.ack(102);
  ASSERT_TRUE(s.ch().in_flight.empty());
  const TxMessage& next = *begin_message(*s.s, s.ch());
  EXPECT_EQ(next.first_psn, Psn(103));
  EXPECT_EQ(next.tpmsn, Tpmsn(3));
}

TEST(HeldPacket, is_done_with_its_last_piece_and_fails_with_any) {
  Holding s;
  TxMessage& m = s.send(1, false);
  const uint32_t record = s.hold_new(m, 2);
  s.pass(milliseconds(3));
  s.done(record, false);
  EXPECT_FALSE(s.ch().on_active_list);
  s.done(record);
  EXPECT_TRUE(s.ch().on_active_list);
  EXPECT_TRUE(s.first().failed);
  EXPECT_EQ(s.ch().progress_at, s.now);
  EXPECT_FALSE(s.done(record)) << "nothing of it is pending";
}

// Each time that one of them keeps the others waiting counts, and no more.
TEST(HeldPacket, the_wait_for_the_next_one_begins_when_the_one_before_it_left) {
  Holding s;
  TxMessage& m = s.send(1, false);
  const uint32_t first = s.hold_new(m), second = s.hold_new(m);
  s.done(first);
  s.pass(milliseconds(2));
  drop_first_held(*s.s, s.ch(), s.now);
  EXPECT_EQ(s.ch().gather_since, s.now);
  const Instant progress = s.ch().progress_at;
  s.pass(milliseconds(3));
  s.done(second);
  EXPECT_EQ(s.ch().progress_at, progress + milliseconds(3));
}

// ---- of packets that go again ----

TEST(HeldPacket, one_that_goes_again_is_not_built_twice) {
  Holding s;
  TxMessage& m = s.send(4);
  s.timeout();
  Psn psn;
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(turn_of(s, &psn), Turn::kSendAgain);
    EXPECT_EQ(psn, Psn(100 + i));
    s.hold(m, psn, true);
  }
  EXPECT_EQ(turn_of(s), Turn::kBegin);
}

TEST(HeldPacket, one_that_was_to_go_again_is_needed_until_it_is_acknowledged) {
  Holding s;
  TxMessage& m = s.send(3);
  s.timeout();
  const HeldFrame& h = s.s->held[s.hold(m, Psn(101), true)];
  EXPECT_EQ(held_message(*s.s, s.ch(), h), &m);
  s.sack(99, {101});
  EXPECT_EQ(held_message(*s.s, s.ch(), h), nullptr) << "100 and 102 still go again";
  s.ack(102);
  EXPECT_EQ(held_message(*s.s, s.ch(), h), nullptr);
}

// The same bits stand for other packets later.
TEST(HeldPacket, whatever_became_of_them_nothing_is_noted_of_packets_that_were_acknowledged) {
  Holding s;
  TxMessage& m = s.send(6, false);
  s.timeout();
  s.hold(m, Psn(100), true);
  s.hold(m, Psn(101), true);
  s.sack(99, {101, 102});
  s.hold(m, Psn(103), true);
  s.ack(104);
  for (uint32_t psn = 100; psn < 105; ++psn) EXPECT_TRUE(nothing_noted(*s.s, s.ch(), Psn(psn))) << psn;
  EXPECT_EQ(s.resend(), Psns{105});
}

TEST(HeldPacket, what_is_missing_behind_acknowledged_ones_that_wait_is_found) {
  Holding s;
  TxMessage& m = s.send(4);
  s.timeout();
  s.hold(m, Psn(100), true);
  s.ack(101);
  Psn psn;
  ASSERT_EQ(turn_of(s, &psn), Turn::kSendAgain);
  EXPECT_EQ(psn, Psn(102));
}

// The peer may miss a packet for the second time while those behind it wait.
TEST(HeldPacket, a_lower_one_that_is_missed_again_goes_before_what_is_new) {
  Holding s;
  TxMessage& m = s.send(4, false);
  s.sack(99, {103});
  resent(*s.s, s.ch(), Psn(100), s.now);
  s.hold(m, Psn(101), true);
  s.hold(m, Psn(102), true);
  s.send_more(1, false);
  s.sack(99, {103, 104});
  ASSERT_EQ(s.acknowledged.lost, 1u);
  Psn psn;
  ASSERT_EQ(turn_of(s, &psn), Turn::kSendAgain);
  EXPECT_EQ(psn, Psn(100));
}

TEST(HeldPacket, one_that_goes_again_is_not_missed_while_it_waits) {
  Holding s;
  TxMessage& m = s.send(4, false);
  s.timeout();
  s.hold(m, Psn(100), true);
  s.timeout();
  EXPECT_EQ(s.resend(), Psns({101, 102, 103}));
}

TEST(HeldPacket, one_that_went_again_may_be_missed_again) {
  Holding s;
  TxMessage& m = s.send(1);
  s.timeout();
  const uint32_t record = s.hold(m, Psn(100), true);
  s.done(record);
  resent(*s.s, s.ch(), Psn(100), s.now);
  drop_first_held(*s.s, s.ch(), s.now);
  EXPECT_EQ(s.resend(), Psns{});
  s.timeout();
  EXPECT_EQ(s.resend(), Psns{100});
}

// Those that wait leave before it (MarkPSN, 6.4.2.3.1): what the peer says of them does not prove a burst lost.
TEST(HeldPacket, those_that_wait_leave_before_what_goes_again) {
  for (int reported_by : {0, 1, 2}) {
    SCOPED_TRACE(reported_by);
    Holding s;
    s.send_one_by_one(3);
    TxMessage& m = s.send(1, false);
    s.hold_new(m);
    s.hold_new(m);
    if (reported_by == 0) s.sack(99, {102});
    if (reported_by == 1) s.nak(100);
    if (reported_by == 2) s.timeout();
    EXPECT_EQ(next_new_psn(s.ch()), Psn(106));
  }
}

TEST(HeldPacket, what_the_peer_says_of_those_that_waited_sends_nothing_a_third_time) {
  Holding s;
  TxMessage& m = s.send(3, false);
  const uint32_t record = s.hold_new(m);
  s.sack(99, {101, 102});
  EXPECT_EQ(s.acknowledged.lost, 1u);
  s.done(record);
  packet_sent(*s.s, s.channel, m, s.now);
  drop_first_held(*s.s, s.ch(), s.now);
  EXPECT_EQ(s.resend(), Psns{100});
  s.sack(99, {101, 102, 103});
  EXPECT_EQ(s.acknowledged.lost, 0u);
  EXPECT_EQ(s.resend(), Psns{});
}

// Their places in the block of what goes again are those of packets a window later.
TEST(HeldPacket, in_a_window_that_fills_its_block_nothing_is_found_behind_the_end) {
  Holding s;
  s.ch().send_window = s.ch().agreed_window = kMaxWindow;
  s.send(kMaxWindow - 1);
  s.timeout();
  TxMessage& m = *message_at(*s.s, s.ch(), Psn(100));
  s.hold(m, Psn(100), true);
  EXPECT_EQ(s.resend(), psns(101, kMaxWindow - 2));
}

TEST(HeldPacket, that_others_are_built_behind_it_does_not_shorten_its_wait) {
  Holding s;
  TxMessage& m = s.send(1, false);
  s.ch().progress_at = s.now;
  s.pass(milliseconds(1));
  const uint32_t first = s.hold_new(m);
  s.pass(milliseconds(2));
  s.hold_new(m);
  s.pass(milliseconds(3));
  const Instant progress = s.ch().progress_at;
  s.done(first);
  EXPECT_EQ(s.ch().progress_at, progress + milliseconds(5));
}

TEST(HeldPacket, the_wait_of_one_that_is_not_the_next_is_no_excuse) {
  Holding s;
  TxMessage& m = s.send(1, false);
  s.hold_new(m);
  const uint32_t second = s.hold_new(m);
  s.pass(milliseconds(2));
  const Instant progress = s.ch().progress_at;
  s.done(second);
  EXPECT_EQ(s.ch().progress_at, progress);
}

TEST(HeldPacket, what_waits_counts_where_a_window_asks_for_acknowledgements) {
  Holding s;
  TxMessage& m = s.send(1, false);
  s.ch().send_window = 8;
  for (int i = 0; i < 4; ++i) s.hold_new(m);
  EXPECT_TRUE(asks_for_ack(*s.s, s.ch(), false));
}

TEST(HeldPacket, while_one_waits_nobody_is_asked_whether_he_lives) {
  Holding s;
  TxMessage& m = *begin_message(*s.s, s.ch());
  s.hold_new(m);
  s.ch().keepalive_due = true;
  EXPECT_FALSE(take_keepalive(s.ch()));
}

// ---- given up ----

TEST(HeldPacket, all_are_given_up_with_their_channel) {
  Holding s;
  TxMessage& m = s.send(1, false);
  const uint32_t first = s.hold_new(m);
  s.hold_new(m);
  s.hold_new(m);
  const CopyTag late = s.s->held.tag_of(s.s->held[first]);
  give_up_all_held(*s.s, s.ch());
  EXPECT_EQ(s.ch().held.count + s.ch().held_new, 0u);
  EXPECT_EQ(s.s->held.in_use_count(), 0u);
  EXPECT_EQ(s.s->held.orphan_count(), 3u);
  EXPECT_EQ(s.s->held.on_gather_done(late, true), 0u);
}

// ---- noted ----

TEST(HeldPacket, who_looks_is_told_that_it_waits_is_ready_or_was_given_up) {
  Holding s;
  TestHost host;
  s.s->looker.begin(host);
  TxMessage& m = s.send(1, false);
  s.hold_new(m);
  const uint32_t second = s.hold_new(m);
  EXPECT_EQ(host.noted(Stage::kPacketHeld),
            (std::vector<Note>{{Stage::kPacketHeld, s.channel, 101}, {Stage::kPacketHeld, s.channel, 102}}));
  s.done(second);
  EXPECT_EQ(host.noted(Stage::kPacketReady), (std::vector<Note>{{Stage::kPacketReady, s.channel, 102}}));
  give_up_all_held(*s.s, s.ch());
  EXPECT_EQ(host.noted(Stage::kPacketGivenUp),
            (std::vector<Note>{{Stage::kPacketGivenUp, s.channel, 101}, {Stage::kPacketGivenUp, s.channel, 102}}));
}

// ---- keep-alive ------------------------------------------------------------------------------------------------

struct Idle : Holding {
  Idle() { ch().heard_at = ch().progress_at = now; }
  TimerVerdict fire() { return on_timer(*s, channel, now); }
};

TEST(KeepAlive, is_due_when_nothing_was_heard_for_the_idle_time) {
  Idle s;
  s.pass(s.s->config.keepalive_idle - nanoseconds(1));
  EXPECT_EQ(s.fire(), TimerVerdict::kGoesOn);
  EXPECT_FALSE(s.ch().keepalive_due);
  EXPECT_EQ(s.s->timers.earliest(), s.now + nanoseconds(1));
  s.s->timers.cancel(s.s->timer_of_channel(s.channel));
  s.pass(nanoseconds(1));
  EXPECT_EQ(s.fire(), TimerVerdict::kGoesOn);
  EXPECT_TRUE(s.ch().keepalive_due);
  EXPECT_TRUE(s.ch().on_active_list);
  EXPECT_EQ(s.s->timers.earliest(), s.now + s.s->config.keepalive_idle);
}

TEST(KeepAlive, what_is_in_flight_asks_by_itself) {
  Idle s;
  s.send(1);
  s.ch().rto_at = Instant::never();
  s.pass(s.s->config.keepalive_idle);
  EXPECT_EQ(s.fire(), TimerVerdict::kGoesOn);
  EXPECT_FALSE(s.ch().keepalive_due);
  s.ch().keepalive_due = true;
  EXPECT_FALSE(take_keepalive(s.ch()));
  EXPECT_FALSE(s.ch().keepalive_due);
}

// Its number is that of the newest message, so that the peer takes it for none.
TEST(KeepAlive, is_a_message_of_one_packet_that_carries_nothing) {
  Idle s;
  s.ch().keepalive_due = true;
  ASSERT_TRUE(take_keepalive(s.ch()));
  EXPECT_FALSE(take_keepalive(s.ch())) << "once";
  ASSERT_NE(begin_keepalive(*s.s, s.ch()), nullptr);
  const TxMessage& m = s.ch().in_flight.back(s.s->messages);
  EXPECT_EQ(m.kind, MessageKind::kFake);
  EXPECT_EQ(m.tpmsn, Tpmsn(0xFFFFFF)) << "none was sent before";
  EXPECT_EQ(turn_of(s), Turn::kContinue);
  packet_sent(*s.s, s.channel, s.ch().in_flight.back(s.s->messages), s.now);
  message_sent(s.ch(), s.ch().in_flight.back(s.s->messages));
  EXPECT_EQ(s.ch().next_tpmsn, Tpmsn(0)) << "no number was used";
  EXPECT_EQ(s.count(Counter::kTpTxKeepalive), 1u);
}

TEST(KeepAlive, is_noted_with_its_packet) {
  Idle s;
  TestHost host;
  s.s->looker.begin(host);
  ASSERT_NE(begin_keepalive(*s.s, s.ch()), nullptr);
  EXPECT_EQ(host.noted(Stage::kKeepalive), (std::vector<Note>{{Stage::kKeepalive, s.channel, 100}}));
}

TEST(KeepAlive, without_a_descriptor_there_is_none) {
  Idle s;
  while (s.s->messages.alloc() != 0) {
  }
  EXPECT_EQ(begin_keepalive(*s.s, s.ch()), nullptr);
  EXPECT_FALSE(s.ch().mid_message);
  EXPECT_EQ(s.count(Counter::kTpTxKeepalive), 0u);
}

// ---- giving up -------------------------------------------------------------------------------------------------

struct Silent : Idle {
  Silent() {
    ch().give_up_after = milliseconds(50);
    send(2);
  }
};

TEST(Silence, before_its_time_packets_go_again) {
  Silent s;
  s.now = s.ch().rto_at;
  EXPECT_EQ(s.fire(), TimerVerdict::kGoesOn);
  EXPECT_EQ(s.resend(), (Psns{100, 101}));
  EXPECT_EQ(s.count(Counter::kTpTimeout), 1u);
}

TEST(Silence, an_early_timer_changes_nothing) {
  Silent s;
  s.now = s.ch().rto_at - nanoseconds(1);
  EXPECT_EQ(s.fire(), TimerVerdict::kGoesOn);
  EXPECT_TRUE(s.resend().empty());
}

TEST(Silence, of_the_whole_time_ends_the_channel) {
  Silent s;
  const Instant end = s.ch().progress_at + s.ch().give_up_after;
  while (s.ch().rto_at < end) {
    s.now = s.ch().rto_at;
    ASSERT_EQ(s.fire(), TimerVerdict::kGoesOn);
  }
  s.now = s.ch().rto_at;
  EXPECT_EQ(s.fire(), TimerVerdict::kGivenUp);
}

TEST(Silence, memory_of_this_side_that_is_awaited_is_none_of_the_peers) {
  Silent s;
  s.now = s.ch().progress_at + s.ch().give_up_after;
  EXPECT_TRUE(is_silent(*s.s, s.ch(), s.now, s.ch().give_up_after));
  EXPECT_FALSE(is_silent(*s.s, s.ch(), s.now - nanoseconds(1), s.ch().give_up_after));
  HeldFrame& h = take_held(*s.s, s.channel);
  h.pending = 1;
  append_held(*s.s, s.channel, h, s.now);
  EXPECT_FALSE(is_silent(*s.s, s.ch(), s.now, s.ch().give_up_after));
  EXPECT_EQ(s.fire(), TimerVerdict::kGoesOn);
  h.pending = 0;
  EXPECT_TRUE(is_silent(*s.s, s.ch(), s.now, s.ch().give_up_after)) << "a port without room is no memory";
}

}  // namespace
}  // namespace ub::tp
