// SPDX-License-Identifier: Apache-2.0
// fnv.h - FNV-1a with 64 bits: a hash for tables and versions, against accidents and not against attackers.
#pragma once

#include <cstdint>

namespace ub {

inline constexpr uint64_t kFnvBasis = 0xcbf29ce484222325;

/// Of the elements of a range, each of which is a byte. `from`: the hash of what stands before them.
template <class Bytes>
constexpr uint64_t fnv1a(const Bytes& bytes, uint64_t from = kFnvBasis) {
  for (const auto byte : bytes) from = (from ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return from;
}

}  // namespace ub
