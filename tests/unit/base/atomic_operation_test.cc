// SPDX-License-Identifier: Apache-2.0
//
// What atomics make of the value in memory, at each width (UB Base Specification Rev 2.0, 7.4).
#include "lib/base/atomic_operation.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace ub {
namespace {

constexpr uint32_t kWidths[] = {1, 2, 4, 8, 16};

uint128 mask_of(uint32_t bytes) { return bytes == 16 ? ~uint128{0} : (uint128{1} << 8 * bytes) - 1; }
// The integer of so many bytes whose upper byte is `top` and whose lowest byte is `low`.
uint128 number(uint32_t bytes, uint8_t top, uint8_t low) {
  return bytes == 1 ? uint128{top} : uint128{top} << 8 * (bytes - 1) | low;
}

// Runs it on memory that holds `value`, between bytes that must not change. Returns what is there then.
uint128 run(AtomicOp op, uint32_t bytes, uint128 value, uint128 operand, uint128 compare = 0) {
  alignas(16) std::array<std::byte, 48> memory;
  memory.fill(std::byte{0xEE});
  std::memcpy(&memory[16], &value, bytes);
  const uint128 old = run_atomic({&memory[16], op, bytes, operand, compare});
  EXPECT_TRUE(old == (value & mask_of(bytes))) << static_cast<int>(op) << " of " << bytes;
  uint128 after = 0;
  std::memcpy(&after, &memory[16], bytes);
  std::memset(&memory[16], 0xEE, bytes);
  for (std::byte b : memory) EXPECT_EQ(b, std::byte{0xEE});
  return after;
}

void expect(AtomicOp op, uint128 (*result)(uint128 value, uint128 operand)) {
  for (uint32_t bytes : kWidths) {
    if (!is_atomic_width(bytes)) continue;
    for (uint8_t top : {0x00, 0x01, 0x7f, 0x80, 0xa5, 0xff}) {
      for (uint8_t other : {0x00, 0x5c, 0x80, 0xff}) {
        const uint128 value = number(bytes, top, 0x3c), operand = number(bytes, other, 0xf1);
        EXPECT_TRUE(run(op, bytes, value, operand) == (result(value, operand) & mask_of(bytes)))
            << static_cast<int>(op) << " of " << bytes << ": " << int{top} << " and " << int{other};
      }
    }
  }
}

TEST(AtomicOperation, computes_within_its_width) {
  expect(AtomicOp::kSwap, [](uint128, uint128 b) { return b; });
  expect(AtomicOp::kFetchAdd, [](uint128 a, uint128 b) { return a + b; });
  expect(AtomicOp::kFetchSub, [](uint128 a, uint128 b) { return a - b; });
  expect(AtomicOp::kFetchAnd, [](uint128 a, uint128 b) { return a & b; });
  expect(AtomicOp::kFetchOr, [](uint128 a, uint128 b) { return a | b; });
  expect(AtomicOp::kFetchXor, [](uint128 a, uint128 b) { return a ^ b; });
  expect(AtomicOp::kFetchClear, [](uint128 a, uint128 b) { return a & ~b; });
  expect(AtomicOp::kFetchMax, [](uint128 a, uint128 b) { return a > b ? a : b; });
  expect(AtomicOp::kFetchMin, [](uint128 a, uint128 b) { return a < b ? a : b; });
}

// Negative integers are those whose upper bit is set.
TEST(AtomicOperation, compares_signed_integers_of_its_width) {
  for (uint32_t bytes : kWidths) {
    if (!is_atomic_width(bytes)) continue;
    const uint128 rising[] = {number(bytes, 0x80, 0), number(bytes, 0x80, 1), number(bytes, 0xff, 0xfe),
                              number(bytes, 0, 0),    number(bytes, 0, 1),    number(bytes, 0x7f, 0xff)};
    for (size_t i = 0; i < std::size(rising); ++i) {
      for (size_t j = 0; j < std::size(rising); ++j) {
        const uint128 a = rising[i], b = rising[j];
        EXPECT_TRUE(run(AtomicOp::kFetchSignedMax, bytes, a, b) == (i > j ? a : b)) << i << ' ' << j << " of " << bytes;
        EXPECT_TRUE(run(AtomicOp::kFetchSignedMin, bytes, a, b) == (i < j ? a : b)) << i << ' ' << j << " of " << bytes;
      }
    }
  }
}

TEST(AtomicOperation, swaps_what_compares_equal) {
  for (uint32_t bytes : kWidths) {
    if (!is_atomic_width(bytes)) continue;
    const uint128 value = number(bytes, 0x81, 3), other = number(bytes, 0x18, 4);
    EXPECT_TRUE(run(AtomicOp::kCompareSwap, bytes, value, other, value) == other) << bytes;
    EXPECT_TRUE(run(AtomicOp::kCompareSwap, bytes, value, other, other) == value) << bytes;
  }
}

TEST(AtomicOperation, numbers_of_none_are_known) {
  EXPECT_FALSE(is_atomic_op(AtomicOp{}));
  EXPECT_TRUE(is_atomic_op(AtomicOp::kCompareSwap));
  EXPECT_TRUE(is_atomic_op(AtomicOp::kFetchMin));
  EXPECT_FALSE(is_atomic_op(static_cast<AtomicOp>(static_cast<uint8_t>(AtomicOp::kFetchMin) + 1)));
  EXPECT_FALSE(is_atomic_op(static_cast<AtomicOp>(255)));
}

}  // namespace
}  // namespace ub
