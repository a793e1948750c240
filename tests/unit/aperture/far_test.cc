// SPDX-License-Identifier: Apache-2.0
//
// softub_far.hpp: arenas and allocators on plain memory; pointers, handles and windows on memory of this process, which
// its NIC reaches as it reaches that of others.
#include <gtest/gtest.h>

#include <urma_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <softub_far.hpp>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

namespace {

using softub::far_allocator;
using softub::far_arena;
using softub::far_error;
using softub::far_handle;
using softub::far_ptr;
using softub::far_window;

constexpr size_t kPage = 4096;
constexpr size_t kBytes = 64 * kPage;

template <class T>
using Vector = std::vector<T, far_allocator<T>>;

// ---- arenas ----------------------------------------------------------------------------------------------------

class FarArena : public testing::Test {
 protected:
  static constexpr size_t kSize = 1 << 16;
  alignas(64) std::array<std::byte, kSize> memory_;
  far_arena arena_{memory_.data(), memory_.size()};
};

TEST_F(FarArena, BlocksLieInTheMemoryAndDoNotOverlap) {
  std::map<std::byte*, size_t> blocks;
  for (size_t bytes : {1, 16, 17, 48, 63, 64, 65, 100, 200, 1000, 3, 4096, 24}) {
    blocks[static_cast<std::byte*>(arena_.allocate(bytes))] = bytes;
  }
  std::byte* free = memory_.data();
  for (const auto& [start, bytes] : blocks) {
    EXPECT_GE(start, free);
    free = start + bytes;
  }
  EXPECT_LE(free, memory_.data() + kSize);
}

TEST_F(FarArena, LargeBlocksBeginWithALineAndAllAreAlignedAsAsked) {
  for (size_t bytes : {1, 48, 100, 17, 64, 33, 5000, 16, 65}) {
    for (size_t alignment : {1, 8, 16, 32, 64}) {
      const auto at = reinterpret_cast<uintptr_t>(arena_.allocate(bytes, alignment));
      EXPECT_EQ(at % std::max<size_t>(alignment, 16), 0u) << bytes << " bytes";
      if (bytes > 64) {
        EXPECT_EQ(at % 64, 0u) << bytes << " bytes";
      }
    }
  }
}

TEST_F(FarArena, ABlockThatCameBackServesTheNextRequestOfItsSize) {
  void* block = arena_.allocate(100);
  const size_t left = arena_.untouched();
  arena_.deallocate(block, 100);
  EXPECT_EQ(arena_.in_use(), 0u);
  EXPECT_NE(arena_.allocate(300), block);
  EXPECT_EQ(arena_.allocate(128), block);
  EXPECT_EQ(arena_.untouched(), left - 320);
}

TEST_F(FarArena, NotMoreThanAQuarterIsLostFromFourLinesOn) {
  for (size_t bytes = 256; bytes < 10'000; bytes += 7) {
    far_arena fresh(memory_.data(), memory_.size());
    fresh.allocate(bytes);
    EXPECT_LE(fresh.in_use(), bytes + bytes / 4) << bytes;
  }
}

TEST_F(FarArena, ThrowsWhenItIsUsedUpAndForWhatItCannotAlign) {
  EXPECT_THROW(arena_.allocate(kSize + 1), std::bad_alloc);
  EXPECT_THROW(arena_.allocate(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(arena_.allocate(1, 128), std::bad_alloc);
  EXPECT_NE(arena_.allocate(kSize), nullptr);
  EXPECT_EQ(arena_.untouched(), 0u);
  EXPECT_THROW(arena_.allocate(1), std::bad_alloc);
}

TEST_F(FarArena, NotesAboutBlocksAreNotKeptInThem) {
  memory_.fill(std::byte{7});
  arena_.deallocate(arena_.allocate(500), 500);
  for (std::byte byte : memory_) ASSERT_EQ(byte, std::byte{7});
}

TEST_F(FarArena, AllocatorsOfOneArenaAreEqualAndGoAlongWithAMove) {
  std::array<std::byte, 1024> other_memory;
  far_arena other(other_memory.data(), other_memory.size());
  EXPECT_EQ(far_allocator<int>(arena_), far_allocator<char>(arena_));
  EXPECT_NE(far_allocator<int>(arena_), far_allocator<int>(other));
  Vector<int> a({1, 2, 3}, arena_), b(other);
  b = std::move(a);
  EXPECT_EQ(&b.get_allocator().arena(), &arena_);
  Vector<int> c(other);
  c = b;
  EXPECT_EQ(&c.get_allocator().arena(), &other);
  EXPECT_EQ(b, c);
}

TEST_F(FarArena, TooManyElementsAreRefused) {
  far_allocator<uint64_t> allocator(arena_);
  EXPECT_THROW(allocator.allocate(SIZE_MAX / 4), std::bad_array_new_length);
}

// ---- remote memory ---------------------------------------------------------------------------------------------

// The device and a segment of this process, imported.
class Far : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(urma_init(nullptr), URMA_SUCCESS);
    int count = 0;
    urma_device_t** list = urma_get_device_list(&count);
    ASSERT_GT(count, 0);
    context_ = urma_create_context(list[0], 0);
    urma_free_device_list(list);
    ASSERT_NE(context_, nullptr);
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(urma_delete_context(context_), URMA_SUCCESS);
    EXPECT_EQ(urma_uninit(), URMA_SUCCESS);
  }

  void SetUp() override {
    urma_seg_cfg_t cfg = {};
    cfg.va = reinterpret_cast<uint64_t>(memory_.data());
    cfg.len = kBytes;
    cfg.token_value.token = 77;
    cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
    cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
    owned_ = urma_register_seg(context_, &cfg);
    ASSERT_NE(owned_, nullptr);
    segment_ = import(77);
    ASSERT_NE(segment_, nullptr);
  }
  void TearDown() override {
    urma_unimport_seg(segment_);
    if (owned_ != nullptr) urma_unregister_seg(owned_);
  }

  urma_target_seg_t* import(uint32_t value) {
    urma_seg_t seg = owned_->seg;
    urma_token_t token = {value};
    urma_import_seg_flag_t flag = {};
    flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
    return urma_import_seg(context_, &seg, &token, 0, flag);
  }
  template <class T>
  T word(size_t at) const {
    T value;
    std::memcpy(&value, memory_.data() + at, sizeof value);
    return value;
  }

  static inline urma_context_t* context_ = nullptr;
  alignas(kPage) static inline std::array<std::byte, kBytes> memory_ = {};
  urma_target_seg_t *owned_ = nullptr, *segment_ = nullptr;
};

struct Point {
  uint32_t x;
  uint64_t y;
  bool operator==(const Point&) const = default;
};

TEST_F(Far, APointerLoadsAndStores) {
  const far_handle handle(segment_);
  const far_ptr<Point> p(handle, 128);
  p.store({3, 4});
  handle.fence();
  EXPECT_EQ(word<uint32_t>(128), 3u);
  EXPECT_EQ(word<uint64_t>(128 + offsetof(Point, y)), 4u);
  EXPECT_EQ(p.load(), (Point{3, 4}));
  p.member(&Point::y).store(9);
  EXPECT_EQ(p.load(), (Point{3, 9}));
  EXPECT_EQ(p.member(&Point::y).at(), 128 + offsetof(Point, y));
}

TEST_F(Far, APointerBehavesLikeOneOfTheLanguage) {
  const far_handle handle(segment_);
  far_ptr<uint16_t> p(handle, 64);
  for (int i = 0; i < 100; ++i) p[i] = static_cast<uint16_t>(i * i);
  *p = p[5];
  EXPECT_EQ(*p, 25);
  p[1] = *p;
  EXPECT_EQ(p[1], 25);
  EXPECT_EQ(*(2 + p), 4);
  EXPECT_EQ((p++).at(), 64u);
  EXPECT_EQ((++p).at(), 68u);
  EXPECT_EQ((p -= 2).at(), 64u);
  EXPECT_EQ((p + 7) - p, 7);
  EXPECT_EQ(p - (p + 7), -7);
  EXPECT_LT(p, p + 1);
  EXPECT_EQ(&p[3], p + 3);
  EXPECT_TRUE(p);
  EXPECT_FALSE(far_ptr<int>(nullptr));
}

TEST_F(Far, AValueOfManyLinesComesBackWhole) {
  const far_handle handle(segment_);
  std::array<uint32_t, 2048> values;
  std::iota(values.begin(), values.end(), 5u);
  const far_ptr<std::array<uint32_t, 2048>> p(handle, 40);
  p.store(values);
  EXPECT_EQ(p.load(), values);
}

template <class T>
void try_atomics(const far_handle& handle) {
  const far_ptr<T> p(handle, 256);
  p.store(10);
  EXPECT_EQ(p.fetch_add(5), T{10});
  EXPECT_EQ(p.fetch_sub(7), T{15});
  EXPECT_EQ(p.fetch_or(3), T{8});
  EXPECT_EQ(p.fetch_and(6), T{11});
  EXPECT_EQ(p.fetch_xor(1), T{2});
  EXPECT_EQ(p.exchange(static_cast<T>(-1)), T{3});
  T expected = 4;
  EXPECT_FALSE(p.compare_exchange(expected, 1));
  EXPECT_EQ(expected, static_cast<T>(-1));
  EXPECT_TRUE(p.compare_exchange(expected, 6));
  EXPECT_EQ(p.load(), T{6});
}

TEST_F(Far, AtomicsOfBothWidthsAndSigns) {
  const far_handle handle(segment_);
  try_atomics<uint64_t>(handle);
  try_atomics<int64_t>(handle);
  try_atomics<uint32_t>(handle);
  try_atomics<int32_t>(handle);
}

TEST_F(Far, BothPathsCarryPointers) {
  for (softub_path_t path : {SOFTUB_PATH_LANE, SOFTUB_PATH_QUEUE}) {
    const far_handle handle(segment_, path);
    EXPECT_EQ(handle.cost().path, path);
    const far_ptr<uint64_t> p(handle, 512);
    p.store(path);
    EXPECT_EQ(far_ptr<uint64_t>(handle.duplicate(), 512).at(), 512u);
    EXPECT_EQ(p.fetch_add(1), uint64_t{path});
    EXPECT_EQ(p.load(), uint64_t{path} + 1);
  }
}

TEST_F(Far, AccessesThatAreRefusedThrowWithTheirStatus) {
  const far_handle handle(segment_);
  try {
    far_ptr<uint64_t>(handle, kBytes).load();
    FAIL() << "a load beyond the segment";
  } catch (const far_error& e) {
    EXPECT_EQ(e.status(), URMA_CR_REM_ACCESS_ABORT_ERR);
    EXPECT_STREQ(e.what(), "a load failed: beyond the remote memory, no permission, or no longer registered");
  }
  EXPECT_THROW(far_ptr<uint64_t>(handle, 12).fetch_add(1), far_error);
  EXPECT_NO_THROW(far_ptr<uint64_t>(handle, 0).load());
}

TEST_F(Far, AStoreThatIsRefusedIsToldByTheFence) {
  urma_target_seg_t* wrong = import(78);
  ASSERT_NE(wrong, nullptr);
  {
    const far_handle handle(wrong);
    EXPECT_THROW(
        {
          far_ptr<int>(handle).store(1);
          handle.fence();
        },
        far_error);
  }
  urma_unimport_seg(wrong);
}

TEST_F(Far, WhatCannotBeOpenedOrMappedIsASystemError) {
  EXPECT_THROW(far_handle{owned_}, std::system_error);  // not imported
  softub_map_options_t options = {};
  options.offset = 1;
  EXPECT_THROW(far_window(segment_, options), std::system_error);
}

TEST_F(Far, AHandleMoves) {
  far_handle a(segment_);
  far_handle b(std::move(a));
  EXPECT_EQ(a.get(), nullptr);
  a = std::move(b);
  far_ptr<int>(a, 4).store(8);
  EXPECT_EQ(far_ptr<int>(a, 4).load(), 8);
}

// Maps, or says why that is not possible here.
#define WINDOW_OR_SKIP(window, options)                                        \
  std::unique_ptr<far_window> window;                                          \
  try {                                                                        \
    window = std::make_unique<far_window>(segment_, options);                  \
  } catch (const std::system_error& e) {                                       \
    if (e.code().value() == EPERM) GTEST_SKIP() << "no windows: " << e.what(); \
    throw;                                                                     \
  }

TEST_F(Far, AWindowKnowsWhereItsAddressesLie) {
  softub_map_options_t options = {};
  options.offset = 2 * kPage;
  options.bytes = 3 * kPage;
  WINDOW_OR_SKIP(window, options);
  EXPECT_EQ(window->size(), 3 * kPage);
  EXPECT_EQ(window->at(window->data() + 10), 2 * kPage + 10);
  auto* number = reinterpret_cast<uint64_t*>(window->data() + 64);
  *number = 1234;
  window->sync(SOFTUB_FLUSH);
  EXPECT_EQ(far_ptr<uint64_t>(far_handle(segment_), window->at(number)).load(), 1234u);
  EXPECT_EQ(window->counts().missing_faults, 1u);
  EXPECT_THROW(window->sync(window->data(), kBytes, SOFTUB_FLUSH), far_error);
  window->close();
}

TEST_F(Far, ContainersLiveInAWindowThatIsSmallerThanTheyAre) {
  constexpr uint32_t kItems = 200;
  softub_map_options_t options = {};
  options.cache_bytes = 8 * kPage;
  WINDOW_OR_SKIP(window, options);
  {
    far_arena arena(*window);
    Vector<uint32_t> numbers(arena);
    std::list<uint32_t, far_allocator<uint32_t>> list(arena);
    std::map<uint32_t, uint64_t, std::less<>, far_allocator<std::pair<const uint32_t, uint64_t>>> map(arena);
    using Text = std::basic_string<char, std::char_traits<char>, far_allocator<char>>;
    std::unordered_map<uint32_t, Text, std::hash<uint32_t>, std::equal_to<>,
                       far_allocator<std::pair<const uint32_t, Text>>>
        texts(arena);
    for (uint32_t i = 0; i < kItems; ++i) {
      numbers.push_back(i);
      list.push_front(i);
      map[i * 7 % kItems] = i;
      texts.emplace(i, Text(std::to_string(i) + " is too long to lie within the string itself", arena));
    }
    for (uint32_t i = 0; i < kItems; ++i) {
      EXPECT_EQ(numbers[i], i);
      EXPECT_EQ(map.at(i * 7 % kItems), i);
      EXPECT_EQ(texts.at(i), (std::to_string(i) + " is too long to lie within the string itself").c_str());
    }
    EXPECT_EQ(std::accumulate(list.begin(), list.end(), 0u), (kItems - 1) * kItems / 2);
    const auto* bytes = reinterpret_cast<const std::byte*>(texts.at(3).data());
    EXPECT_LT(window->at(bytes), kBytes);
    EXPECT_GT(arena.in_use(), options.cache_bytes);
    EXPECT_GT(window->counts().evicted_pages, 0u);
  }
  window->close();
}

}  // namespace
