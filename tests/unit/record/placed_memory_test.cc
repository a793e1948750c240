// SPDX-License-Identifier: Apache-2.0
#include "lib/ipc/placed_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace ub::ipc {
namespace {

TEST(PlacedMemory, TheSamePlaceCanBeHadAgain) {
  PlacedMemory first;
  ASSERT_TRUE(first.take(1 << 20));
  first.data()[5] = std::byte{9};
  const auto address = reinterpret_cast<uint64_t>(first.data());
  PlacedMemory second;
  EXPECT_FALSE(second.take_at(address, 1 << 20)) << "it is taken";
  first.reset();
  ASSERT_TRUE(second.take_at(address, 1 << 20));
  EXPECT_EQ(second.data()[5], std::byte{0});
}

TEST(PlacedMemory, TwoHaveTwoPlaces) {
  PlacedMemory a, b;
  ASSERT_TRUE(a.take(1 << 16) && b.take(1 << 16));
  EXPECT_NE(a.data(), b.data());
}

TEST(PlacedMemory, OnlyTouchedPagesAreTold) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  PlacedMemory memory;
  ASSERT_TRUE(memory.take(1000 * page));
  for (const size_t i : {0, 7, 8, 9, 700}) memory.data()[i * page + 3] = std::byte{1};
  std::vector<std::pair<size_t, size_t>> runs;
  each_touched_run(
      {memory.data(), 999 * page + 100},
      [](void* context, size_t offset, size_t bytes) {
        static_cast<decltype(runs)*>(context)->emplace_back(offset, bytes);
      },
      &runs);
  std::vector<bool> told(1000);
  size_t bytes = 0;
  for (const auto& [offset, length] : runs) {
    ASSERT_LE(offset + length, 999 * page + 100);
    bytes += length;
    for (size_t i = offset / page; i * page < offset + length; ++i) told[i] = true;
  }
  for (const size_t i : {0, 7, 8, 9, 700}) EXPECT_TRUE(told[i]) << i;
  EXPECT_LT(bytes, 600 * page) << "pages that nobody has touched are told, too";
}

}  // namespace
}  // namespace ub::ipc
