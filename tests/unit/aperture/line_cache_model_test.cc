// SPDX-License-Identifier: Apache-2.0
//
// Random loads, stores, fences and invalidations of a cached handle against a model, while another program stores to
// other bytes of the same lines. The bytes of the handle must always be what it stored last. Those of the other program
// count up, so that a load tells how old it is: not older than the last invalidation, nor than an earlier load.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>

#include "tests/unit/aperture/cached_handle.h"

namespace ub::aperture {
namespace {

using test::CachedHandle;
using test::FarMemory;

constexpr uint64_t kBase = 0x7000'0000 + 24;  // no line begins there
constexpr uint64_t kBytes = 80'000 + 5;
constexpr uint64_t kHot = 12'000;  // most accesses; they fit into the cache

class Model {
 public:
  Model(softub_cache_t policy, uint32_t seed) : handle_(far_, kBase, policy), policy_(policy), random_(seed) {
    // Some words have one owner, others have one for each byte.
    for (uint64_t at = 0; at < kBytes; ++at) {
      if (at % 8 == 0) kind_of_word_ = below(3);
      ours_[at] = kind_of_word_ == 2 ? below(2) == 0 : kind_of_word_ == 0;
    }
  }

  void step() {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return load(length());
      case 4:
      case 5:
      case 6:
      case 7:
        return store(length());
      case 8:
      case 9:
      case 10:
        return others_store();
      case 11:
        return load_many();
      case 12:
        return below(4) == 0 ? fence() : sync();
      case 13:
        return atomic();
      default:
        return load(8);
    }
  }

  void finish() {
    fence();
    EXPECT_EQ(far_.wrong_calls, 0u);
    const softub_cache_counts_t counts = handle_.cache.counts();
    EXPECT_GT(counts.hits, 0u);
    EXPECT_GT(counts.misses, 0u);
    EXPECT_GT(counts.evictions, 0u);
    EXPECT_EQ(counts.write_backs != 0, policy_ == SOFTUB_CACHE_WRITE_BACK);
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  uint32_t length() { return static_cast<uint32_t>(1 + below(below(16) == 0 ? 8192 : 64)); }
  uint64_t place(uint64_t bytes) { return below((below(8) == 0 || bytes > kHot ? kBytes : kHot) - bytes + 1); }

  void look_at(uint64_t at, const uint8_t* bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t b = at + i;
      if (ours_[b]) {
        ASSERT_EQ(bytes[i], stored_[b]) << "byte " << b;
      } else {
        const auto newer = static_cast<uint8_t>(bytes[i] - seen_[b]);
        ASSERT_LE(newer, static_cast<uint8_t>(far_.bytes[b] - seen_[b])) << "byte " << b;
        seen_[b] = bytes[i];
      }
    }
  }

  void load(uint32_t count) {
    const uint64_t at = place(count);
    std::array<uint8_t, 8192> bytes;
    ASSERT_EQ(handle_.load(at, bytes.data(), count), URMA_CR_SUCCESS);
    look_at(at, bytes.data(), count);
  }

  void load_many() {
    std::array<std::array<uint8_t, kLineBytes>, 100> lines;
    std::vector<LoadBlock> blocks;
    for (uint64_t i = 0; i <= below(lines.size()); ++i) blocks.push_back({place(64), lines[i].data(), kLineBytes});
    ASSERT_EQ(handle_.cache.load(blocks), URMA_CR_SUCCESS);
    for (size_t i = 0; i < blocks.size(); ++i) look_at(blocks[i].at, lines[i].data(), kLineBytes);
  }

  // Only runs of our own bytes, or all of them by enables.
  void store(uint32_t count) {
    const uint64_t at = place(count);
    std::array<uint8_t, 8192> bytes;
    std::array<uint64_t, 128> enables{};
    for (uint32_t i = 0; i < count; ++i) {
      bytes[i] = static_cast<uint8_t>(random_());
      if (ours_[at + i]) enables[i / 64] |= uint64_t{1} << i % 64;
    }
    if (below(2) == 0) {
      ASSERT_EQ(handle_.cache.store({at, bytes.data(), count, enables.data()}), URMA_CR_SUCCESS);
      for (uint32_t i = 0; i < count; ++i) {
        if (ours_[at + i]) stored_[at + i] = bytes[i];
      }
      return;
    }
    for (uint32_t start = 0; start < count;) {
      uint32_t end = start;
      while (end < count && ours_[at + end]) ++end;
      if (end != start) {
        ASSERT_EQ(handle_.store(at + start, &bytes[start], end - start), URMA_CR_SUCCESS);
        std::copy(&bytes[start], &bytes[end], &stored_[at + start]);
      }
      start = end + 1;
    }
  }

  // Counts are modulo 256, so nobody stores to a byte so often that an old value looks new.
  void others_store() {
    const uint64_t count = 1 + below(64), at = place(count);
    for (uint64_t b = at; b < at + count; ++b) {
      if (!ours_[b] && static_cast<uint8_t>(far_.bytes[b] - seen_[b]) < 255) ++far_.bytes[b];
    }
  }

  void fence() {
    ASSERT_EQ(handle_.cache.fence(), URMA_CR_SUCCESS);
    for (uint64_t b = 0; b < kBytes; ++b) {
      ASSERT_TRUE(!ours_[b] || far_.bytes[b] == stored_[b]) << "byte " << b;
    }
  }

  void sync() {
    const bool all = below(16) == 0;
    const uint64_t count = all ? kBytes : 1 + below(below(16) == 0 ? kBytes : 300), at = all ? 0 : place(count);
    const bool drops = below(2) == 0;
    ASSERT_EQ(handle_.cache.sync(at, count, drops ? SOFTUB_INVALIDATE : SOFTUB_FLUSH), URMA_CR_SUCCESS);
    if (!drops) return;
    for (uint64_t b = at; b < at + count; ++b) seen_[b] = far_.bytes[b];
  }

  void atomic() {
    const uint64_t at = place(8) / 8 * 8;
    if (!std::all_of(&ours_[at], &ours_[at] + 8, [](bool ours) { return ours; })) return;
    uint64_t old = 0, expected;
    std::memcpy(&expected, &stored_[at], 8);
    ASSERT_EQ(handle_.cache.atomic({AtomicOp::kFetchAdd, 8, at, 0x0101010101010101, 0}, &old), URMA_CR_SUCCESS);
    ASSERT_EQ(old, expected);
    expected += 0x0101010101010101;
    std::memcpy(&stored_[at], &expected, 8);
  }

  FarMemory far_{kBytes};
  CachedHandle handle_;
  softub_cache_t policy_;
  std::mt19937 random_;
  uint64_t kind_of_word_ = 0;
  std::array<bool, kBytes + 8> ours_{};
  std::array<uint8_t, kBytes + 8> stored_{};  // by the handle
  std::array<uint8_t, kBytes + 8> seen_{};    // what it has seen, or could have, of the other program's bytes
};

class LineCacheModel : public testing::TestWithParam<softub_cache_t> {};

TEST_P(LineCacheModel, loads_see_all_own_stores_and_none_of_others_too_late) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    auto model = std::make_unique<Model>(GetParam(), seed);
    for (int i = 0; i < 10'000; ++i) {
      model->step();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << ", step " << i;
    }
    model->finish();
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, LineCacheModel,
                         testing::Values(SOFTUB_CACHE_WRITE_BACK, SOFTUB_CACHE_WRITE_THROUGH));

}  // namespace
}  // namespace ub::aperture
