// SPDX-License-Identifier: Apache-2.0
//
// Copies between memory that others read and write meanwhile and a block of a load or store. Naturally aligned words of
// 1, 2, 4 and 8 bytes of that memory are read and written whole; memcpy promises nothing of the kind. The order in
// which the words are copied is not defined.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ub {
namespace detail {

// `memory` is aligned to the width of Word.
template <class Word>
void load_word(std::byte* block, const std::byte* memory) {
  const Word word = __atomic_load_n(reinterpret_cast<const Word*>(memory), __ATOMIC_RELAXED);
  std::memcpy(block, &word, sizeof word);
}
template <class Word>
void store_word(std::byte* memory, const std::byte* block) {
  Word word;
  std::memcpy(&word, block, sizeof word);
  __atomic_store_n(reinterpret_cast<Word*>(memory), word, __ATOMIC_RELAXED);
}

// Calls copy(a word of the width, offset) for the largest aligned words that `bytes` bytes at `memory` consist of.
template <class Copy>
void each_word(const std::byte* memory, size_t bytes, Copy copy) {
  for (size_t at = 0; at < bytes;) {
    const size_t rest = bytes - at;
    const uintptr_t place = (reinterpret_cast<uintptr_t>(memory) + at) | 8;
    const size_t alignment = place & -place;
    switch (std::min(alignment, std::bit_floor(rest))) {
      case 8:
        for (const size_t end = at + rest / 8 * 8; at < end; at += 8) copy(uint64_t{}, at);
        break;
      case 4:
        copy(uint32_t{}, at);
        at += 4;
        break;
      case 2:
        copy(uint16_t{}, at);
        at += 2;
        break;
      default:
        copy(uint8_t{}, at);
        at += 1;
        break;
    }
  }
}

constexpr size_t kLineBytes = 64;

// Most blocks are whole lines: calls copy(a word, offset) for each word of each line.
template <class Copy>
bool each_word_of_lines(const std::byte* memory, size_t bytes, Copy copy) {
  if (reinterpret_cast<uintptr_t>(memory) % sizeof(uint64_t) != 0 || bytes % kLineBytes != 0) return false;
  for (size_t line = 0; line != bytes; line += kLineBytes) {
    for (size_t at = 0; at != kLineBytes; at += sizeof(uint64_t)) copy(uint64_t{}, line + at);
  }
  return true;
}

template <class Copy>
void copy_words(const std::byte* memory, size_t bytes, Copy copy) {
  if (!each_word_of_lines(memory, bytes, copy)) each_word(memory, bytes, copy);
}

}  // namespace detail

inline void load_words(std::byte* block, const std::byte* memory, size_t bytes) {
  detail::copy_words(memory, bytes, [=](auto word, size_t at) {
    detail::load_word<decltype(word)>(block + at, memory + at);
  });
}

inline void store_words(std::byte* memory, const std::byte* block, size_t bytes) {
  detail::copy_words(memory, bytes, [=](auto word, size_t at) {
    detail::store_word<decltype(word)>(memory + at, block + at);
  });
}

}  // namespace ub
