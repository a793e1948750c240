// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a channel: which PSNs are accepted (UB Base Specification Rev 2.0, 6.4.1), and what
// waits for its delivery. The acknowledgement that tells of it is in owed_ack_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/base/prng.h"
#include "tests/unit/tp/receiver.h"
#include "tests/unit/transport/test_host.h"

namespace ub::tp {
namespace {

// ---- which packets are accepted --------------------------------------------------------------------------------

// 6.4.1, d = 0
TEST(Receiving, packets_in_order_are_accepted_and_delivered) {
  Receiver r(0xFFFFFE);
  for (uint32_t psn : {0xFFFFFEu, 0xFFFFFFu, 0u, 1u}) EXPECT_EQ(r.receive(psn), RxVerdict::kInOrder);
  EXPECT_EQ(r.delivered, (Psns{0xFFFFFE, 0xFFFFFF, 0, 1}));
  EXPECT_EQ(r.ch().expected, Psn(2));
  EXPECT_EQ(r.ch().delivered, Psn(2));
  EXPECT_EQ(r.ch().reorder, 0u) << "nothing was missing: no block is used";
}

// 6.4.1, d in the upper half of the circle
TEST(Receiving, a_packet_before_the_expected_one_is_a_duplicate) {
  Receiver r(100);
  r.receive(100);
  EXPECT_EQ(r.receive(100), RxVerdict::kDuplicate);
  EXPECT_EQ(r.receive(99), RxVerdict::kDuplicate);
  EXPECT_EQ(r.receive((101u - Psn::kHalf) & Psn::kMask), RxVerdict::kDuplicate) << "8M before it, the oldest";
  EXPECT_EQ(r.delivered, (Psns{100}));
}

TEST(Receiving, duplicates_are_known_across_the_wrap) {
  Receiver r(0);
  EXPECT_EQ(r.receive(0xFFFFFF), RxVerdict::kDuplicate);
  Receiver wrapped(0xFFFFFF);
  wrapped.receive(0xFFFFFF);
  wrapped.receive(0);
  EXPECT_EQ(wrapped.receive(0xFFFFFF), RxVerdict::kDuplicate);
}

// 6.4.1, 1 <= d < W
TEST(Receiving, a_packet_ahead_is_accepted_once) {
  Receiver r(100);
  EXPECT_EQ(r.receive(102), RxVerdict::kAhead);
  EXPECT_EQ(r.receive(102), RxVerdict::kDuplicate);
  EXPECT_TRUE(r.delivered.empty());
  EXPECT_EQ(r.ch().expected, Psn(100));
  EXPECT_EQ(r.receive(101), RxVerdict::kAhead);
}

TEST(Receiving, the_window_ends_exactly_where_it_does) {
  Receiver r(0xFFFFF0);
  EXPECT_EQ(r.receive((0xFFFFF0 + kWindow) & Psn::kMask), RxVerdict::kBeyondWindow);
  EXPECT_EQ(r.receive((0xFFFFF0 + kWindow - 1) & Psn::kMask), RxVerdict::kAhead);
  EXPECT_EQ(r.receive((0xFFFFF0 + Psn::kHalf - 1) & Psn::kMask), RxVerdict::kBeyondWindow);
  EXPECT_EQ(r.receive((0xFFFFF0 + Psn::kHalf) & Psn::kMask), RxVerdict::kDuplicate);
}

TEST(Receiving, what_lies_beyond_the_window_is_not_noted) {
  Receiver r(100);
  r.receive(100 + kWindow);
  EXPECT_EQ(r.ch().highest_seen, Psn(99));
  EXPECT_EQ(r.ch().reorder, 0u);
  EXPECT_FALSE(r.ch().on_ack_list) << "dropped without a word";
}

TEST(Receiving, the_missing_packet_brings_those_behind_it) {
  Receiver r(0xFFFFFE);
  r.receive_all({0xFFFFFF, 0, 2});
  EXPECT_TRUE(r.delivered.empty());
  r.receive(0xFFFFFE);
  EXPECT_EQ(r.delivered, (Psns{0xFFFFFE, 0xFFFFFF, 0}));
  EXPECT_EQ(r.ch().expected, Psn(1));
  r.receive(1);
  EXPECT_EQ(r.delivered, (Psns{0xFFFFFE, 0xFFFFFF, 0, 1, 2}));
}

TEST(Receiving, when_nothing_is_missing_any_more_its_block_is_free) {
  Receiver r(100);
  r.receive_all({102, 101});
  EXPECT_EQ(r.s->reorder.in_use(), 1u);
  r.receive(100);
  EXPECT_EQ(r.ch().reorder, 0u);
  EXPECT_EQ(r.s->reorder.in_use(), 0u);
}

TEST(Receiving, its_block_is_kept_while_a_gap_remains) {
  Receiver r(100);
  r.receive_all({102, 104, 100, 101, 102});
  EXPECT_EQ(r.ch().expected, Psn(103));
  EXPECT_NE(r.ch().reorder, 0u);
  EXPECT_EQ(r.reported(), (Psns{104}));
}

// What a slot said of a packet holds no longer for the one a window later; the channel is never without a gap.
TEST(Receiving, on_a_channel_that_always_has_a_gap_each_packet_is_accepted_once) {
  Receiver r(100);
  for (uint32_t i = 0; i < 5 * kWindow; ++i) {  // two by two, the second one first
    ASSERT_EQ(r.receive(100 + 2 * i + 3), RxVerdict::kAhead) << i;
    ASSERT_EQ(r.receive(100 + 2 * i + 3), RxVerdict::kDuplicate) << i;
    ASSERT_EQ(r.receive(100 + 2 * i), RxVerdict::kInOrder) << i;
    if (i == 0) r.receive(101);
    ASSERT_EQ(r.reported(), (Psns{100 + 2 * i + 3})) << i;
  }
  Psns expected(r.delivered.size());
  for (uint32_t i = 0; i < expected.size(); ++i) expected[i] = 100 + i;
  EXPECT_EQ(r.delivered, expected);
}

// In any order, with duplicates and packets from beyond: each is delivered once, in order.
TEST(Receiving, random_order__delivers_each_packet_once_and_in_order) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Prng random(seed);
    const uint32_t first = random.next_u32() & Psn::kMask;
    Receiver r(first);
    uint32_t next = 0;  // of what was never sent
    Psns missing;
    for (int step = 0; step < 5000; ++step) {
      if (next - static_cast<uint32_t>(r.delivered.size()) < kWindow && random.chance(0.6)) missing.push_back(next++);
      if (missing.empty()) continue;
      const size_t which = random.below(missing.size());
      const uint32_t n = missing[which];
      const RxVerdict expected = n == r.delivered.size() ? RxVerdict::kInOrder : RxVerdict::kAhead;
      ASSERT_EQ(r.receive((Psn(first) + n).value()), expected) << "seed " << seed;
      missing.erase(missing.begin() + static_cast<ptrdiff_t>(which));
      ASSERT_EQ(r.receive((Psn(first) + n).value()), RxVerdict::kDuplicate);
      Psns ahead;
      const uint32_t lowest = missing.empty() ? next : *std::min_element(missing.begin(), missing.end());
      ASSERT_EQ(r.cumulative(), (Psn(first) + lowest - 1).value());
      for (uint32_t i = lowest; i < next; ++i) {
        if (std::find(missing.begin(), missing.end(), i) == missing.end()) ahead.push_back((Psn(first) + i).value());
      }
      ASSERT_EQ(r.reported(), ahead) << "seed " << seed;
    }
    for (uint32_t i = 0; i < r.delivered.size(); ++i) ASSERT_EQ(r.delivered[i], (Psn(first) + i).value());
  }
}

