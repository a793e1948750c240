// SPDX-License-Identifier: Apache-2.0
#include "lib/record/varint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/base/prng.h"

namespace ub::record {
namespace {

TEST(Varint, EveryNumberComesBack) {
  std::array<std::byte, kMostVarint> bytes;
  for (uint32_t shift = 0; shift < 64; ++shift) {
    for (const uint64_t value : {(uint64_t{1} << shift) - 1, uint64_t{1} << shift, ~uint64_t{0} >> shift}) {
      const std::byte* end = put_varint(bytes.data(), value);
      Input in(bytes.data(), end);
      EXPECT_EQ(in.varint(), value);
      EXPECT_TRUE(in.good() && in.empty());
    }
  }
}

TEST(Varint, ANumberThatIsCutOffIsNone) {
  std::array<std::byte, kMostVarint> bytes;
  const std::byte* end = put_varint(bytes.data(), UINT64_MAX);
  Input in(bytes.data(), end - 1);
  EXPECT_EQ(in.varint(), 0u);
  EXPECT_FALSE(in.good());
  EXPECT_EQ(in.byte(), 0u);
  EXPECT_EQ(in.take(0), nullptr);
}

TEST(Varint, ANumberWithoutEndIsNone) {
  std::array<std::byte, 16> bytes;
  bytes.fill(std::byte{0xff});
  Input in(bytes.data(), bytes.data() + bytes.size());
  EXPECT_EQ(in.varint(), 0u);
  EXPECT_FALSE(in.good());
}

TEST(Difference, WhatWasWrittenComesBackAndIsTheNextReference) {
  Prng rng(7);
  std::array<std::byte, 512> writer{}, reader{};
  for (int round = 0; round < 2000; ++round) {
    const size_t bytes = 8 * rng.between(1, 64);
    std::vector<std::byte> value(writer.begin(), writer.begin() + static_cast<std::ptrdiff_t>(bytes));
    for (uint64_t changes = rng.below(20); changes != 0; --changes)
      value[rng.below(bytes)] = static_cast<std::byte>(rng.below(256));
    std::vector<std::byte> text(most_difference(bytes) + 1, std::byte{0xee});
    const std::byte* end = put_difference(text.data(), writer.data(), value.data(), bytes);
    ASSERT_LE(end, text.data() + most_difference(bytes));
    ASSERT_EQ(text.back(), std::byte{0xee});
    Input in(text.data(), end);
    in.difference(reader.data(), bytes);
    ASSERT_TRUE(in.good() && in.empty());
    ASSERT_TRUE(std::equal(value.begin(), value.end(), reader.begin()));
    ASSERT_EQ(writer, reader);
  }
}

TEST(Difference, WhatDoesNotChangeTakesAByteForEach64) {
  std::array<std::byte, 128> like{}, value{};
  std::array<std::byte, 256> text;
  EXPECT_EQ(put_difference(text.data(), like.data(), value.data(), 128) - text.data(), 2);
}

TEST(Difference, RubbishStaysWithinItsBytes) {
  Prng rng(11);
  for (int round = 0; round < 2000; ++round) {
    std::array<std::byte, 96> text;
    for (std::byte& b : text) b = static_cast<std::byte>(rng.below(256));
    std::array<std::byte, 80> like{};
    Input in(text.data(), text.data() + rng.below(text.size()));
    in.difference(like.data(), 72);
    EXPECT_TRUE(std::all_of(like.begin() + 72, like.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
}

}  // namespace
}  // namespace ub::record
