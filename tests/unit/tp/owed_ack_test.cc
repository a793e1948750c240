// SPDX-License-Identifier: Apache-2.0
//
// The acknowledgement that a channel owes: what it says (UB Base Specification Rev 2.0, 6.2.1, 6.2.3), and when it
// leaves.
#include "lib/base/prng.h"
#include "tests/unit/tp/receiver.h"

namespace ub::tp {
namespace {

// ---- what it says ---------------------------------------------------------------------------------------------

// 6.2.1: TPACK has the highest PSN in order.
TEST(Acknowledgement, names_the_packet_before_the_expected_one) {
  Receiver r(0);
  EXPECT_EQ(r.cumulative(), 0xFFFFFFu);
  r.receive(0);
  EXPECT_EQ(r.cumulative(), 0u);
  EXPECT_FALSE(make_ack(*r.s, r.ch()).selective);
}

// 6.2.3: bit i stands for the cumulative PSN + i.
TEST(Acknowledgement, is_selective_while_something_is_missing) {
  Receiver r(0xFFFFFD);
  r.receive_all({0xFFFFFD, 0xFFFFFF, 1, 2});
  const AckContent ack = make_ack(*r.s, r.ch());
  EXPECT_TRUE(ack.selective);
  EXPECT_EQ(ack.cumulative, Psn(0xFFFFFD));
  EXPECT_EQ(ack.highest, Psn(2)) << "MaxRcvPSN";
  EXPECT_EQ(ack.bitmap[0], 0b110101u);
  EXPECT_EQ(ack.bitmap[1], 0u);
  r.receive_all({0xFFFFFE, 0});
  EXPECT_FALSE(make_ack(*r.s, r.ch()).selective);
  EXPECT_EQ(r.cumulative(), 2u);
}

TEST(Acknowledgement, the_largest_psn_seen_never_goes_back) {
  Receiver r(100);
  r.receive_all({105, 103});
  EXPECT_EQ(r.ch().highest_seen, Psn(105));
  r.receive(100);
  EXPECT_EQ(r.ch().highest_seen, Psn(105));
  r.receive_all({101, 102, 104});
  EXPECT_EQ(r.ch().highest_seen, Psn(105));
  r.receive(106);
  EXPECT_EQ(r.ch().highest_seen, Psn(106));
}

TEST(Acknowledgement, its_bitmap_is_as_long_as_the_window_and_at_most_1024) {
  const auto code = [](uint32_t window) {
    Receiver r(100, with_window(window));
    r.receive(102);
    return make_ack(*r.s, r.ch()).size_code;
  };
  EXPECT_EQ(wire::sack_bits(code(128)), 128u);
  EXPECT_EQ(wire::sack_bits(code(512)), 512u);
  EXPECT_EQ(wire::sack_bits(code(1024)), 1024u);
  EXPECT_EQ(wire::sack_bits(code(2048)), 1024u);
}

TEST(Acknowledgement, the_last_bit_of_its_bitmap_is_used) {
  Receiver r(100, with_window(2048));
  r.receive(99 + 1023);
  r.receive(99 + 1024);
  EXPECT_EQ(r.reported(), (Psns{99 + 1023})) << "the other one has no bit";
  EXPECT_EQ(make_ack(*r.s, r.ch()).highest, Psn(99 + 1024));
}

TEST(Acknowledgement, has_the_bit_of_the_newest_packet_at_the_borders_of_words) {
  for (uint32_t distance : {63u, 64u, 65u, 127u}) {
    Receiver r(100);
    r.receive(99 + distance);
    EXPECT_EQ(r.reported(), Psns{99 + distance});
  }
}

TEST(Acknowledgement, says_nothing_behind_the_end_of_its_bitmap) {
  Receiver r(100, with_window(128));
  r.receive(99 + 128);
  const AckContent ack = make_ack(*r.s, r.ch());
  ASSERT_TRUE(ack.selective);
  EXPECT_EQ(ack.bitmap[128 / 64], 0u);
}

// Bits that come from several words of the block, across its end and the wrap of the PSN.
TEST(Acknowledgement, has_the_bits_of_any_packets_at_any_place_of_the_window) {
  Prng random(1);
  for (uint32_t i = 0; i < 300; ++i) {
    const uint32_t first = (0xFFFF00 + i) & Psn::kMask;
    Receiver r(first);
    Psns ahead;
    for (uint32_t d = 1; d < kWindow; ++d) {
      if (!random.chance(0.5)) continue;
      ahead.push_back((Psn(first) + d).value());
      r.receive(ahead.back());
    }
    if (ahead.back() == (Psn(first) + (kWindow - 1)).value()) ahead.pop_back();  // has no bit
    ASSERT_EQ(r.reported(), ahead) << i;
  }
}

// On ROL an acknowledgement begins before the packet that is expected.
TEST(Acknowledgement, of_what_was_not_executed_says_that_it_has_arrived) {
  for (uint32_t in_order : {1u, 63u, 64u, 65u, 100u}) {
    Receiver r(0xFFFFE0);
    for (uint32_t d = 0; d < in_order; ++d) r.receive((Psn(0xFFFFE0) + d).value());
    r.receive((Psn(0xFFFFE0) + (in_order + 3)).value());
    AckContent ack;
    describe_received(*r.s, r.ch(), Psn(0xFFFFE0) - 1, &ack);
    for (uint32_t bit = 0; bit < kWindow; ++bit) {
      ASSERT_EQ(test_bit(ack.bitmap, bit), bit <= in_order || bit == in_order + 4) << in_order << " " << bit;
    }
  }
}

// ---- when it leaves --------------------------------------------------------------------------------------------

TEST(Acknowledgement, of_two_channels_the_earlier_decides_when_somebody_has_to_drive) {
  Receiver r(100);
  r.receive(100);
  const Instant due = r.now + kAckDelay;
  r.channel = r.add_channel(500);
  r.now += kAckDelay / 2;
  r.receive(500);
  EXPECT_EQ(r.s->acks_due, due);
}

TEST(Acknowledgement, waits_for_eight_packets_or_100_us) {
  Receiver r(100);
  r.receive(100);
  const Instant due = r.now + microseconds(100);
  EXPECT_EQ(r.ch().ack_due, due);
  EXPECT_TRUE(r.ch().on_ack_list);
  EXPECT_EQ(r.s->acks_due, due) << "whoever drives the Core is woken";
  EXPECT_TRUE(ack_may_wait(r.ch(), due - nanoseconds(1)));
  EXPECT_FALSE(ack_may_wait(r.ch(), due));
  r.now += microseconds(10);
  for (uint32_t psn = 101; psn < 107; ++psn) r.receive(psn);
  EXPECT_TRUE(ack_may_wait(r.ch(), r.now));
  r.receive(107);
  EXPECT_FALSE(ack_may_wait(r.ch(), r.now));
  EXPECT_EQ(r.ch().ack_due, due) << "later packets do not put it off";
}

TEST(Acknowledgement, leaves_at_once_where_it_is_demanded) {
  Receiver r(100);
  r.receive(100, true);
  EXPECT_FALSE(ack_may_wait(r.ch(), r.now));
}

TEST(Acknowledgement, while_packets_are_missing_waits_for_eight_packets_or_1_us) {
  Receiver r(100);
  r.receive(101);
  const Instant due = r.now + microseconds(1);
  EXPECT_EQ(r.ch().ack_due, due);
  EXPECT_EQ(r.s->acks_due, due) << "whoever drives the Core is woken";
  EXPECT_TRUE(ack_may_wait(r.ch(), due - nanoseconds(1)));
  EXPECT_FALSE(ack_may_wait(r.ch(), due));
  r.now += nanoseconds(500);
  for (uint32_t psn = 102; psn < 108; ++psn) r.receive(psn, true);
  EXPECT_TRUE(ack_may_wait(r.ch(), r.now)) << "though they ask";
  r.receive(108);
  EXPECT_FALSE(ack_may_wait(r.ch(), r.now));
  EXPECT_EQ(r.ch().ack_due, due) << "later packets do not put it off";
}

TEST(Acknowledgement, of_packets_before_a_gap_is_hurried_by_it) {
  Receiver r(100);
  r.receive(100);
  EXPECT_EQ(r.ch().ack_due, r.now + kAckDelay);
  r.receive(102);
  EXPECT_EQ(r.ch().ack_due, r.now + kAckDelayAtGap);
}

TEST(Acknowledgement, leaves_at_once_when_a_gap_is_filled_by_a_packet_that_asks) {
  Receiver r(100);
  r.receive(101);
  ack_sent(r.ch());
  r.receive(100, true);
  EXPECT_FALSE(ack_may_wait(r.ch(), r.now));
}

TEST(Acknowledgement, leaves_at_once_at_a_duplicate) {
  Receiver r(100);
  r.receive(100);
  EXPECT_TRUE(ack_may_wait(r.ch(), r.now));
  r.receive(100);
  EXPECT_FALSE(ack_may_wait(r.ch(), r.now));
}

TEST(Acknowledgement, when_it_has_left_the_count_begins_anew) {
  Receiver r(100);
  for (uint32_t psn = 100; psn < 108; ++psn) r.receive(psn, true);
  ack_sent(r.ch());
  EXPECT_TRUE(ack_may_wait(r.ch(), r.now));
  EXPECT_EQ(r.ch().unacknowledged, 0);
}

TEST(Acknowledgement, channels_that_owe_one_stand_in_a_list_once) {
  Receiver r(100);
  const uint32_t first = r.channel;
  r.receive(100);
  r.channel = r.add_channel(100);
  r.receive(100);
  r.receive(101);
  IndexList& list = r.s->owing_acks;
  EXPECT_EQ(list.pop_front<&Channel::on_ack_list>(r.s->channels), first);
  EXPECT_EQ(list.pop_front<&Channel::on_ack_list>(r.s->channels), r.channel);
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace ub::tp
