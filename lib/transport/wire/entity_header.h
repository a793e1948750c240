// SPDX-License-Identifier: Apache-2.0
// entity_header.h - UPIH and EIDH: partition and entity ids, present when the transport header's next-layer
// code says so. UB Base Specification Rev 2.0, appendix B.3 and B.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/transport/addresses.h"
#include "lib/transport/wire/drop.h"

namespace ub::wire {

using ub::Eid;

/// UPIH-32 + EIDH-256, next-layer code 1.
struct EntityHeader {
  static constexpr size_t kSize = 36;

  uint32_t upi = 0;  ///< 24 bits
  Eid src, dst;

  static Drop read(const std::byte* p, size_t avail, EntityHeader& h) {
    if (avail < kSize) return Drop::kTruncatedHeader;
    h.upi = load_be32(p) & 0xFFFFFF;
    std::memcpy(h.src.bytes.data(), p + 4, 16);
    std::memcpy(h.dst.bytes.data(), p + 20, 16);
    return Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be32(p, upi & 0xFFFFFF);
    std::memcpy(p + 4, src.bytes.data(), 16);
    std::memcpy(p + 20, dst.bytes.data(), 16);
  }
  bool operator==(const EntityHeader&) const = default;
};

/// UPIH-16 + EIDH-40, CTPH next-layer code 2: short (Sub-ID) entity ids.
struct EntityHeaderShort {
  static constexpr size_t kSize = 7;

  uint16_t upi = 0;           ///< 15 bits
  uint32_t src = 0, dst = 0;  ///< 20 bits

  static Drop read(const std::byte* p, size_t avail, EntityHeaderShort& h) {
    if (avail < kSize) return Drop::kTruncatedHeader;
    h.upi = load_be16(p) & 0x7FFF;
    h.src = load_be24(p + 2) >> 4;
    h.dst = load_be24(p + 4) & 0xFFFFF;
    return Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be16(p, upi & 0x7FFF);
    store_be16(p + 2, static_cast<uint16_t>(src >> 4));
    store_u8(p + 4, static_cast<uint8_t>((src & 15) << 4 | (dst >> 16 & 15)));
    store_be16(p + 5, static_cast<uint16_t>(dst));
  }
  bool operator==(const EntityHeaderShort&) const = default;
};

}  // namespace ub::wire
