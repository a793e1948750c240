// SPDX-License-Identifier: Apache-2.0
//
// Payloads that betray a wrong, missing or misplaced byte. The last byte is the seed (the number of the
// message), every other one depends on the seed and on its distance from the end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ub::tools {

inline uint8_t pattern_byte(uint8_t seed, size_t from_end) {
  return static_cast<uint8_t>(seed + from_end * 167 + (from_end >> 8) * 13);
}

inline void fill_pattern(uint8_t* to, size_t bytes, uint8_t seed) {
  for (size_t i = 0; i < bytes; ++i) to[i] = pattern_byte(seed, bytes - 1 - i);
}

// The offset of the first wrong byte; `bytes` if all are right.
inline size_t check_pattern(const volatile uint8_t* from, size_t bytes, uint8_t seed) {
  for (size_t i = 0; i < bytes; ++i) {
    if (from[i] != pattern_byte(seed, bytes - 1 - i)) return i;
  }
  return bytes;
}

}  // namespace ub::tools
