// SPDX-License-Identifier: Apache-2.0
//
// Why packets go again is counted once, by its cause, for the channel and for all together.
#include "tests/unit/tp/receiver.h"
#include "tests/unit/tp/sender.h"

namespace ub::tp {
namespace {

uint64_t count(const Sender& s, ChannelCount c) { return s.s->channel_counts[s.channel][c]; }

// Everything that was counted of the channel, without timeouts, which are no packets.
uint64_t all_again(const Sender& s) {
  uint64_t sum = 0;
  for (ChannelCount c : {ChannelCount::kAgainDistance, ChannelCount::kAgainTime, ChannelCount::kAgainNak,
                         ChannelCount::kAgainProbe, ChannelCount::kAgainTimeout}) {
    EXPECT_EQ(count(s, c), s.count(total_of(c))) << "the only channel";
    sum += count(s, c);
  }
  return sum;
}

// Nothing is heard of what was sent last, and the peer is asked for it.
void probe(Sender& s) {
  s.ch().asks_soon = true;
  s.ch().patience = microseconds(50);
  s.ch().give_up_after = seconds(4);
  s.now = s.ch().rto_at + microseconds(100);
  EXPECT_EQ(on_timer(*s.s, s.channel, s.now), TimerVerdict::kGoesOn);
  EXPECT_EQ(s.count(Counter::kTpTxProbe), 1u);
}

TEST(Causes, a_packet_that_many_overtook_goes_again_by_distance) {
  Sender s;
  s.ch().tolerance.begin(3);
  s.send_one_by_one(10);
  s.sack(99, psns(101, 9));
  EXPECT_EQ(count(s, ChannelCount::kAgainDistance), 1u);
  s.resend();
  EXPECT_EQ(all_again(s), s.ch().retransmits);
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 1u);
}

TEST(Causes, a_packet_that_few_overtook_goes_again_by_time) {
  Sender s;
  s.ch().tolerance.begin(3);
  add_sample(s.ch().round_trip, microseconds(10), s.now);
  s.send_one_by_one(3);
  s.sack(99, {101});
  EXPECT_EQ(all_again(s), 0u);
  s.now = s.recovery().judge_at;
  EXPECT_EQ(on_timer(*s.s, s.channel, s.now), TimerVerdict::kGoesOn);
  EXPECT_EQ(count(s, ChannelCount::kAgainTime), 1u);
  s.resend();
  EXPECT_EQ(all_again(s), s.ch().retransmits);
}

TEST(Causes, what_a_nak_asks_for_goes_again_by_it) {
  Sender s;
  s.ch().go_back_n = true;
  s.send_one_by_one(5);
  s.nak(102);
  s.nak(102);
  EXPECT_EQ(count(s, ChannelCount::kAgainNak), 3u);
  s.resend();
  EXPECT_EQ(all_again(s), s.ch().retransmits);
}

TEST(Causes, what_asks_a_silent_peer_goes_again_as_a_probe) {
  Sender s;
  s.send(3);
  probe(s);
  EXPECT_EQ(count(s, ChannelCount::kAgainProbe), 2u) << "the oldest and the newest";
  s.resend();
  EXPECT_EQ(all_again(s), s.ch().retransmits);
}

TEST(Causes, a_packet_that_is_the_oldest_and_the_newest_counts_once_as_a_probe) {
  Sender s;
  s.send();
  probe(s);
  EXPECT_EQ(count(s, ChannelCount::kAgainProbe), 1u);
  EXPECT_EQ(s.resend(), Psns{100});
  EXPECT_EQ(all_again(s), s.ch().retransmits);
}

TEST(Causes, what_waits_to_go_again_when_the_peer_is_asked_does_not_count_as_a_probe_too) {
  Sender s;
  s.send_one_by_one(5);
  s.nak(102);
  probe(s);
  EXPECT_EQ(count(s, ChannelCount::kAgainNak), 3u);
  EXPECT_EQ(count(s, ChannelCount::kAgainProbe), 0u);
  EXPECT_EQ(s.resend(), psns(102, 3));
  EXPECT_EQ(all_again(s), s.ch().retransmits);
}

TEST(Causes, after_a_timeout_only_those_count_that_did_not_wait_to_go_again) {
  Sender s;
  s.send_one_by_one(5);
  s.nak(102);
  s.send_one_by_one(2);
  s.timeout();
  EXPECT_EQ(count(s, ChannelCount::kTimeout), 1u);
  EXPECT_EQ(count(s, ChannelCount::kAgainNak), 3u);
  EXPECT_EQ(count(s, ChannelCount::kAgainTimeout), 2u);
  s.resend();
  EXPECT_EQ(all_again(s), s.ch().retransmits);
}

// ROL: the peer has everything, and says how far it has come when it is asked.
TEST(Causes, the_question_to_a_peer_that_has_all_counts_as_a_timeout) {
  Sender s;
  s.send_one_by_one(2);
  s.sack(99, {100, 101});
  s.timeout();
  EXPECT_EQ(count(s, ChannelCount::kAgainTimeout), 1u);
  s.resend();
  EXPECT_EQ(all_again(s), s.ch().retransmits);
}

TEST(Causes, a_retransmission_without_a_record_is_counted) {
  Sender s;
  while (s.s->resent.alloc() != 0) {
  }
  s.send_one_by_one(2);
  s.timeout();
  s.resend();
  EXPECT_EQ(s.count(Counter::kTpTxNoRecord), 2u);
}

TEST(Causes, a_packet_that_met_congestion_is_counted_where_no_algorithm_hears_of_it) {
  Receiver r;
  on_ecn(*r.s, r.channel, r.now, r.s->channels[r.channel].expected, wire::kEcnCe, 1000);
  EXPECT_EQ(r.s->channel_counts[r.channel][ChannelCount::kMarked], 1u);
  EXPECT_EQ(r.count(Counter::kTpRxMarked), 1u);
}

TEST(Causes, counts_of_one_channel_are_its_own) {
  Receiver r;
  const uint32_t other = r.add_channel(500);
  r.ch().go_back_n = true;
  r.receive(102);
  EXPECT_EQ(r.s->channel_counts[r.channel][ChannelCount::kDiscarded], 1u);
  EXPECT_EQ(r.s->channel_counts[other], ChannelCounts{});
}

}  // namespace
}  // namespace ub::tp
