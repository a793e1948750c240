// SPDX-License-Identifier: Apache-2.0
//
// Numbers and bytes as a recording has them: seven bits in each byte, the lowest first; and bytes as their difference
// to others of the same kind. Writers know that there is room. Readers believe nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ub::record {

constexpr size_t kMostVarint = 10;

// The bytes of whole words that so many bytes lie in.
constexpr size_t words(size_t bytes) { return (bytes + 7) / 8 * 8; }

inline std::byte* put_varint(std::byte* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<std::byte>(value);
  return at;
}

inline std::byte* put_bytes(std::byte* at, const void* from, size_t bytes) {
  if (bytes != 0) std::memcpy(at, from, bytes);
  return at + bytes;
}

// Differences to `like`: for each 64 bytes a byte that says which of its eight words differ, and for each of those a
// byte that says which of its bytes do, and these. `bytes` is a multiple of 8; `like` becomes what was written.
constexpr size_t most_difference(size_t bytes) { return bytes + bytes / 8 + bytes / 64 + 1; }
std::byte* put_difference(std::byte* at, std::byte* like, const std::byte* from, size_t bytes);

// Reads from [at, end). Once something was not there, everything else is zero, too.
class Input {
 public:
  Input(const std::byte* at, const std::byte* end) : at_(at), end_(end) {}

  bool good() const { return good_; }
  bool empty() const { return at_ == end_; }
  const std::byte* at() const { return at_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  uint8_t byte() {
    const std::byte* p = take(1);
    return p == nullptr ? uint8_t{0} : static_cast<uint8_t>(*p);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      const uint8_t next = byte();
      if (!good_) return 0;
      value |= uint64_t{next & 0x7fu} << shift;
      if ((next & 0x80) == 0) return value;
    }
    good_ = false;
    return 0;
  }
  // Null: there are not so many.
  const std::byte* take(size_t bytes) {
    if (!good_ || left() < bytes) {
      good_ = false;
      return nullptr;
    }
    const std::byte* p = at_;
    at_ += bytes;
    return p;
  }
  template <class T>
  T value() {
    T value{};
    if (const std::byte* p = take(sizeof value)) std::memcpy(&value, p, sizeof value);
    return value;
  }
  // As put_difference(): `like` becomes what was written.
  void difference(std::byte* like, size_t bytes);

 private:
  const std::byte* at_;
  const std::byte* end_;
  bool good_ = true;
};

}  // namespace ub::record
