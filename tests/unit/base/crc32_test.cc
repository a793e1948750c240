// SPDX-License-Identifier: Apache-2.0
// Every engine against the definition of the sum, bit by bit.
#include "lib/base/crc32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/base/prng.h"

namespace ub {
namespace {

constexpr Crc32Engine kEngines[] = {Crc32Engine::kTable, Crc32Engine::kPclmul, Crc32Engine::kVpclmul};

uint32_t bitwise(uint32_t state, const std::byte* p, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    state ^= static_cast<uint32_t>(p[i]);
    for (int k = 0; k < 8; ++k) state = (state >> 1) ^ ((state & 1) != 0 ? 0xEDB88320 : 0);
  }
  return state;
}

class Crc32 : public testing::TestWithParam<Crc32Engine> {
 protected:
  void SetUp() override {
    if (!crc32_engine_supported(GetParam())) GTEST_SKIP() << "this CPU has no " << crc32_engine_name(GetParam());
  }
};

TEST_P(Crc32, check_value) {
  const auto* digits = reinterpret_cast<const std::byte*>("123456789");
  EXPECT_EQ(crc32_final(crc32_update_with(GetParam(), crc32_init(), digits, 9)), 0xCBF43926u);
  EXPECT_EQ(crc32_final(crc32_update_with(GetParam(), crc32_init(), digits, 0)), 0u);
}

TEST_P(Crc32, every_length_up_to_2k_in_exact_buffers) {
  Prng rng(3);
  for (size_t n = 0; n <= 2048; ++n) {
    std::vector<std::byte> data(n), copy(n);
    rng.fill(data.data(), n);
    const uint32_t state = rng.next_u32();
    const uint32_t want = bitwise(state, data.data(), n);
    ASSERT_EQ(crc32_update_with(GetParam(), state, data.data(), n), want) << n;
    ASSERT_EQ(crc32_copy_update_with(GetParam(), state, copy.data(), data.data(), n), want) << n;
    ASSERT_EQ(copy, data) << n;
  }
}

TEST_P(Crc32, random_lengths_alignments_and_cuts) {
  Prng rng(4);
  std::vector<std::byte> data(20000), copy(20000 + 64);
  for (int round = 0; round < 300; ++round) {
    rng.fill(data.data(), data.size());
    const size_t at = rng.below(64), n = rng.below(data.size() - 64);
    const size_t cut = rng.below(n + 1), to = rng.below(64);
    const uint32_t want = bitwise(crc32_init(), data.data() + at, n);
    uint32_t s = crc32_update_with(GetParam(), crc32_init(), data.data() + at, cut);
    s = crc32_update_with(GetParam(), s, data.data() + at + cut, n - cut);
    ASSERT_EQ(s, want) << at << ' ' << n << ' ' << cut;
    std::fill(copy.begin(), copy.end(), std::byte{0xAA});
    s = crc32_copy_update_with(GetParam(), crc32_init(), copy.data() + to, data.data() + at, cut);
    s = crc32_copy_update_with(GetParam(), s, copy.data() + to + cut, data.data() + at + cut, n - cut);
    ASSERT_EQ(s, want);
    ASSERT_EQ(std::memcmp(copy.data() + to, data.data() + at, n), 0);
    ASSERT_TRUE(std::all_of(copy.begin(), copy.begin() + static_cast<ptrdiff_t>(to),
                            [](std::byte b) { return b == std::byte{0xAA}; }));
    ASSERT_TRUE(std::all_of(copy.begin() + static_cast<ptrdiff_t>(to + n), copy.end(),
                            [](std::byte b) { return b == std::byte{0xAA}; }));
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, Crc32, testing::ValuesIn(kEngines),
                         [](const auto& engine) { return crc32_engine_name(engine.param); });

TEST(Crc32Rewind, takes_zero_bytes_back) {
  Prng rng(6);
  const std::vector<std::byte> zeros(65535);
  for (size_t n = 0; n < 300; ++n) {
    const uint32_t state = rng.next_u32();
    ASSERT_EQ(crc32_rewind(bitwise(state, zeros.data(), n), n), state) << n;
  }
  for (size_t n : {size_t{4096}, size_t{9000}, size_t{65535}})
    EXPECT_EQ(crc32_rewind(crc32_update(crc32_init(), zeros.data(), n), n), crc32_init()) << n;
}

TEST(Crc32Chosen, is_the_fastest_supported_and_agrees) {
  const Crc32Engine chosen = crc32_engine_chosen();
  EXPECT_TRUE(crc32_engine_supported(chosen));
  std::vector<std::byte> data(5000), copy(5000);
  Prng(5).fill(data.data(), data.size());
  const uint32_t want = bitwise(crc32_init(), data.data(), data.size());
  EXPECT_EQ(crc32_update(crc32_init(), data.data(), data.size()), want);
  EXPECT_EQ(crc32_copy_update(crc32_init(), copy.data(), data.data(), data.size()), want);
  EXPECT_EQ(copy, data);
}

}  // namespace
}  // namespace ub
