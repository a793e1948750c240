// SPDX-License-Identifier: Apache-2.0
//
// What a channel's next packet is (UB Base Specification Rev 2.0, 6.4.2, 6.7.1), and what its timer finds: packets to
// send again, a peer to ask, a peer to give up (6.4.2.1).
#include "tests/unit/tp/sender.h"

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
  resent(*s.s, s.ch(), psn);
  ASSERT_EQ(turn_of(s, &psn), Turn::kSendAgain);
  EXPECT_EQ(psn, Psn(102));
  resent(*s.s, s.ch(), psn);
  EXPECT_EQ(turn_of(s), Turn::kContinue);
}

TEST(Turn, nothing_goes_while_memory_is_awaited_and_then_the_packet_that_waited) {
  Sender s(100);
  s.send(3, false);
  s.sack(99, {101});
  s.ch().gathers_pending = 1;
  s.ch().gather_held = true;
  EXPECT_EQ(turn_of(s), Turn::kWaits);
  on_gather_done(*s.s, s.channel, s.now, true);
  EXPECT_EQ(turn_of(s), Turn::kHeld);
  s.ch().gather_held = false;
  EXPECT_EQ(turn_of(s), Turn::kSendAgain);
}

// ---- memory that answers later ---------------------------------------------------------------------------------

TEST(Gather, the_last_piece_makes_the_channel_active) {
  Sender s;
  s.ch().gathers_pending = 2;
  s.ch().gather_held = true;
  on_gather_done(*s.s, s.channel, s.now, false);
  EXPECT_FALSE(s.ch().on_active_list);
  on_gather_done(*s.s, s.channel, s.now, true);
  EXPECT_TRUE(s.ch().on_active_list);
  EXPECT_TRUE(s.ch().gather_failed) << "one piece of it is enough";
  EXPECT_EQ(s.ch().progress_at, s.now);
  on_gather_done(*s.s, s.channel, s.now, true);
  EXPECT_EQ(s.ch().gathers_pending, 0u) << "nobody waited for that one";
}

TEST(Gather, a_piece_of_a_packet_that_was_given_up_says_nothing_of_the_next) {
  Sender s;
  s.ch().gathers_pending = 1;
  on_gather_done(*s.s, s.channel, s.now, false);
  EXPECT_FALSE(s.ch().gather_failed);
}

TEST(HeldPacket, belongs_to_the_message_that_is_half_sent) {
  Sender s(100);
  EXPECT_EQ(held_message(*s.s, s.ch()), nullptr);
  TxMessage& m = s.send(1, false);
  s.ch().gather_psn = Psn(101);
  EXPECT_EQ(held_message(*s.s, s.ch()), &m);
}

TEST(HeldPacket, one_that_was_to_go_again_is_needed_until_it_is_acknowledged) {
  Sender s(100);
  TxMessage& m = s.send(3);
  s.timeout();
  s.ch().gather_retransmit = true;
  s.ch().gather_psn = Psn(101);
  EXPECT_EQ(held_message(*s.s, s.ch()), &m);
  s.sack(99, {101});
  EXPECT_EQ(held_message(*s.s, s.ch()), nullptr) << "100 and 102 still go again";
  s.ack(102);
  EXPECT_EQ(held_message(*s.s, s.ch()), nullptr);
}

// ---- keep-alive ------------------------------------------------------------------------------------------------

struct Idle : Sender {
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
  ASSERT_TRUE(begin_keepalive(*s.s, s.ch()));
  const TxMessage& m = s.ch().in_flight.back(s.s->messages);
  EXPECT_EQ(m.kind, MessageKind::kFake);
  EXPECT_EQ(m.tpmsn, Tpmsn(0xFFFFFF)) << "none was sent before";
  EXPECT_EQ(turn_of(s), Turn::kContinue);
  packet_sent(*s.s, s.channel, s.now);
  message_sent(*s.s, s.ch());
  EXPECT_EQ(s.ch().next_tpmsn, Tpmsn(0)) << "no number was used";
  EXPECT_EQ(s.count(Counter::kTpTxKeepalive), 1u);
}

TEST(KeepAlive, without_a_descriptor_there_is_none) {
  Idle s;
  while (s.s->messages.alloc() != 0) {
  }
  EXPECT_FALSE(begin_keepalive(*s.s, s.ch()));
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
  EXPECT_TRUE(is_silent(s.ch(), s.now, s.ch().give_up_after));
  EXPECT_FALSE(is_silent(s.ch(), s.now - nanoseconds(1), s.ch().give_up_after));
  s.ch().gathers_pending = 1;
  EXPECT_FALSE(is_silent(s.ch(), s.now, s.ch().give_up_after));
  EXPECT_EQ(s.fire(), TimerVerdict::kGoesOn);
}

}  // namespace
}  // namespace ub::tp
