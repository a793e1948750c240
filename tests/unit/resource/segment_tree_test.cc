// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/resource/segment_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "lib/base/prng.h"

namespace ub {
namespace {

// A tree, and beside it what it should hold: index by address.
class Fixture {
 public:
  explicit Fixture(uint32_t capacity, uint64_t seed = 1) : random(seed) {
    Arena measure(nullptr);
    table.init(measure, capacity);
    memory_ = std::make_unique<Block[]>(measure.used_bytes() / sizeof(Block) + 1);
    Arena arena(memory_[0].bytes);
    table = {};
    table.init(arena, capacity);
  }

  void insert(uint64_t address, uint64_t length) { insert(address, length, random.next_u32()); }
  void insert(uint64_t address, uint64_t length, uint32_t priority) {
    const uint32_t index = table.alloc();
    ASSERT_NE(index, 0u);
    Segment& s = table[index];
    s.address = address;
    s.length = length;
    s.priority = priority;
    s.left = s.right = 0xdeadbeef;  // whatever its last user left
    tree.insert(index);
    model[address] = index;
  }
  void remove(uint64_t address) {
    const uint32_t index = model.at(address);
    tree.remove(index);
    table.free(index);
    model.erase(address);
  }

  bool model_overlaps(uint64_t address, uint64_t bytes) const {
    for (const auto& [start, index] : model)
      if (start < address + bytes && address < start + table[index].length) return true;
    return false;
  }
  void check_lookups(uint64_t address, uint64_t bytes) const {
    auto behind = model.lower_bound(address);
    EXPECT_EQ(tree.at_or_behind(address), behind == model.end() ? 0 : behind->second) << address;
    auto after = model.upper_bound(address);
    EXPECT_EQ(tree.at_or_before(address), after == model.begin() ? 0 : std::prev(after)->second) << address;
    EXPECT_EQ(tree.overlaps(address, bytes), model_overlaps(address, bytes)) << address << " " << bytes;
  }
  // Order of addresses, order of priorities, and nothing more or less than the model.
  void check_shape() const {
    auto expected = model.begin();
    std::function<void(uint32_t)> walk = [&](uint32_t i) {
      if (i == 0) return;
      const Segment& s = table[i];
      for (uint32_t child : {s.left, s.right}) EXPECT_LE(child == 0 ? 0 : table[child].priority, s.priority);
      walk(s.left);
      ASSERT_NE(expected, model.end());
      EXPECT_EQ(i, (expected++)->second);
      walk(s.right);
    };
    walk(root);
    EXPECT_EQ(expected, model.end());
  }
  uint32_t depth() const {
    std::function<uint32_t(uint32_t)> of = [&](uint32_t i) {
      return i == 0 ? 0 : 1 + std::max(of(table[i].left), of(table[i].right));
    };
    return of(root);
  }

  Prng random;
  Slab<Segment> table;
  uint32_t root = 0;
  SegmentTree tree{table, root};
  std::map<uint64_t, uint32_t> model;

 private:
  struct alignas(64) Block {
    std::byte bytes[64];
  };
  std::unique_ptr<Block[]> memory_;
};

TEST(SegmentTree, empty__finds_nothing) {
  Fixture f(4);
  f.check_lookups(0, 1);
  f.check_lookups(UINT64_MAX, 1);
}

TEST(SegmentTree, neighbours__touch_but_do_not_overlap) {
  Fixture f(4);
  f.insert(0x1000, 0x1000);
  EXPECT_FALSE(f.tree.overlaps(0x2000, 1));
  EXPECT_FALSE(f.tree.overlaps(0xfff, 1));
  EXPECT_TRUE(f.tree.overlaps(0x1fff, 1));
  EXPECT_TRUE(f.tree.overlaps(0xfff, 2));
  EXPECT_TRUE(f.tree.overlaps(0, UINT64_MAX));
  f.insert(0x2000, 1);
  f.insert(0xfff, 1);
  f.check_shape();
  EXPECT_EQ(f.tree.at_or_before(0x1fff), f.model.at(0x1000));
  EXPECT_EQ(f.tree.at_or_before(0x2000), f.model.at(0x2000));
}

TEST(SegmentTree, ends_of_the_address_space) {
  Fixture f(4);
  f.insert(0, 1);
  f.insert(UINT64_MAX - 1, 1);
  for (uint64_t at : {uint64_t{0}, uint64_t{1}, UINT64_MAX - 2, UINT64_MAX - 1}) f.check_lookups(at, 1);
  f.check_shape();
}

TEST(SegmentTree, random_operations__do_what_a_map_does) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Fixture f(200, seed);
    const uint64_t space = seed % 2 == 0 ? 1000 : 20'000;  // crowded, and not
    for (int step = 0; step < 3000; ++step) {
      const uint64_t address = f.random.below(space), length = 1 + f.random.below(20);
      f.check_lookups(address, length);
      const bool grow = f.model.size() < 200 && f.random.below(100) < (step % 1000 < 600 ? 70u : 20u);
      if (grow) {
        // Few different priorities in every third run: equal ones are no exception.
        if (!f.model_overlaps(address, length)) {
          f.insert(address, length, seed % 3 == 0 ? f.random.next_u32() % 4 : f.random.next_u32());
        }
      } else if (!f.model.empty()) {
        f.remove(std::next(f.model.begin(), f.random.below(f.model.size()))->first);
      }
      if (step % 50 == 0) f.check_shape();
    }
    while (!f.model.empty()) f.remove(f.model.begin()->first);
    EXPECT_EQ(f.root, 0u);
  }
}

// The application chooses the order; an even tree of 16384 would have depth 14.
TEST(SegmentTree, any_order_of_registration__stays_flat) {
  constexpr uint32_t kCount = 16384;
  std::vector<std::function<uint32_t(uint32_t)>> orders = {
      [](uint32_t i) { return i; },
      [](uint32_t i) { return kCount - 1 - i; },
      [](uint32_t i) { return i % 2 == 0 ? i / 2 : kCount - 1 - i / 2; },
  };
  for (const auto& order : orders) {
    Fixture f(kCount);
    for (uint32_t i = 0; i < kCount; ++i) f.insert(uint64_t{order(i)} * 4096, 4096);
    EXPECT_LT(f.depth(), 60u);
    f.check_shape();
    for (uint32_t i = 0; i < kCount; i += 2) f.remove(uint64_t{i} * 4096);
    EXPECT_LT(f.depth(), 60u);
    f.check_shape();
  }
}

}  // namespace
}  // namespace ub
