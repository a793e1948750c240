// SPDX-License-Identifier: Apache-2.0
// uint128.h - a number of 16 bytes: the widest operand of an atomic. In memory it is little-endian, so the first 4 or 8
// bytes are those of a narrower operand.
#pragma once

#include <cstdint>

namespace ub {

__extension__ using uint128 = unsigned __int128;

constexpr uint128 make_uint128(uint64_t low, uint64_t high) { return uint128{high} << 64 | low; }
constexpr uint64_t low_half(uint128 n) { return static_cast<uint64_t>(n); }
constexpr uint64_t high_half(uint128 n) { return static_cast<uint64_t>(n >> 64); }

}  // namespace ub
