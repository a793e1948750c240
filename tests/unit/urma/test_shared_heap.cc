// SPDX-License-Identifier: Apache-2.0
// Blocks of memory that both sides map: alignment, zeros, reuse, areas that come and go, and taking the memory away
// from a daemon that may live.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "lib/urma/backends/daemon/shared_heap.h"

namespace ub::urma {
namespace {

constexpr size_t kMiB = 1 << 20;

class Areas final : public AreaSource {
 public:
  ipc::Fd add_area(size_t bytes, ipc::AreaUse use, bool last_word, uint32_t* id) override {
    asked.push_back(bytes);
    if (bytes > limit) {
      refused_for_good |= last_word;
      return {};
    }
    std::string error;
    ipc::Fd fd = ipc::create_sealed_memfd("test-area", bytes, &error);
    *id = ++last_id;
    if (use != ipc::AreaUse::kWrite) {
      EXPECT_TRUE(theirs[*id].map(fd.get(), bytes, &error)) << error;
    }
    uses[*id] = use;
    return fd;
  }
  bool area_mapped(uint32_t id) override { return theirs.contains(id); }
  void drop_area(uint32_t id) override {
    EXPECT_EQ(uses.erase(id), 1u);
    theirs.erase(id);
  }

  std::map<uint32_t, ipc::Mapping> theirs;
  std::map<uint32_t, ipc::AreaUse> uses;
  std::vector<size_t> asked;
  size_t limit = SIZE_MAX;
  bool refused_for_good = false;
  uint32_t last_id = 0;
};

class Heap : public testing::Test {
 protected:
  std::byte* theirs(const SharedHeap::Place& place) { return areas->theirs.at(place.area).data() + place.offset; }

  std::shared_ptr<Areas> areas = std::make_shared<Areas>();
  std::shared_ptr<SharedHeap> heap = SharedHeap::create(areas);
};

bool is_zero(const std::byte* at, size_t bytes) {
  return std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{}; });
}

