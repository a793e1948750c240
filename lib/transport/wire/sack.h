// SPDX-License-Identifier: Apache-2.0
// sack.h - SAETPH: which PSNs behind the cumulative one have arrived. UB Base Specification Rev 2.0, 6.2.3.
// Bit i stands for the PSN of the RTPH + i, so bit 0 (the highest in-order PSN) is always 1.
// The specification does not fix the order of bits inside the bitmap; ours (bit i is bit i%8 of byte i/8) is
// written down in sack_word() and sack_store_word() and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/base/serial.h"
#include "lib/transport/wire/drop.h"

namespace ub::wire {

inline constexpr uint8_t kSackSizeCodeMax = 4;
inline constexpr uint32_t kSackMaxBits = 1024;
inline constexpr uint32_t kSackMaxWords = kSackMaxBits / 64;

/// BitMapSize codes 0-4 mean 64, 128, 256, 512, 1024 bits.
constexpr uint32_t sack_bits(uint8_t size_code) { return 64u << size_code; }
constexpr size_t sack_bitmap_size(uint8_t size_code) { return sack_bits(size_code) / 8; }

/// Bits 64*index .. 64*index+63 of a bitmap, bit 64*index in the least significant place.
inline uint64_t sack_word(const std::byte* bitmap, uint32_t index) { return load_le64(bitmap + 8 * index); }
inline void sack_store_word(std::byte* bitmap, uint32_t index, uint64_t w) { store_le64(bitmap + 8 * index, w); }

struct SackView {
  static constexpr size_t kFixedSize = 4;

  uint8_t size_code = 0;
  Psn max_rcv_psn;  ///< largest PSN seen; may lie beyond the bitmap
  const std::byte* bitmap = nullptr;

  uint32_t bit_count() const { return sack_bits(size_code); }
  uint32_t word_count() const { return sack_bits(size_code) / 64; }
  uint64_t word(uint32_t index) const { return sack_word(bitmap, index); }
  bool test(uint32_t bit) const { return (word(bit / 64) >> (bit % 64) & 1) != 0; }
  size_t size() const { return kFixedSize + sack_bitmap_size(size_code); }

  static Drop read(const std::byte* p, size_t avail, SackView& out) {
    if (avail < kFixedSize) return Drop::kTruncatedHeader;
    const uint32_t w = load_be32(p);
    out.size_code = static_cast<uint8_t>(w >> 24 & 7);
    if (out.size_code > kSackSizeCodeMax) return Drop::kBadSackSize;
    if (avail - kFixedSize < sack_bitmap_size(out.size_code)) return Drop::kTruncatedHeader;
    out.max_rcv_psn = Psn(w);
    out.bitmap = p + kFixedSize;
    return Drop::kNone;
  }
};

constexpr size_t sack_size(uint8_t size_code) { return SackView::kFixedSize + sack_bitmap_size(size_code); }

/// Writes SAETPH with a bitmap of sack_bits(size_code)/64 words (word i as sack_word() returns it); returns
/// its size.
inline size_t write_sack(std::byte* p, uint8_t size_code, Psn max_rcv_psn, const uint64_t* words) {
  store_be32(p, uint32_t{size_code} << 24 | max_rcv_psn.value());
  for (uint32_t i = 0; i < sack_bits(size_code) / 64; ++i) sack_store_word(p + SackView::kFixedSize, i, words[i]);
  return sack_size(size_code);
}

}  // namespace ub::wire
