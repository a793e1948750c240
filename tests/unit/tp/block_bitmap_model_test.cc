// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tp/block_bitmap_model.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>

#include "lib/base/prng.h"

namespace ub::tp {
namespace {

constexpr uint32_t kWidth = 320;
using Arrival = BlockBitmap::Arrival;

struct Bitmap {
  explicit Bitmap(uint32_t blocks = 64) : pool(blocks), map(pool, kWidth) {}
  void arrive_all(uint32_t from, uint32_t to) {
    for (uint32_t p = from; p < to; ++p) ASSERT_EQ(map.arrive(p), Arrival::kNew) << p;
  }

  BlockPool pool;
  BlockBitmap map;
};

TEST(BlockBitmapModel, a_packet_is_new_once) {
  Bitmap b;
  EXPECT_EQ(b.map.arrive(1), Arrival::kNew);
  EXPECT_EQ(b.map.arrive(1), Arrival::kDuplicate);
  EXPECT_EQ(b.map.arrive(0), Arrival::kNew);
  EXPECT_EQ(b.map.arrive(0), Arrival::kDuplicate);
  EXPECT_EQ(b.map.first_missing(), 2u);
  EXPECT_EQ(b.pool.in_use(), 0u);
}

// The example of ORNIC: the first block is incomplete, two in the middle are full, the last one is not.
TEST(BlockBitmapModel, full_blocks_are_back_in_the_pool_at_once) {
  Bitmap b;
  b.arrive_all(1, 3 * kBlockBits + 5);
  EXPECT_EQ(b.pool.in_use(), 2u);
  EXPECT_EQ(b.map.first_missing(), 0u);
  for (uint32_t p = 1; p < 3 * kBlockBits + 5; ++p) ASSERT_EQ(b.map.arrive(p), Arrival::kDuplicate) << p;
  EXPECT_EQ(b.map.arrive(0), Arrival::kNew);
  EXPECT_EQ(b.map.first_missing(), 3 * kBlockBits + 5);
  EXPECT_EQ(b.pool.in_use(), 0u);
}

TEST(BlockBitmapModel, of_a_full_width_only_the_block_of_the_missing_packet_is_in_use) {
  Bitmap b;
  b.arrive_all(1, kWidth);
  EXPECT_EQ(b.pool.in_use(), 1u);
  b.map.arrive(0);
  EXPECT_EQ(b.map.first_missing(), kWidth);
  EXPECT_EQ(b.pool.in_use(), 0u);
}

TEST(BlockBitmapModel, where_the_pool_is_empty_a_packet_is_refused_and_comes_again) {
  Bitmap b(2);
  b.map.arrive(1);
  b.map.arrive(kBlockBits);
  EXPECT_EQ(b.map.arrive(2 * kBlockBits), Arrival::kNoBlock);
  EXPECT_EQ(b.map.arrive(kBlockBits + 1), Arrival::kNew) << "its block is there";
  b.map.arrive(0);
  EXPECT_EQ(b.map.arrive(2 * kBlockBits), Arrival::kNew) << "the block in front is free";
}

// Of a block that is partly passed, the bits that were passed stand for packets a width later.
uint32_t mixed_blocks(const std::set<uint32_t>& ahead) {
  std::set<uint32_t> blocks;
  for (const uint32_t p : ahead) blocks.insert(p / kBlockBits);
  uint32_t mixed = 0;
  for (const uint32_t block : blocks) {
    const auto from = ahead.lower_bound(block * kBlockBits), to = ahead.lower_bound((block + 1) * kBlockBits);
    mixed += std::distance(from, to) < int{kBlockBits};
  }
  return mixed;
}

TEST(BlockBitmapModel, random_order__is_what_a_set_is_and_has_blocks_only_where_bits_are_mixed) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Prng random(seed);
    Bitmap b;
    std::set<uint32_t> ahead;
    uint32_t first = 0;
    for (int step = 0; step < 10'000; ++step) {
      const uint32_t p = first + static_cast<uint32_t>(random.below(kWidth - kBlockBits));
      ASSERT_EQ(b.map.arrive(p), ahead.insert(p).second ? Arrival::kNew : Arrival::kDuplicate) << step;
      while (ahead.erase(first) != 0) ++first;
      ASSERT_EQ(b.map.first_missing(), first);
      ASSERT_EQ(b.pool.in_use(), mixed_blocks(ahead)) << "seed " << seed << " step " << step;
    }
    ASSERT_GT(first, 2 * kWidth);
  }
}

}  // namespace
}  // namespace ub::tp
