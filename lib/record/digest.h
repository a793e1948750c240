// SPDX-License-Identifier: Apache-2.0
//
// A digest of values, in order: two that differ hardly ever have the same. It costs a multiplication for eight bytes,
// and is no protection against somebody who wants two to be the same.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ub::record {

class Digest {
 public:
  void add(uint64_t value) { sum_ = (std::rotl(sum_, 29) ^ value) * 0x9e3779b97f4a7c15; }
  void add(std::span<const std::byte> bytes) {
    uint64_t word = 0;
    for (; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
      std::memcpy(&word, bytes.data(), sizeof word);
      add(word);
    }
    if (bytes.empty()) return;
    word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    add(word);
  }
  uint32_t sum() const { return static_cast<uint32_t>(sum_ ^ sum_ >> 32); }
  bool is_empty() const { return sum_ == 1; }

 private:
  uint64_t sum_ = 1;
};

inline uint32_t digest_of(std::span<const std::byte> bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.sum();
}

}  // namespace ub::record
