// SPDX-License-Identifier: Apache-2.0
// bth.h - BTH, the 12 bytes in front of every RoCE packet. InfiniBand Architecture Specification volume 1, 9.2.
// Reserved bits are written as zero and not looked at.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/base/serial.h"
#include "lib/transport/roce/wire/drop.h"
#include "lib/transport/roce/wire/opcodes.h"

namespace ub::roce {

inline constexpr uint16_t kUdpPort = 4791;
inline constexpr uint16_t kDefaultPkey = 0xFFFF;  ///< full member of the default partition
inline constexpr uint32_t kQpnMask = 0xFFFFFF;    ///< QP numbers have 24 bits

struct Bth {
  static constexpr size_t kSize = 12;

  Opcode opcode = Opcode::kRcSendOnly;  ///< as it came, known or not
  bool solicited = false;               ///< SE: the receive completion raises an event
  bool migrated = true;                 ///< M: no path migration is under way; some NICs write 0, which must not matter
  uint8_t padding = 0;                  ///< 0-3 zero bytes behind the payload
  uint8_t version = 0;                  ///< TVer, always 0
  uint16_t pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  uint32_t dest_qp = 0;  ///< 24 bits
  bool ack_req = false;
  Psn psn{};

  /// Fills in what is there, whatever the result: nothing for kTooShort, everything for kBadBthVersion.
  static Drop read(const std::byte* p, size_t avail, Bth& h) {
    if (avail < kSize) [[unlikely]]
      return Drop::kTooShort;
    const uint64_t w = load_be64(p);
    const uint32_t last = load_be32(p + 8);
    h.opcode = static_cast<Opcode>(w >> 56);
    h.solicited = (w >> 55 & 1) != 0;
    h.migrated = (w >> 54 & 1) != 0;
    h.padding = w >> 52 & 3;
    h.version = w >> 48 & 15;
    h.pkey = static_cast<uint16_t>(w >> 32);
    h.fecn = (w >> 31 & 1) != 0;
    h.becn = (w >> 30 & 1) != 0;
    h.dest_qp = w & kQpnMask;
    h.ack_req = last >> 31 != 0;
    h.psn = Psn(last);
    return h.version == 0 ? Drop::kNone : Drop::kBadBthVersion;
  }

  void write(std::byte* p) const {
    store_be64(p, uint64_t{static_cast<uint8_t>(opcode)} << 56 | uint64_t{solicited} << 55 | uint64_t{migrated} << 54 |
                      uint64_t{padding & 3u} << 52 | uint64_t{version & 15u} << 48 | uint64_t{pkey} << 32 |
                      uint64_t{fecn} << 31 | uint64_t{becn} << 30 | (dest_qp & kQpnMask));
    store_be32(p + 8, uint32_t{ack_req} << 31 | psn.value());
  }

  bool operator==(const Bth&) const = default;
};

}  // namespace ub::roce
