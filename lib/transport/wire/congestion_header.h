// SPDX-License-Identifier: Apache-2.0
// congestion_header.h - CETPH, the receiver's congestion feedback, in its three forms. A channel uses the form that was
// agreed on when it was set up. UB Base Specification Rev 2.0, 6.2.2 and 6.6.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/transport/wire/drop.h"

namespace ub::wire {

/// Running totals count units of 2 bytes, modulo 2^32. Each packet is rounded up.
inline constexpr uint32_t kAckSeqUnitBytes = 2;
/// The unit of a CAQM hint.
inline constexpr uint32_t kCaqmHintUnitBytes = 32;

struct CetphLdcp {
  static constexpr size_t kSize = 8;

  uint32_t ack_seq = 0;  ///< data received
  uint32_t ce_seq = 0;   ///< data received with a congestion mark

  static Drop read(const std::byte* p, size_t avail, CetphLdcp& h) {
    if (avail < kSize) return Drop::kTruncatedHeader;
    h.ack_seq = load_be32(p);
    h.ce_seq = load_be32(p + 4);
    return Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be32(p, ack_seq);
    store_be32(p + 4, ce_seq);
  }
  bool operator==(const CetphLdcp&) const = default;
};

struct CetphCaqm {
  static constexpr size_t kSize = 8;

  uint32_t ack_seq = 0;   ///< data received
  bool loc = false;       ///< congestion is at the last hop
  bool increase = false;  ///< I: some grant is in the hint
  uint8_t marks = 0;      ///< C: marked packets since the last response
  uint16_t hint = 0;      ///< sum of granted hints since the last response

  static Drop read(const std::byte* p, size_t avail, CetphCaqm& h) {
    if (avail < kSize) return Drop::kTruncatedHeader;
    h.ack_seq = load_be32(p);
    h.loc = (load_u8(p + 4) & 2) != 0;
    h.increase = (load_u8(p + 4) & 1) != 0;
    h.marks = load_u8(p + 5);
    h.hint = load_be16(p + 6);
    return Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be32(p, ack_seq);
    store_u8(p + 4, static_cast<uint8_t>(loc << 1 | increase));
    store_u8(p + 5, marks);
    store_be16(p + 6, hint);
  }
  bool operator==(const CetphCaqm&) const = default;
};

struct CetphCnp {
  static constexpr size_t kSize = 16;
  static constexpr uint8_t kNone = 0, kMinor = 1, kSevere = 3;

  uint8_t ecn = 0;  ///< 2 bits
  bool loc = false;

  static Drop read(const std::byte* p, size_t avail, CetphCnp& h) {
    if (avail < kSize) return Drop::kTruncatedHeader;
    h.ecn = load_u8(p) >> 6;
    h.loc = (load_u8(p) & 0x20) != 0;
    return Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be64(p, uint64_t{ecn & 3u} << 62 | uint64_t{loc} << 61);
    store_be64(p + 8, 0);
  }
  bool operator==(const CetphCnp&) const = default;
};

}  // namespace ub::wire
