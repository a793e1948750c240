// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/block_bitmap.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "lib/base/prng.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace ub::tp {
namespace {

constexpr uint32_t kWidth = 320;
using Bitmap = BlockBitmap<>;
using Set = Bitmap::Set;

// Several channels that share a pool.
struct Bitmaps {
  explicit Bitmaps(uint32_t blocks = 64, uint32_t first = 0xFFFFFF - 40, uint32_t channels = 1)
      : memory(1 << 16), directories(channels, std::vector<uint16_t>(kWidth / kBlockBits)), maps(channels) {
    Arena arena(memory.get());
    pool.init(arena, blocks);
    for (uint32_t i = 0; i < channels; ++i) maps[i].begin(directories[i].data(), kWidth, Psn(first));
  }
  Bitmap& map() { return maps[0]; }
  // The packet so far behind the first missing one.
  Psn at(uint32_t distance) { return map().first() + distance; }
  Set set(uint32_t distance) { return map().set(pool, at(distance)); }
  bool test(uint32_t distance) { return map().test(pool, at(distance)); }
  void set_all(uint32_t from, uint32_t to) {
    for (uint32_t d = from; d < to; ++d) ASSERT_EQ(set(d), Set::kNew) << d;
  }

  ZeroedMemory memory;
  BlockPool pool;
  std::vector<std::vector<uint16_t>> directories;
  std::vector<Bitmap> maps;
};

TEST(BlockBitmap, an_empty_one_holds_no_block) {
  Bitmaps b;
  for (uint32_t d = 0; d < kWidth; ++d) ASSERT_FALSE(b.test(d));
  EXPECT_EQ(b.pool.in_use(), 0u);
}

TEST(BlockBitmap, a_packet_is_new_once) {
  Bitmaps b;
  EXPECT_EQ(b.set(1), Set::kNew);
  EXPECT_EQ(b.set(1), Set::kDuplicate);
  EXPECT_EQ(b.set(2), Set::kNew);
  EXPECT_TRUE(b.test(1) && b.test(2));
  EXPECT_FALSE(b.test(0) || b.test(3));
  EXPECT_EQ(b.pool.in_use(), 1u);
}

TEST(BlockBitmap, the_width_ends_where_it_does) {
  Bitmaps b;
  EXPECT_EQ(b.set(kWidth - 1), Set::kNew);
  EXPECT_EQ(b.pool.in_use(), 1u);
  EXPECT_FALSE(b.test(0));
  EXPECT_TRUE(b.test(kWidth - 1));
}

// The example of ORNIC: the first block is incomplete, two in the middle are full, the last one is not.
TEST(BlockBitmap, full_blocks_are_back_in_the_pool_at_once) {
  Bitmaps b;
  b.set_all(1, 3 * kBlockBits + 5);
  EXPECT_EQ(b.pool.in_use(), 2u);
  for (uint32_t d = 1; d < 3 * kBlockBits + 5; ++d) {
    ASSERT_TRUE(b.test(d)) << d;
    ASSERT_EQ(b.set(d), Set::kDuplicate) << d;
  }
  EXPECT_FALSE(b.test(3 * kBlockBits + 5));
  EXPECT_EQ(b.pool.in_use(), 2u);
}

TEST(BlockBitmap, the_missing_packet_passes_all_that_follow) {
  Bitmaps b;
  const Psn begin = b.map().first();
  b.set_all(1, 3 * kBlockBits + 5);
  b.map().advance(b.pool);
  EXPECT_EQ(b.map().first(), begin + (3 * kBlockBits + 5));
  EXPECT_EQ(b.pool.in_use(), 0u);
  for (uint32_t d = 0; d < kWidth; ++d) ASSERT_FALSE(b.test(d)) << d;
}

TEST(BlockBitmap, it_stops_at_the_next_gap) {
  Bitmaps b;
  const Psn begin = b.map().first();
  b.set_all(1, 6);
  b.set_all(7, 9);
  b.map().advance(b.pool);
  EXPECT_EQ(b.map().first(), begin + 6);
  EXPECT_TRUE(b.test(1) && b.test(2));
  EXPECT_FALSE(b.test(0) || b.test(3));
  EXPECT_EQ(b.pool.in_use(), 1u);
}

TEST(BlockBitmap, a_full_width_is_passed_once) {
  Bitmaps b;
  const Psn begin = b.map().first();
  b.set_all(1, kWidth);
  EXPECT_EQ(b.pool.in_use(), 1u) << "the block of the first missing packet";
  b.map().advance(b.pool);
  EXPECT_EQ(b.map().first(), begin + kWidth);
  EXPECT_EQ(b.pool.in_use(), 0u);
}

TEST(BlockBitmap, without_a_block_a_packet_is_refused_and_comes_again) {
  Bitmaps b(2);
  EXPECT_EQ(b.set(1), Set::kNew);
  EXPECT_EQ(b.set(kBlockBits), Set::kNew);
  EXPECT_EQ(b.set(2 * kBlockBits), Set::kNoBlock);
  EXPECT_FALSE(b.test(2 * kBlockBits));
  EXPECT_EQ(b.set(kBlockBits + 1), Set::kNew) << "its block is there";
  b.map().advance(b.pool);
  EXPECT_EQ(b.map().first(), Psn(0xFFFFFF - 40) + 2);
  EXPECT_EQ(b.set(2 * kBlockBits - 2), Set::kNew) << "the block in front is free";
}

TEST(BlockBitmap, channels_share_the_pool_and_no_bits) {
  Bitmaps b(64, 100, 2);
  EXPECT_EQ(b.maps[0].set(b.pool, Psn(105)), Set::kNew);
  EXPECT_FALSE(b.maps[1].test(b.pool, Psn(105)));
  EXPECT_EQ(b.maps[1].set(b.pool, Psn(106)), Set::kNew);
  b.maps[0].release(b.pool);
  EXPECT_EQ(b.pool.in_use(), 1u);
  EXPECT_FALSE(b.maps[0].test(b.pool, Psn(105)));
  EXPECT_TRUE(b.maps[1].test(b.pool, Psn(106)));
}

TEST(BlockBitmap, what_is_released_has_nothing_left) {
  Bitmaps b;
  b.set_all(1, 40);
  b.set_all(300, kWidth);
  b.map().release(b.pool);
  EXPECT_EQ(b.pool.in_use(), 0u);
  for (const uint16_t node : b.directories[0]) ASSERT_EQ(node, 0);
  b.map().release(b.pool);
  EXPECT_EQ(b.pool.in_use(), 0u);
}

TEST(BlockPool, gives_each_block_once_and_empty) {
  Bitmaps b(3);
  std::set<uint32_t> taken;
  for (int i = 0; i < 3; ++i) {
    const uint32_t block = b.pool.alloc();
    b.pool[block] = 0x5555;
    taken.insert(block);
  }
  EXPECT_EQ(taken, (std::set<uint32_t>{1, 2, 3}));
  EXPECT_EQ(b.pool.alloc(), 0u);
  for (const uint32_t block : {2u, 1u}) b.pool.free(block);
  EXPECT_EQ(b.pool.in_use(), 1u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(b.pool[b.pool.alloc()], 0);
  EXPECT_EQ(b.pool.alloc(), 0u);
}

// Blocks in which some have arrived and some have not: so many must be in use, no more.
uint32_t mixed_blocks(const std::set<uint64_t>& arrived) {
  std::set<uint64_t> blocks;
  for (const uint64_t p : arrived) blocks.insert(p / kBlockBits);
  uint32_t mixed = 0;
  for (const uint64_t block : blocks) {
    const auto from = arrived.lower_bound(block * kBlockBits), to = arrived.lower_bound((block + 1) * kBlockBits);
    mixed += std::distance(from, to) < int{kBlockBits};
  }
  return mixed;
}

// Against a set of numbers that never wrap, over several wraps of the PSN, with pools that suffice and others.
TEST(BlockBitmap, random__is_what_a_set_is) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Prng random(seed);
    const uint32_t start = random.next_u32() & Psn::kMask, blocks = seed % 3 == 0 ? 4 : 64;
    Bitmaps b(blocks, start);
    std::set<uint64_t> arrived;
    uint64_t first = 0;  // packet p has PSN start + p and, as the width is a multiple of 16, the block p/16
    for (int step = 0; step < 20'000; ++step) {
      if (step % 1000 == 0) {  // close to a wrap
        b.map().release(b.pool);
        arrived.clear();
        first = 0;
        b.map().begin(b.directories[0].data(), kWidth, Psn(0xFFFFFF - static_cast<uint32_t>(random.below(kWidth))));
      }
      const uint64_t reach = random.chance(0.1) ? kWidth : 70;
      const uint64_t p = first + random.below(reach);
      const Psn psn = b.map().first() + static_cast<int64_t>(p - first);
      ASSERT_EQ(b.map().test(b.pool, psn), arrived.contains(p)) << "seed " << seed << " step " << step;
      if (p == first) {
        b.map().advance(b.pool);
        const Psn before = psn;
        const uint64_t old = first;
        do arrived.erase(first++);
        while (arrived.contains(first));
        ASSERT_EQ(b.map().first(), before + static_cast<int64_t>(first - old));
      } else {
        const bool known = arrived.contains(p);
        const Set result = b.map().set(b.pool, psn);
        if (result == Set::kNoBlock) {
          ASSERT_FALSE(known);
          ASSERT_EQ(b.pool.in_use(), blocks);
        } else {
          ASSERT_EQ(result, known ? Set::kDuplicate : Set::kNew);
          arrived.insert(p);
        }
      }
      if (step % 7 == 0) {
        const uint64_t word = b.map().bits(b.pool, b.map().first());
        for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ((word >> i & 1) != 0, arrived.contains(first + i)) << i;
        const uint32_t from = static_cast<uint32_t>(random.below(kWidth - 64));
        const uint64_t later = b.map().bits(b.pool, b.map().first() + from);
        for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ((later >> i & 1) != 0, arrived.contains(first + from + i)) << i;
      }
    }
    b.map().release(b.pool);
    ASSERT_EQ(b.pool.in_use(), 0u);
  }
}

TEST(BlockBitmap, random__uses_a_block_only_where_bits_are_mixed) {
  Prng random(7);
  Bitmaps b;
  std::set<uint64_t> arrived;
  uint64_t first = 0;
  for (int step = 0; step < 5'000; ++step) {
    const uint64_t p = first + random.below(100);
    if (p == first) {
      b.map().advance(b.pool);
      do arrived.erase(first++);
      while (arrived.contains(first));
      // Of a block that is partly passed, the passed bits are free for packets a width later.
    } else if (b.map().set(b.pool, b.map().first() + static_cast<int64_t>(p - first)) == Set::kNew) {
      arrived.insert(p);
    }
    ASSERT_EQ(b.pool.in_use(), mixed_blocks(arrived)) << step;
  }
}

}  // namespace
}  // namespace ub::tp
