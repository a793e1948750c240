// SPDX-License-Identifier: Apache-2.0
// Bytes, time, checks, random numbers and counters: the small files of lib/base.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "lib/base/assert.h"
#include "lib/base/bytes.h"
#include "lib/base/counters.h"
#include "lib/base/posted_bitmap.h"
#include "lib/base/prng.h"
#include "lib/base/time.h"

namespace ub {
namespace {

TEST(Bytes, big_endian_has_the_highest_byte_first) {
  std::array<std::byte, 9> b{};
  store_be64(b.data() + 1, 0x0102030405060708);
  for (int i = 1; i < 9; ++i) EXPECT_EQ(load_u8(&b[i]), i);
  EXPECT_EQ(load_be16(&b[1]), 0x0102u);
  EXPECT_EQ(load_be24(&b[1]), 0x010203u);
  EXPECT_EQ(load_be32(&b[1]), 0x01020304u);
  EXPECT_EQ(load_be64(&b[1]), 0x0102030405060708u);
  EXPECT_EQ(load_le16(&b[1]), 0x0201u);
  EXPECT_EQ(load_le32(&b[1]), 0x04030201u);
  EXPECT_EQ(load_le64(&b[1]), 0x0807060504030201u);
}

TEST(Bytes, stores_touch_exactly_their_width) {
  std::array<std::byte, 8> b{};
  store_be24(&b[1], 0xFFABCDEF);
  EXPECT_EQ(load_be64(b.data()), 0x00ABCDEF00000000u);
  b = {};
  store_be16(&b[1], 0xABCD);
  store_le16(&b[4], 0xABCD);
  EXPECT_EQ(load_be64(b.data()), 0x00ABCD00CDAB0000u);
  b = {};
  store_be32(&b[0], 0x01020304);
  store_le32(&b[4], 0x01020304);
  EXPECT_EQ(load_be64(b.data()), 0x0102030404030201u);
  store_le64(b.data(), 0x0102030405060708);
  EXPECT_EQ(load_be64(b.data()), 0x0807060504030201u);
}

TEST(Time, units_and_arithmetic) {
  EXPECT_EQ(microseconds(5).ns, 5000);
  EXPECT_EQ(milliseconds(4), microseconds(4000));
  EXPECT_EQ(seconds(2).ms(), 2000);
  EXPECT_LT(nanoseconds(999), microseconds(1));
  const Instant t{1000};
  EXPECT_EQ((t + microseconds(1)).ns, 2000u);
  EXPECT_EQ((t + microseconds(1)) - t, microseconds(1));
  EXPECT_EQ(t - (t + microseconds(1)), -microseconds(1));
  EXPECT_EQ(microseconds(6) / 2 * 3 - microseconds(1), microseconds(8));
}

TEST(Time, never_is_last_and_stays_so) {
  EXPECT_LT(Instant{UINT64_MAX - 1}, Instant::never());
  EXPECT_TRUE((Instant::never() + seconds(1)).is_never());
  EXPECT_EQ(earlier(Instant{5}, Instant::never()).ns, 5u);
  EXPECT_TRUE(later(Instant{5}, Instant::never()).is_never());
}

TEST(AssertDeathTest, names_the_expression_and_the_place) {
  UB_ASSERT(1 + 1 == 2);
  EXPECT_DEATH(UB_ASSERT(1 + 1 == 3), "base_test.cc:.*assertion failed: 1 \\+ 1 == 3");
}

TEST(Prng, first_numbers_are_those_of_the_reference) {
  // xoshiro256** with the state splitmix64 makes of seed 0.
  Prng rng(0);
  EXPECT_EQ(rng.next_u64(), 0x99EC5F36CB75F2B4u);
  EXPECT_EQ(rng.next_u64(), 0xBF6E1F784956452Au);
}

TEST(Prng, same_seed_same_stream) {
  Prng a(42), b(42), c(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t x = a.next_u64();
    EXPECT_EQ(x, b.next_u64());
    differs |= x != c.next_u64();
  }
  EXPECT_TRUE(differs);
}

TEST(Prng, below_covers_its_range_and_chance_its_probability) {
  Prng rng(7);
  std::array<int, 10> seen{};
  int hits = 0;
  for (int i = 0; i < 100000; ++i) {
    ++seen.at(rng.below(10));
    hits += rng.chance(0.25);
  }
  for (int n : seen) EXPECT_NEAR(n, 10000, 500);
  EXPECT_NEAR(hits, 25000, 700);
  EXPECT_EQ(rng.below(0), 0u);
  EXPECT_FALSE(rng.chance(0));
  EXPECT_TRUE(rng.chance(1));
  for (int i = 0; i < 100; ++i) {
    const uint64_t v = rng.between(5, 7);
    EXPECT_TRUE(v >= 5 && v <= 7);
  }
}

TEST(Prng, fill_writes_any_number_of_bytes) {
  for (size_t n = 0; n < 40; ++n) {
    std::vector<std::byte> v(n), w(n);
    Prng(n).fill(v.data(), n);
    Prng(n).fill(w.data(), n);
    EXPECT_EQ(v, w);
  }
}

TEST(PostedBitmap, takes_what_was_set_once) {
  PostedBitmap<8192> bitmap;
  std::vector<uint32_t> taken;
  auto note = [&](uint32_t n) { taken.push_back(n); };
  for (uint32_t n : {0u, 63u, 64u, 4095u, 4096u, 8191u, 64u}) bitmap.set(n);
  ASSERT_TRUE(bitmap.any());
  bitmap.take(note);
  EXPECT_EQ(taken, (std::vector<uint32_t>{0, 63, 64, 4095, 4096, 8191}));
  EXPECT_FALSE(bitmap.any());
  taken.clear();
  bitmap.take(note);
  EXPECT_TRUE(taken.empty());
}

// Whoever sets all of them all the time keeps nobody out, and each call takes a part.
TEST(PostedBitmap, takes_some_in_turn) {
  PostedBitmap<8192> bitmap;
  std::set<uint32_t> seen;
  uint32_t from = 0;
  for (int call = 0; call < 70; ++call) {
    for (uint32_t n = 0; n < 4200; ++n) bitmap.set(n);
    bitmap.set(8000);
    size_t count = 0;
    bitmap.take_some(&from, 64, [&](uint32_t n) {
      seen.insert(n);
      ++count;
    });
    EXPECT_GE(count, 1u);
    EXPECT_LE(count, 127u);
    EXPECT_TRUE(bitmap.any());
  }
  EXPECT_EQ(seen.size(), 4201u);
  size_t rest = 0;
  while (bitmap.any()) bitmap.take_some(&from, 64, [&](uint32_t) { ++rest; });
  EXPECT_LE(rest, 4201u);
  bitmap.take([&](uint32_t) { ADD_FAILURE() << "left behind"; });
}

TEST(Counters, names_are_unique_and_help_is_there) {
  std::set<std::string> names;
  for (size_t i = 0; i < kCounterCount; ++i) {
    const Counter c = static_cast<Counter>(i);
    EXPECT_TRUE(names.insert(counter_name(c)).second) << counter_name(c);
    EXPECT_GT(std::string(counter_help(c)).size(), 5u);
  }
}

TEST(Counters, add_counts) {
  Counters c;
  c.add(Counter::kRxPackets);
  c.add(Counter::kRxBytes, 64);
  c.add(Counter::kRxBytes, 64);
  EXPECT_EQ(c[Counter::kRxPackets], 1u);
  EXPECT_EQ(c[Counter::kRxBytes], 128u);
  EXPECT_EQ(c[Counter::kTxBytes], 0u);
}

}  // namespace
}  // namespace ub
