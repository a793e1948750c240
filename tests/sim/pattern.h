// SPDX-License-Identifier: Apache-2.0
//
// What every byte of the simulated world should be: a writer's number and a position give a byte, so that the
// oracle recognises who wrote a byte without keeping copies. Writers are work requests (small numbers) and
// memory regions in their untouched or released state (numbers with the top bits set).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ub::sim {

using WriterId = uint64_t;

constexpr WriterId kUntouched = uint64_t{1} << 62;  // | region number: initial contents, guard zones
constexpr WriterId kReleased = uint64_t{1} << 63;   // | region number: local memory that no request owns

constexpr uint64_t kPatternStep = 0xd1342543de82ef95;

// Cheap on purpose: much of a run is filling and comparing memory. `sum` advances by kPatternStep a word.
constexpr uint64_t pattern_sum(WriterId writer, uint64_t index) {
  return writer * 0x9e3779b97f4a7c15 + (index + 1) * kPatternStep;
}
constexpr uint64_t pattern_mix(uint64_t sum) { return sum ^ (sum >> 29); }
constexpr uint64_t pattern_word(WriterId writer, uint64_t index) { return pattern_mix(pattern_sum(writer, index)); }

inline uint8_t pattern_byte(WriterId writer, uint64_t at) {
  return static_cast<uint8_t>(pattern_word(writer, at / 8) >> (8 * (at % 8)));
}

inline void pattern_fill(std::byte* dst, WriterId writer, uint64_t at, size_t bytes) {
  size_t i = 0;
  for (; i < bytes && (at + i) % 8 != 0; ++i) dst[i] = static_cast<std::byte>(pattern_byte(writer, at + i));
  uint64_t sum = pattern_sum(writer, (at + i) / 8);
  for (; i + 32 <= bytes; i += 32) {
    uint64_t w[4];
    for (uint64_t k = 0; k < 4; ++k) w[k] = pattern_mix(sum + k * kPatternStep);
    std::memcpy(dst + i, w, 32);
    sum += 4 * kPatternStep;
  }
  for (; i < bytes; ++i) dst[i] = static_cast<std::byte>(pattern_byte(writer, at + i));
}

// Position of the first byte that differs, or `bytes`.
inline size_t pattern_mismatch(const std::byte* p, WriterId writer, uint64_t at, size_t bytes) {
  size_t i = 0;
  auto differs = [&](size_t k) { return static_cast<uint8_t>(p[k]) != pattern_byte(writer, at + k); };
  for (; i < bytes && (at + i) % 8 != 0; ++i)
    if (differs(i)) return i;
  uint64_t sum = pattern_sum(writer, (at + i) / 8);
  for (; i + 32 <= bytes; i += 32) {
    uint64_t w[4], difference = 0;
    std::memcpy(w, p + i, 32);
    for (uint64_t k = 0; k < 4; ++k) difference |= w[k] ^ pattern_mix(sum + k * kPatternStep);
    if (difference != 0) break;
    sum += 4 * kPatternStep;
  }
  for (; i < bytes; ++i)
    if (differs(i)) return i;
  return bytes;
}

// Do the bytes hold two words in a row of any writer's pattern?
inline bool holds_pattern(const std::byte* p, size_t bytes) {
  auto sum_at = [&](size_t i) {
    uint64_t w;
    std::memcpy(&w, p + i, 8);
    return w ^ w >> 29 ^ w >> 58;  // undoes pattern_mix
  };
  for (size_t i = 0; i + 16 <= bytes; ++i)
    if (sum_at(i + 8) - sum_at(i) == kPatternStep) return true;
  return false;
}

}  // namespace ub::sim