// ---- delivery that waits ---------------------------------------------------------------------------------------

// What was accepted and not delivered takes room in the window, too.
TEST(Receiving, while_delivery_waits_the_window_is_that_of_what_was_delivered) {
  Receiver r(0xFFFFF0);
  r.stalled = true;
  for (uint32_t i = 0; i < kWindow; ++i) ASSERT_EQ(r.receive((0xFFFFF0 + i) & Psn::kMask), RxVerdict::kInOrder) << i;
  EXPECT_EQ(r.ch().expected, Psn(0xFFFFF0) + kWindow);
  EXPECT_EQ(r.receive((0xFFFFF0 + kWindow) & Psn::kMask), RxVerdict::kBeyondWindow) << "in order, and no room";
  EXPECT_EQ(r.receive((0xFFFFF0 + kWindow + 1) & Psn::kMask), RxVerdict::kBeyondWindow);
  r.stalled = false;
  r.deliver();
  EXPECT_EQ(r.delivered.size(), kWindow);
  EXPECT_EQ(r.receive((0xFFFFF0 + kWindow) & Psn::kMask), RxVerdict::kInOrder);
}

TEST(Receiving, what_waits_for_delivery_is_acknowledged) {
  Receiver r(100);
  r.stalled = true;
  r.receive_all({100, 101, 103});
  EXPECT_EQ(r.cumulative(), 101u);
  EXPECT_EQ(r.reported(), (Psns{103}));
}