TEST_F(Heap, blocks_are_aligned_and_zero_and_theirs) {
  for (size_t bytes : {1, 64, 100, 4095, 4096, 5000, 100'000}) {
    auto block = heap->allocate(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % (bytes >= 4096 ? 4096 : 64), 0u) << bytes;
    EXPECT_TRUE(is_zero(block.get(), bytes));
    auto place = heap->find(block.get() + bytes / 2, bytes - bytes / 2);
    ASSERT_TRUE(place.has_value());
    block.get()[bytes / 2] = std::byte{7};
    EXPECT_EQ(*theirs(*place), std::byte{7});
  }
  EXPECT_EQ(heap->area_count(), 1u);
}

TEST_F(Heap, finds_only_what_lies_in_one_block) {
  auto block = heap->allocate(128);
  int elsewhere = 0;
  EXPECT_FALSE(heap->find(&elsewhere, sizeof elsewhere));
  EXPECT_TRUE(heap->find(block.get(), 128));
  EXPECT_FALSE(heap->find(block.get(), 129));
  std::byte* address = block.get();
  block.reset();
  EXPECT_FALSE(heap->find(address, 1));
}

TEST_F(Heap, what_is_found_stays_until_it_is_let_go) {
  auto block = heap->allocate(4096);
  auto place = heap->find(block.get(), 4096);
  std::memset(block.get(), 7, 4096);
  block.reset();
  EXPECT_NE(heap->allocate(4096).get(), place->block.get());
  EXPECT_EQ(*place->block, std::byte{7});
  place.reset();
  EXPECT_TRUE(is_zero(heap->allocate(4096).get(), 4096));
}

TEST_F(Heap, large_requests_and_growth) {
  auto large = heap->allocate(9 * kMiB + 1);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(areas->asked.back(), 9 * kMiB + 4096);
  std::vector<std::shared_ptr<std::byte>> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(heap->allocate(kMiB));
  EXPECT_LT(heap->area_count(), 12u);  // each is half as large as all before
  EXPECT_EQ(heap->allocate(size_t{1} << 50), nullptr);
}

TEST_F(Heap, a_refusal_of_more_than_is_needed_is_not_the_last_word) {
  areas->limit = 8 * kMiB;
  std::vector<std::shared_ptr<std::byte>> blocks;
  for (int i = 0; i < 10; ++i) {
    blocks.push_back(heap->allocate(4 * kMiB));
    ASSERT_NE(blocks.back(), nullptr);
  }
  EXPECT_FALSE(areas->refused_for_good);
  EXPECT_EQ(heap->allocate(9 * kMiB), nullptr);
  EXPECT_TRUE(areas->refused_for_good);
}

TEST_F(Heap, empty_areas_beyond_one_go) {
  std::vector<std::shared_ptr<std::byte>> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(heap->allocate(4 * kMiB));
  EXPECT_EQ(heap->area_count(), 5u);
  blocks.clear();
  EXPECT_EQ(heap->area_count(), 1u);
  EXPECT_EQ(areas->theirs.size(), 1u);
}

TEST_F(Heap, blocks_outlive_everybody_else) {
  auto block = heap->allocate(4096);
  heap.reset();
  std::memset(block.get(), 1, 4096);
  block.reset();
}

// Whatever the order, blocks do not overlap and are zero, and in the end everything is one free block again.
TEST_F(Heap, random_order) {
  std::mt19937 random(7);
  struct Live {
    std::shared_ptr<std::byte> block;
    size_t bytes;
    std::byte mark;
  };
  std::vector<Live> live;
  for (int step = 0; step < 20'000; ++step) {
    if (live.empty() || random() % 100 < 52) {
      size_t bytes = random() % 4 == 0 ? 1 + random() % 100'000 : 1 + random() % 6000;
      Live one{heap->allocate(bytes), bytes, std::byte{static_cast<uint8_t>(1 + random() % 255)}};
      ASSERT_NE(one.block, nullptr);
      ASSERT_TRUE(is_zero(one.block.get(), bytes));
      std::memset(one.block.get(), static_cast<int>(one.mark), bytes);
      live.push_back(std::move(one));
    } else {
      std::swap(live[random() % live.size()], live.back());
      const Live& one = live.back();
      ASSERT_TRUE(
          std::all_of(one.block.get(), one.block.get() + one.bytes, [&](std::byte b) { return b == one.mark; }));
      live.pop_back();
    }
  }
  live.clear();
  EXPECT_EQ(heap->area_count(), 1u);
  auto everything = heap->allocate(areas->theirs.begin()->second.bytes());
  EXPECT_EQ(heap->area_count(), 1u);
}

TEST_F(Heap, detached_pages_are_ours_from_the_first_write_on) {
  auto block = heap->allocate(2 * 4096);
  auto place = heap->find(block.get(), 2 * 4096);
  std::byte* their_view = theirs(*place);
  block.get()[0] = std::byte{1};
  heap->detach();
  EXPECT_EQ(block.get()[0], std::byte{1});
  block.get()[1] = std::byte{2};
  their_view[0] = std::byte{99};  // late
  their_view[4096] = std::byte{99};
  EXPECT_EQ(block.get()[0], std::byte{1});
  EXPECT_EQ(block.get()[1], std::byte{2});
  EXPECT_EQ(their_view[1], std::byte{});
  EXPECT_EQ(block.get()[4096], std::byte{99});  // not written to yet
}

// Memory that others map, too: nothing else lies in its area, and the daemon maps it only where it is sealed.
TEST_F(Heap, shareable_blocks_have_an_area_of_their_own) {
  const auto usual = heap->allocate(64);
  auto readable = heap->allocate_shareable(5000, ipc::AreaUse::kRead);
  auto writable = heap->allocate_shareable(1, ipc::AreaUse::kWrite);
  ASSERT_NE(readable, nullptr);
  ASSERT_NE(writable, nullptr);
  EXPECT_EQ(areas->asked, (std::vector<size_t>{areas->asked[0], 8192, 4096}));
  const auto of_readable = heap->find(readable.get(), 8192), of_writable = heap->find(writable.get(), 4096);
  ASSERT_TRUE(of_readable && of_writable);
  EXPECT_TRUE(of_readable->mapped);
  EXPECT_FALSE(of_writable->mapped);
  EXPECT_EQ(areas->uses[of_readable->area], ipc::AreaUse::kRead);
  EXPECT_EQ(areas->uses[of_writable->area], ipc::AreaUse::kWrite);
  EXPECT_EQ(heap->shareable_area(readable.get()), of_readable->area);
  EXPECT_EQ(heap->shareable_area(readable.get() + 64), 0u);
  EXPECT_EQ(heap->shareable_area(usual.get()), 0u);
}

TEST_F(Heap, the_area_of_a_shareable_block_goes_with_it) {
  auto block = heap->allocate_shareable(4096, ipc::AreaUse::kRead);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(areas->uses.size(), 1u);
  block.reset();
  EXPECT_TRUE(areas->uses.empty());
  EXPECT_EQ(heap->area_count(), 0u);
}

}  // namespace
}  // namespace ub::urma
