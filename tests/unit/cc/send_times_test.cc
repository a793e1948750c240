// SPDX-License-Identifier: Apache-2.0
//
// When packets left: what tells a round trip, and what does not.
#include "lib/transport/cc/send_times.h"

#include <gtest/gtest.h>

#include <vector>

namespace ub::cc {
namespace {

constexpr uint32_t kPackets = 64;

struct Times : SendTimes {
  explicit Times(uint32_t flows = 2) : memory(bytes(flows)) {
    Arena arena(memory.data());
    init(arena, flows, kPackets);
    block = take();
  }
  static size_t bytes(uint32_t flows) {
    SendTimes measured;
    Arena arena(nullptr);
    measured.init(arena, flows, kPackets);
    return arena.used_bytes();
  }
  /// What the numbers of blocks take alone.
  static size_t bytes_of_numbers(uint32_t flows) {
    Slab<uint32_t> numbers;
    Arena arena(nullptr);
    numbers.init(arena, flows);
    arena.take<Instant>(0);  // from where the times begin
    return arena.used_bytes();
  }
  /// -1: none.
  int64_t round_trip(uint32_t psn, uint64_t now) {
    Duration sample;
    return arrived(block, Psn(psn), {now}, &sample) ? sample.ns : -1;
  }
  std::vector<std::byte> memory;
  uint32_t block;
};

TEST(SendTimes, each_packet_tells_its_own_round_trip) {
  Times t;
  t.left(t.block, Psn(5), {1000});
  t.left(t.block, Psn(6), {1010});
  EXPECT_EQ(t.round_trip(6, 1500), 490);
  EXPECT_EQ(t.round_trip(5, 1500), 500);
}

TEST(SendTimes, a_packet_tells_one_round_trip) {
  Times t;
  t.left(t.block, Psn(5), {1000});
  EXPECT_EQ(t.round_trip(5, 1500), 500);
  EXPECT_EQ(t.round_trip(5, 1700), -1) << "known to have arrived before";
}

// Karn
TEST(SendTimes, a_packet_that_left_again_tells_none) {
  Times t;
  t.left(t.block, Psn(5), {1000});
  t.forget(t.block, Psn(5));
  EXPECT_EQ(t.round_trip(5, 1500), -1);
}

TEST(SendTimes, a_place_serves_the_packet_a_window_later) {
  Times t;
  t.left(t.block, Psn(0xFFFFFF), {1000});
  EXPECT_EQ(t.round_trip(0xFFFFFF, 1500), 500);
  t.left(t.block, Psn(kPackets - 1), {2000});
  EXPECT_EQ(t.round_trip(kPackets - 1, 2600), 600);
}

TEST(SendTimes, all_packets_of_a_window_have_places_of_their_own) {
  Times t;
  for (uint32_t i = 0; i < kPackets; ++i) t.left(t.block, Psn(0xFFFFF0) + i, {1000 + i});
  for (uint32_t i = 0; i < kPackets; ++i) EXPECT_EQ(t.round_trip(0xFFFFF0 + i, 2000), 1000 - i);
}

TEST(SendTimes, flows_have_blocks_of_their_own_that_begin_empty) {
  Times t;
  uint32_t other = t.take();
  ASSERT_NE(other, 0u);
  EXPECT_NE(other, t.block);
  EXPECT_EQ(t.take(), 0u) << "there are two";
  t.left(t.block, Psn(5), {1000});
  Duration sample;
  EXPECT_FALSE(t.arrived(other, Psn(5), {1500}, &sample));
  t.give_back(t.block);
  EXPECT_EQ(t.block, 0u);
  t.give_back(t.block);  // nothing
  t.block = t.take();
  ASSERT_NE(t.block, 0u);
  EXPECT_EQ(t.round_trip(5, 1500), -1) << "of the flow before";
  EXPECT_EQ(t.blocks().in_use(), 2u);
}

TEST(SendTimes, a_block_begins_without_times_and_touches_no_other) {
  Times t(3);
  uint32_t blocks[3] = {t.block, t.take(), t.take()};
  for (const uint32_t b : blocks) {
    for (uint32_t n = 0; n < kPackets; ++n) t.left(b, Psn(n), {1000});
  }
  const uint32_t freed = blocks[0];
  t.give_back(blocks[0]);
  ASSERT_EQ(blocks[0] = t.take(), freed);
  Duration sample;
  for (const uint32_t b : blocks) {
    for (uint32_t n = 0; n < kPackets; ++n) {
      EXPECT_EQ(t.arrived(b, Psn(n), {1500}, &sample), b != freed) << b << ", " << n;
    }
  }
}

TEST(SendTimes, where_no_flow_wants_them_they_take_no_memory) {
  Times t(0);
  EXPECT_EQ(t.block, 0u);
  EXPECT_EQ(Times::bytes(0), Times::bytes_of_numbers(0));
}

TEST(SendTimes, take_memory_for_each_flow_and_for_the_number_that_is_none) {
  EXPECT_EQ(Times::bytes(3), Times::bytes_of_numbers(3) + 4 * kPackets * sizeof(Instant));
}

}  // namespace
}  // namespace ub::cc