TEST(Receiving, a_gap_that_is_closed_while_delivery_waits__moves_no_further_than_the_window) {
  Receiver r(100);
  r.stalled = true;
  r.receive(100);
  for (uint32_t psn = 102; psn < 100 + kWindow; ++psn) ASSERT_EQ(r.receive(psn), RxVerdict::kAhead);
  r.receive(101);
  EXPECT_EQ(r.ch().expected, Psn(100 + kWindow)) << "all slots are taken: the next one is not read as its predecessor";
}

TEST(Receiving, nothing_waits_at_a_cursor_that_has_caught_up) {
  Receiver r(100);
  EXPECT_FALSE(accepted_at_cursor(r.ch()));
  r.receive(101);
  EXPECT_FALSE(accepted_at_cursor(r.ch())) << "101 was accepted, 100 not";
  r.stalled = true;
  r.receive(100);
  EXPECT_TRUE(accepted_at_cursor(r.ch()));
  EXPECT_EQ(kept_at_cursor(*r.s, r.ch()), 0u) << "its bytes were placed";
}

// ---- packets that are kept -------------------------------------------------------------------------------------

struct Keeping : Receiver {
  explicit Keeping(uint32_t packets = 8, uint32_t small = 0) : Receiver(100, keeping(packets, small)) {}
  static CoreConfig keeping(uint32_t packets, uint32_t small) {
    CoreConfig c = with_window(kWindow);
    c.kept_packets = packets;
    c.kept_small_packets = small;
    return c;
  }
  // The index of the packet, or 0.
  uint32_t keep(uint32_t psn, size_t bytes = 5) {
    wire::RtpHeader rtp;
    rtp.psn = Psn(psn);
    std::vector<std::byte> rest(bytes, static_cast<std::byte>(psn));
    if (!keep_until_delivery(*s, ch(), rtp, rest)) return 0;
    accept_ahead(*s, ch(), rtp.psn);
    return s->kept_by_psn.find(channel, rtp.psn);
  }
};

TEST(Keeping, a_kept_packet_is_noted) {
  Keeping r;
  TestHost host;
  r.s->looker.begin(host);
  ASSERT_NE(r.keep(102), 0u);
  EXPECT_EQ(host.noted(Stage::kPacketKept), (std::vector<Note>{{Stage::kPacketKept, r.channel, 102}}));
}

TEST(Keeping, a_kept_packet_has_its_header_and_its_bytes) {
  Keeping r;
  const uint32_t index = r.keep(102);
  ASSERT_NE(index, 0u);
  EXPECT_EQ(r.s->kept[index].rtp.psn, Psn(102));
  EXPECT_EQ(r.s->kept[index].bytes, 5u);
  EXPECT_EQ(r.s->kept.data(index)[4], std::byte{102});
  EXPECT_EQ(r.ch().kept.total(), 1u);
}

TEST(Keeping, a_packet_that_was_placed_takes_no_place) {
  Keeping r;
  r.receive(102);
  EXPECT_EQ(r.s->kept.in_use(), 0u);
  EXPECT_EQ(r.s->kept_by_psn.find(r.channel, Psn(102)), 0u);
}

TEST(Keeping, its_place_is_free_when_it_is_delivered) {
  Keeping r;
  r.keep(102);
  r.keep(101);
  r.receive(100);
  EXPECT_EQ(r.delivered, (Psns{100, 101, 102}));
  EXPECT_EQ(r.ch().kept.total(), 0u);
  EXPECT_EQ(r.s->kept.in_use(), 0u);
  EXPECT_EQ(r.s->kept_by_psn.size(), 0u);
}

TEST(Keeping, one_channel_gets_half_of_the_places_and_the_next_one_half_of_the_rest) {
  Keeping r(8);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_NE(r.keep(101 + i), 0u);
  EXPECT_EQ(r.keep(105), 0u);
  r.channel = r.add_channel(100);
  for (uint32_t i = 0; i < 2; ++i) EXPECT_NE(r.keep(101 + i), 0u);
  EXPECT_EQ(r.keep(103), 0u);
}

