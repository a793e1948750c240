// SPDX-License-Identifier: Apache-2.0
//
// Tables 2 and 3 of the paper on ORNIC, and the lists of blocks that it compares itself with. It says: a width of 320
// packets, blocks of 16, packets displaced by up to 64, one step for each pointer that is followed, and a loss in the
// first block. It does not say how packets are displaced, nor which pointers the lists have. Chosen here, because the
// paper's numbers then come out exactly:
//
// * Packets are shuffled in groups of 64. A packet that is lost comes again after all others of the width.
// * All blocks of a group are in the list before its packets are looked up.
// * MELO+: a list with links forward, and pointers to its first and its last block.
// * LEFT: one more pointer, to the block before the last one.
// * LEFT+: and links backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "lib/base/prng.h"
#include "lib/transport/tp/block_bitmap.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace ub::tp {
namespace {

constexpr uint32_t kWidth = 320, kGroup = 64, kLost = 5;

struct Outcome {
  double steps;          // to find a block, on average
  uint32_t most_blocks;  // that one channel had
};

// Packets of one width in the order in which they arrive.
std::vector<uint32_t> arrivals(bool loss, uint64_t seed) {
  Prng random(seed);
  std::vector<uint32_t> order(kWidth);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t group = 0; group < kWidth; group += kGroup) {
    for (uint32_t i = kGroup - 1; i > 0; --i) std::swap(order[group + i], order[group + random.below(i + 1)]);
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
  uint32_t steps = i == n - 1 ? 1 : i + 1;
  if (list == List::kMelo) return steps;
  if (i == n - 2) steps = 1;
  if (list == List::kLeftPlus && i + 2 < n) steps = std::min(steps, n - 1 - i);
  return steps;
}

// Blocks leave the list at its front alone, when all packets of them and of those in front have arrived.
Outcome run_list(List list, bool loss, uint64_t seed) {
  std::vector<bool> arrived(kWidth);
  uint32_t front = 0, end = 0, most = 0, steps = 0;  // the blocks [front, end) are in the list
  for (const uint32_t packet : arrivals(loss, seed)) {
    end = std::max(end, (packet / kGroup + 1) * kGroup / kBlockBits);
    most = std::max(most, end - front);
    steps += pointers(list, packet / kBlockBits - front, end - front);
    arrived[packet] = true;
    // Within a group the list is not shortened, so that what it costs does not hang on how the group was shuffled.
    const bool group_complete = std::find(arrived.begin() + front * kBlockBits, arrived.begin() + end * kBlockBits,
                                          false) == arrived.begin() + end * kBlockBits;
    if (group_complete) front = end;
  }
  EXPECT_EQ(front, end);
  return {double(steps) / kWidth, most};
}

// ---- ours ------------------------------------------------------------------------------------------------------

struct CountingDirectory {
  uint16_t* nodes = nullptr;
  uint32_t* looked = nullptr;
  uint16_t& operator[](uint32_t i) const { return ++*looked, nodes[i]; }
};

Outcome run_blocks(bool loss, uint64_t seed) {
  ZeroedMemory memory(4096);
  Arena arena(memory.get());
  BlockPool pool;
  pool.init(arena, kWidth / kBlockBits);
  std::vector<uint16_t> nodes(kWidth / kBlockBits);
  uint32_t looked = 0, steps = 0, searched = 0, most = 0;
  BlockBitmap<CountingDirectory> map;
  map.begin({nodes.data(), &looked}, kWidth, Psn(0xFFFF00));
  const Psn begin = map.first();
  for (const uint32_t packet : arrivals(loss, seed)) {
    if (begin + packet == map.first()) {
      map.advance(pool);
      continue;
    }
    looked = 0;
    EXPECT_NE(map.set(pool, begin + packet), map.Set::kNoBlock);
    steps += looked;
    ++searched;
    most = std::max(most, pool.in_use());
  }
  EXPECT_EQ(map.first(), begin + kWidth);
  EXPECT_EQ(pool.in_use(), 0u);
  return {double(steps) / searched, most};
}

constexpr uint64_t kSeeds = 100;

// The worst of many shuffles.
template <class Run>
Outcome worst(Run run, bool loss) {
  Outcome all{};
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
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
    {"blocks", {1, 1}, {4, 5}},
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

}  // namespace
}  // namespace ub::tp
