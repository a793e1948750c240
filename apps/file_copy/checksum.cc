// SPDX-License-Identifier: Apache-2.0
#include "apps/file_copy/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ub::apps {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F, kPrime3 = 0x165667B19E3779F9,
                   kPrime4 = 0x85EBCA77C2B2AE63, kPrime5 = 0x27D4EB2F165667C5;
static_assert(std::endian::native == std::endian::little);

template <class T>
T load(const unsigned char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

uint64_t round(uint64_t lane, uint64_t input) { return std::rotl(lane + input * kPrime2, 31) * kPrime1; }
uint64_t merge(uint64_t hash, uint64_t lane) { return (hash ^ round(0, lane)) * kPrime1 + kPrime4; }

void stripes(uint64_t (&lanes)[4], const unsigned char* p, size_t count) {
  uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
  for (; count > 0; --count, p += 32) {
    a = round(a, load<uint64_t>(p));
    b = round(b, load<uint64_t>(p + 8));
    c = round(c, load<uint64_t>(p + 16));
    d = round(d, load<uint64_t>(p + 24));
  }
  lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
}

}  // namespace

void Xxh64::update(const void* data, size_t bytes) {
  if (bytes == 0) return;
  const auto* p = static_cast<const unsigned char*>(data);
  total_ += bytes;
  if (rest_bytes_ > 0) {
    const size_t n = std::min(bytes, sizeof rest_ - rest_bytes_);
    std::memcpy(rest_ + rest_bytes_, p, n);
    rest_bytes_ += n;
    p += n;
    bytes -= n;
    if (rest_bytes_ < sizeof rest_) return;
    stripes(lanes_, rest_, 1);
    rest_bytes_ = 0;
  }
  stripes(lanes_, p, bytes / 32);
  rest_bytes_ = bytes % 32;
  std::memcpy(rest_, p + bytes - rest_bytes_, rest_bytes_);
}

uint64_t Xxh64::digest() const {
  uint64_t h = kPrime5;
  if (total_ >= 32) {
    h = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_) h = merge(h, lane);
  }
  h += total_;
  const unsigned char* p = rest_;
  size_t left = rest_bytes_;
  for (; left >= 8; p += 8, left -= 8) h = std::rotl(h ^ round(0, load<uint64_t>(p)), 27) * kPrime1 + kPrime4;
  if (left >= 4) {
    h = std::rotl(h ^ load<uint32_t>(p) * kPrime1, 23) * kPrime2 + kPrime3;
    p += 4;
    left -= 4;
  }
  for (; left > 0; ++p, --left) h = std::rotl(h ^ *p * kPrime5, 11) * kPrime1;
  h = (h ^ h >> 33) * kPrime2;
  h = (h ^ h >> 29) * kPrime3;
  return h ^ h >> 32;
}

}  // namespace ub::apps