// A window of one-packet messages must not use up the places of large packets.
TEST(Keeping, small_packets_have_places_of_their_own) {
  constexpr uint32_t kSmall = KeptPackets::kSmallBytes;
  Keeping r(8, 16);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_NE(r.keep(101 + i, kSmall), 0u);
  EXPECT_EQ(r.ch().kept, (KeptCount{8, 0})) << "half of them";
  EXPECT_NE(r.keep(110, kSmall + 1), 0u);
  EXPECT_EQ(r.ch().kept, (KeptCount{8, 1}));
  EXPECT_NE(r.keep(111, kSmall), 0u);
  EXPECT_EQ(r.ch().kept, (KeptCount{8, 2})) << "its share of small places is used";
  r.receive(100);
  EXPECT_EQ(r.ch().kept, (KeptCount{0, 2}));
  r.receive(109);
  EXPECT_EQ(r.ch().kept, KeptCount{});
  EXPECT_EQ(r.s->kept.in_use(), 0u);
}

TEST(Keeping, a_packet_that_is_delivered_gives_back_a_place_of_the_size_that_it_took) {
  constexpr uint32_t kSmall = KeptPackets::kSmallBytes;
  Keeping r(8, 2);
  r.keep(103, kSmall);
  r.keep(101, kSmall);
  EXPECT_EQ(r.ch().kept, (KeptCount{1, 1})) << "there is a small place for one of them";
  r.receive(100);
  EXPECT_EQ(r.ch().kept, (KeptCount{1, 0})) << "the large one, while the small one is in use";
  r.receive(102);
  EXPECT_EQ(r.ch().kept, KeptCount{});
}

TEST(Keeping, each_place_has_bytes_of_its_own) {
  for (uint32_t bytes : {KeptPackets::kSmallBytes, KeptPackets::kSmallBytes + 1}) {
    Keeping r(4, 4);
    const uint32_t first = r.keep(101, bytes), second = r.keep(102, bytes);
    ASSERT_NE(first, second);
    for (uint32_t i = 0; i < bytes; ++i) {
      ASSERT_EQ(r.s->kept.data(first)[i], std::byte{101});
      ASSERT_EQ(r.s->kept.data(second)[i], std::byte{102});
    }
  }
}

TEST(Keeping, a_packet_longer_than_a_place_is_not_kept) {
  Keeping r;
  EXPECT_NE(r.keep(101, r.s->config.max_frame_bytes), 0u);
  EXPECT_EQ(r.keep(102, r.s->config.max_frame_bytes + 1), 0u);
  EXPECT_EQ(r.ch().kept.total(), 1u);
}

TEST(Keeping, all_places_of_a_channel_that_dies_are_free) {
  Keeping r;
  r.keep(101);
  r.receive(103);  // placed
  r.keep(104);
  release_reorder(*r.s, r.ch());
  EXPECT_EQ(r.ch().kept.total(), 0u);
  EXPECT_EQ(r.s->kept.in_use(), 0u);
  EXPECT_EQ(r.s->reorder.in_use(), 0u);
  EXPECT_EQ(r.ch().reorder, 0u);
  release_reorder(*r.s, r.ch());
  EXPECT_EQ(r.s->reorder.in_use(), 0u) << "there is nothing more to free";
}

TEST(Keeping, what_waits_for_delivery_without_a_gap_is_free_when_its_channel_dies) {
  Keeping r;
  r.stalled = true;
  r.keep(101);
  r.receive(100);
  EXPECT_EQ(r.s->reorder.in_use(), 0u) << "nothing is missing";
  EXPECT_EQ(r.s->kept.in_use(), 1u);
  release_reorder(*r.s, r.ch());
  EXPECT_EQ(r.s->kept.in_use(), 0u);
  EXPECT_EQ(r.s->kept_by_psn.size(), 0u);
}

TEST(Keeping, a_block_that_is_used_again_is_empty) {
  Keeping r;
  r.receive_all({101, 105, 127, 128});  // the last and the first place of the block, too
  release_reorder(*r.s, r.ch());
  r.channel = r.add_channel(100);
  r.receive_all({102, 130});
  EXPECT_EQ(r.reported(), (Psns{102, 130}));
}

TEST(Keeping, all_places_of_a_channel_that_dies_are_free_and_none_of_another) {
  Keeping r;
  r.receive(103);  // the block before the other's
  const uint32_t first = r.channel;
  r.channel = r.add_channel(100);
  r.keep(128);  // in the first place of its block
  const uint32_t second = r.channel;
  release_reorder(*r.s, r.s->channels[first]);
  EXPECT_EQ(r.s->kept.in_use(), 1u);
  EXPECT_EQ(r.ch().kept.total(), 1u);
  release_reorder(*r.s, r.s->channels[second]);
  EXPECT_EQ(r.s->kept.in_use(), 0u);
  EXPECT_EQ(r.ch().kept.total(), 0u);
}

}  // namespace
}  // namespace ub::tp
