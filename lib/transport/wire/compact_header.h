// SPDX-License-Identifier: Apache-2.0
// compact_header.h - CTPH, the one-byte header of compact transport: no numbers, no acknowledgements.
// UB Base Specification Rev 2.0, 6.2.1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/transport/wire/drop.h"

namespace ub::wire {

enum class CtpOpcode : uint8_t { kData = 0, kCnp = 1 };

struct CtpHeader {
  static constexpr size_t kSize = 1;

  CtpOpcode opcode = CtpOpcode::kData;
  uint8_t padding = 0;
  uint8_t nlp = 0;  ///< 0-2, kNlp* of rtp_header.h

  static Drop read(const std::byte* p, size_t avail, CtpHeader& h) {
    if (avail < kSize) return Drop::kTooShort;
    const uint8_t b = load_u8(p);
    if (b >> 6 > 1) return Drop::kBadTpOpcode;
    h.opcode = static_cast<CtpOpcode>(b >> 6);
    h.padding = b >> 4 & 3;
    h.nlp = b & 15;
    return h.nlp > 2 ? Drop::kBadNlp : Drop::kNone;
  }
  void write(std::byte* p) const {
    store_u8(p, static_cast<uint8_t>(static_cast<uint8_t>(opcode) << 6 | (padding & 3) << 4 | (nlp & 15)));
  }
  bool operator==(const CtpHeader&) const = default;
};

}  // namespace ub::wire
