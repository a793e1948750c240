// SPDX-License-Identifier: Apache-2.0
#include "lib/record/varint.h"

#include <algorithm>
#include <bit>

namespace ub::record {

namespace {

constexpr size_t kWord = 8;
constexpr size_t kGroup = 64;

// A bit for each byte that is not zero.
uint32_t mask_of_bytes(uint64_t word) {
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  const uint64_t high = ((word & kLow) + kLow) | word;  // bit 7 of each such byte
  return static_cast<uint32_t>(((high & ~kLow) >> 7) * 0x0102040810204080 >> 56);
}

// The word's bytes that differ, behind a mask of them.
std::byte* put_word(std::byte* at, uint64_t difference, uint64_t word) {
  uint32_t mask = mask_of_bytes(difference);
  *at++ = static_cast<std::byte>(mask);
  for (; mask != 0; mask &= mask - 1) *at++ = static_cast<std::byte>(word >> (8 * std::countr_zero(mask)));
  return at;
}

uint64_t word_at(const std::byte* from, uint32_t number) {
  uint64_t word;
  std::memcpy(&word, from + number * kWord, kWord);
  return word;
}

// Most words are equal, and which of them are not changes: no branch for each.
std::byte* put_group(std::byte* at, std::byte* like, const std::byte* from) {
  uint32_t words = 0;
  for (uint32_t i = 0; i < kGroup / kWord; ++i)
    words |= static_cast<uint32_t>(word_at(from, i) != word_at(like, i)) << i;
  *at++ = static_cast<std::byte>(words);
  for (; words != 0; words &= words - 1) {
    const auto i = static_cast<uint32_t>(std::countr_zero(words));
    at = put_word(at, word_at(from, i) ^ word_at(like, i), word_at(from, i));
  }
  std::memcpy(like, from, kGroup);
  return at;
}

}  // namespace

std::byte* put_difference(std::byte* at, std::byte* like, const std::byte* from, size_t bytes) {
  for (; bytes >= kGroup; bytes -= kGroup, like += kGroup, from += kGroup) at = put_group(at, like, from);
  if (bytes == 0) return at;
  std::byte* const words_at = at++;
  uint32_t words = 0;
  for (uint32_t i = 0; i < bytes / kWord; ++i) {
    const uint64_t difference = word_at(from, i) ^ word_at(like, i);
    if (difference == 0) continue;
    words |= 1u << i;
    at = put_word(at, difference, word_at(from, i));
  }
  std::memcpy(like, from, bytes);
  *words_at = static_cast<std::byte>(words);
  return at;
}

void Input::difference(std::byte* like, size_t bytes) {
  for (size_t group = 0; group < bytes; group += kGroup) {
    const uint8_t words = byte();
    const size_t end = std::min(bytes, group + kGroup);
    for (size_t i = group; i < end; i += kWord) {
      if ((words >> ((i - group) / kWord) & 1) == 0) continue;
      const uint8_t mask = byte();
      for (uint32_t b = 0; b < kWord; ++b)
        if ((mask >> b & 1) != 0) like[i + b] = static_cast<std::byte>(byte());
    }
  }
}

}  // namespace ub::record
