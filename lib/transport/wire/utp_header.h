// SPDX-License-Identifier: Apache-2.0
// utp_header.h - UTPH, 16 bytes of which two mean something: a packet that is sent and forgotten.
// It shares its place with RTPH; byte 0 [6:0] = 0 tells them apart. UB Base Specification Rev 2.0, 6.2.1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/transport/wire/drop.h"

namespace ub::wire {

struct UtpHeader {
  static constexpr size_t kSize = 16;

  uint8_t padding = 0;
  uint8_t nlp = 0;  ///< as RtpHeader::nlp

  static Drop read(const std::byte* p, size_t avail, UtpHeader& h) {
    if (avail < kSize) return Drop::kTooShort;
    const uint8_t b1 = load_u8(p + 1);
    if ((b1 & 0xC0) != 0) return Drop::kBadTpVersion;
    if ((load_u8(p) & 0x7F) != 0) return Drop::kBadTpOpcode;
    h.padding = b1 >> 4 & 3;
    h.nlp = b1 & 15;
    return h.nlp > 1 ? Drop::kBadNlp : Drop::kNone;
  }

  void write(std::byte* p) const {
    store_be64(p, uint64_t{padding & 3u} << 52 | uint64_t{nlp & 15u} << 48);
    store_be64(p + 8, 0);
  }

  bool operator==(const UtpHeader&) const = default;
};

}  // namespace ub::wire
