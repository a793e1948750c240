// SPDX-License-Identifier: Apache-2.0
#include "lib/record/varint.h"

#include <algorithm>

namespace ub::record {

namespace {

constexpr size_t kWord = 8;
constexpr size_t kGroup = 64;

// The word's bytes that differ, behind a mask of them.
std::byte* put_word(std::byte* at, uint64_t difference, uint64_t word) {
  std::byte* const mask_at = at++;
  uint8_t mask = 0;
  for (uint32_t i = 0; i < kWord; ++i) {
    if ((difference >> (8 * i) & 0xff) == 0) continue;
    mask = static_cast<uint8_t>(mask | 1u << i);
    *at++ = static_cast<std::byte>(word >> (8 * i));
  }
  *mask_at = static_cast<std::byte>(mask);
  return at;
}

}  // namespace

std::byte* put_difference(std::byte* at, std::byte* like, const std::byte* from, size_t bytes) {
  for (size_t group = 0; group < bytes; group += kGroup) {
    std::byte* const words_at = at++;
    uint8_t words = 0;
    const size_t end = std::min(bytes, group + kGroup);
    for (size_t i = group; i < end; i += kWord) {
      uint64_t word, before;
      std::memcpy(&word, from + i, kWord);
      std::memcpy(&before, like + i, kWord);
      if (word == before) continue;
      words = static_cast<uint8_t>(words | 1u << ((i - group) / kWord));
      at = put_word(at, word ^ before, word);
      std::memcpy(like + i, &word, kWord);
    }
    *words_at = static_cast<std::byte>(words);
  }
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
