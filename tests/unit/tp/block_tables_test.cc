// SPDX-License-Identifier: Apache-2.0
//
// Tables 2 and 3 of the paper on ORNIC: how many steps it takes to find the block of a packet, and how many blocks one
// channel has at most. Beside its blocks stand the lists of blocks that it compares itself with, and the bitmap that a
// channel of ours has while something is missing.
//
// The paper says: a width of 320 packets, blocks of 16, packets displaced by up to 64, one step for each pointer that
// is followed, and a loss in the first block. It does not say how packets are displaced, nor which pointers the lists
// have. Chosen here, because the paper's numbers then come out exactly:
//
// * Packets are shuffled in groups of 64. A packet that is lost comes again after all others of the width.
// * All blocks of a group are in the list before its packets are looked up.
// * MELO+: a list with links forward, and pointers to its first and its last block.
// * LEFT: one more pointer, to the block before the last one.
// * LEFT+: and links backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <vector>

#include "lib/base/prng.h"
#include "tests/unit/tp/block_bitmap_model.h"
#include "tests/unit/tp/receiver.h"

namespace ub::tp {
namespace {

constexpr uint32_t kDisplacement = 64, kOfBandwidth = 256, kWidth = kDisplacement + kOfBandwidth;
static_assert(kWidth == 320);
constexpr uint32_t kLost = 5;
constexpr uint64_t kShuffles = 100;

struct Outcome {
  double steps;          // to find a block, on average
  uint32_t most_blocks;  // that one channel had
};

// Packets of one width in the order in which they arrive.
std::vector<uint32_t> arrivals(bool loss, uint64_t seed) {
  Prng random(seed);
  std::vector<uint32_t> order(kWidth);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t group = 0; group < kWidth; group += kDisplacement) {
    for (uint32_t i = kDisplacement - 1; i > 0; --i) std::swap(order[group + i], order[group + random.below(i + 1)]);
  }
  if (loss) {
    std::erase(order, kLost);
    order.push_back(kLost);
  }
  return order;
}

// ---- lists -----------------------------------------------------------------------------------------------------

enum class List : uint8_t { kMelo, kLeft, kLeftPlus };

// Pointers to follow to block `i` of `n`.
uint32_t pointers(List list, uint32_t i, uint32_t n) {
  if (i == n - 1) return 1;
  if (list != List::kMelo && i == n - 2) return 1;
  const uint32_t from_the_front = i + 1, from_the_end = n - 1 - i;
  return list == List::kLeftPlus ? std::min(from_the_front, from_the_end) : from_the_front;
}

// Blocks leave the list at its front alone, when all packets of them and of those in front have arrived. Within a group
// the list is not shortened, so that the steps do not depend on the shuffle.
Outcome run_list(List list, bool loss, uint64_t seed) {
  std::vector<bool> arrived(kWidth);
  uint32_t front = 0, end = 0, most = 0, steps = 0;  // the blocks [front, end) are in the list
  for (const uint32_t packet : arrivals(loss, seed)) {
    end = std::max(end, (packet / kDisplacement + 1) * kDisplacement / kBlockBits);
    most = std::max(most, end - front);
    steps += pointers(list, packet / kBlockBits - front, end - front);
    arrived[packet] = true;
    const auto behind = arrived.begin() + end * kBlockBits;
    if (std::find(arrived.begin() + front * kBlockBits, behind, false) == behind) front = end;
  }
  EXPECT_EQ(front, end);
  return {double(steps) / kWidth, most};
}

// ---- blocks of ORNIC -------------------------------------------------------------------------------------------

Outcome run_blocks(bool loss, uint64_t seed) {
  BlockPool pool(kWidth / kBlockBits);
  BlockBitmap map(pool, kWidth);
  uint32_t ahead = 0, most = 0;
  for (const uint32_t packet : arrivals(loss, seed)) {
    ahead += packet != map.first_missing();
    EXPECT_EQ(map.arrive(packet), BlockBitmap::Arrival::kNew);
    most = std::max(most, pool.in_use());
  }
  EXPECT_EQ(map.first_missing(), kWidth);
  EXPECT_EQ(pool.in_use(), 0u);
  return {double(map.steps()) / ahead, most};
}

// The worst of many shuffles.
template <class Run>
Outcome worst(Run run, bool loss) {
  Outcome all{};
  for (uint64_t seed = 1; seed <= kShuffles; ++seed) {
    const Outcome one = run(loss, seed);
    all = {std::max(all.steps, one.steps), std::max(all.most_blocks, one.most_blocks)};
  }
  return all;
}

struct Row {
  const char* name;
  double steps[2];  // without and with a loss
  uint32_t most_blocks[2];
};
constexpr Row kPaper[] = {
    {"MELO+", {1.75, 7.75}, {4, 20}},
    {"LEFT", {1.25, 5.25}, {4, 20}},
    {"LEFT+", {1.25, 1.65}, {4, 20}},
    {"ORNIC", {1, 1}, {4, 5}},
};

Outcome outcome_of(size_t row, bool loss) {
  if (row == 3) return worst(run_blocks, loss);
  return worst([row](bool l, uint64_t seed) { return run_list(List{static_cast<uint8_t>(row)}, l, seed); }, loss);
}

TEST(BlockTables, steps_and_blocks_are_those_of_the_paper) {
  std::printf("%-8s %15s %15s\n%-8s %7s %7s %7s %7s\n", "", "steps to find", "most blocks", "", "no loss", "loss",
              "no loss", "loss");
  for (size_t row = 0; row < std::size(kPaper); ++row) {
    Outcome now[2];
    for (bool loss : {false, true}) {
      now[loss] = outcome_of(row, loss);
      EXPECT_NEAR(now[loss].steps, kPaper[row].steps[loss], 1e-9) << kPaper[row].name << (loss ? ", loss" : "");
      EXPECT_EQ(now[loss].most_blocks, kPaper[row].most_blocks[loss]) << kPaper[row].name << (loss ? ", loss" : "");
    }
    std::printf("%-8s %7.2f %7.2f %7u %7u\n", kPaper[row].name, now[0].steps, now[1].steps, now[0].most_blocks,
                now[1].most_blocks);
  }
}

// At 100 Gb/s and 4 KiB: packets are displaced by what arrives within 20 us, half of what round trips differ by, and a
// round trip is 90 us. Both counts are made powers of two.
TEST(BlockTables, the_width_is_the_displacement_and_a_round_trip) {
  constexpr double kBytesPerUs = 12'500, kPacketBytes = 4096;
  const double displacement = 20 * kBytesPerUs / kPacketBytes, window = 90 * kBytesPerUs / kPacketBytes;
  EXPECT_NEAR(displacement, 61.0, 0.05);
  EXPECT_EQ(std::bit_ceil(static_cast<uint32_t>(displacement)), kDisplacement);
  EXPECT_NEAR(window, 274.7, 0.05);
  EXPECT_EQ(std::bit_floor(static_cast<uint32_t>(window)), kOfBandwidth);
}

// ---- the bitmap of a channel of ours ---------------------------------------------------------------------------

TEST(BlockTables, a_channel_of_ours_has_one_bitmap_with_or_without_a_loss) {
  constexpr uint32_t kOurWindow = 512;  // a power of two that holds the width
  for (const bool loss : {false, true}) {
    for (uint64_t seed = 1; seed <= kShuffles; ++seed) {
      Receiver r(0xFFFF80, with_window(kOurWindow));
      uint32_t most = 0;
      for (const uint32_t packet : arrivals(loss, seed)) {
        r.receive((0xFFFF80 + packet) & Psn::kMask);
        most = std::max(most, r.s->reorder.in_use());
      }
      ASSERT_EQ(most, 1u);
      ASSERT_EQ(r.s->reorder.in_use(), 0u);
      ASSERT_EQ(r.delivered.size(), kWidth);
    }
  }
}

}  // namespace
}  // namespace ub::tp
