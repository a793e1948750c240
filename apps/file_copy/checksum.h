// SPDX-License-Identifier: Apache-2.0
//
// XXH64 (seed 0), fed in pieces: the 64-bit sum that xxhsum -H1 prints. It finds damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ub::apps {

class Xxh64 {
 public:
  void update(const void* data, size_t bytes);
  uint64_t digest() const;

 private:
  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F;

  uint64_t lanes_[4] = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
  uint64_t total_ = 0;
  unsigned char rest_[32] = {};  // bytes that do not fill a stripe yet
  size_t rest_bytes_ = 0;
};

}  // namespace ub::apps
