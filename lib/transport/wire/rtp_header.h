// SPDX-License-Identifier: Apache-2.0
// rtp_header.h - RTPH, the 16 bytes in front of every packet of a reliable channel, and the place where UTPH
// is told apart from it. UB Base Specification Rev 2.0, 6.2.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/base/serial.h"
#include "lib/transport/wire/drop.h"

namespace ub::wire {

enum class TpOpcode : uint8_t {
  kUnreliable = 0,  ///< UTPH: only opcode, padding and nlp mean anything
  kData = 1,
  kAck = 2,     ///< TPACK, TPNAK
  kAckCc = 3,   ///< followed by CETPH
  kSack = 5,    ///< followed by SAETPH
  kSackCc = 6,  ///< followed by CETPH, SAETPH
  kCnp = 8,     ///< followed by CETPH, CNP form
};

/// Next-layer code of RTPH and UTPH.
inline constexpr uint8_t kNlpTransaction = 0;  ///< BTAH or ATAH
inline constexpr uint8_t kNlpEntity = 1;       ///< UPIH-32, EIDH-256, then BTAH or ATAH
inline constexpr uint8_t kNlpEntityShort = 2;  ///< CTPH only: UPIH-16, EIDH-40
inline constexpr uint8_t kNlpEncrypted = 3;    ///< CIPH, not supported

/// TPMSN of responses before the first message was received.
inline constexpr uint32_t kTpmsnNone = 0xFFFFFF;

/// The first four bytes hold what is narrower than a byte, as bit fields where the wire has them (but for `last`),
/// so that reading is little more than copying.
struct RtpHeader {
  static constexpr size_t kSize = 16;

  TpOpcode opcode = TpOpcode::kData;
  uint8_t nlp : 4 = 0;
  uint8_t padding : 2 = 0;  ///< 0-3 zero bytes after the payload
  uint8_t version : 2 = 0;  ///< always 0
  bool last : 1 = false;    ///< last packet of its message; only in data packets
  uint8_t reserved : 5 = 0;
  bool fake : 1 = false;     ///< F
  bool ack_req : 1 = false;  ///< A
  uint8_t rspinfo : 5 = 0;
  uint8_t rspst : 3 = 0;  ///< response_status.h
  uint32_t src_tpn = 0;   ///< 24 bits, of this packet's own direction
  uint32_t dst_tpn = 0;   ///< 24 bits
  Psn psn;
  Tpmsn tpmsn;

  static Drop read(const std::byte* p, size_t avail, RtpHeader& h) {
    if (avail < kSize) [[unlikely]]
      return Drop::kTooShort;
    const uint32_t b0 = load_u8(p);
    const uint32_t narrow = (b0 & 0x7F) | uint32_t{load_u8(p + 1)} << 8 | b0 >> 7 << 16 |
                            (load_u8(p + 8) & 0xC0u) << 16 | uint32_t{load_u8(p + 12)} << 24;
    std::memcpy(static_cast<void*>(&h), &narrow, sizeof narrow);
    h.src_tpn = load_be32(p + 1) & 0xFFFFFF;
    h.dst_tpn = load_be32(p + 4) & 0xFFFFFF;
    h.psn = Psn(load_be32(p + 8));
    h.tpmsn = Tpmsn(load_be32(p + 12));
    if (h.version != 0) [[unlikely]]
      return Drop::kBadTpVersion;
    if (h.opcode == TpOpcode::kData) [[likely]]
      return h.nlp > kNlpEntity ? Drop::kBadNlp : Drop::kNone;
    h.last = false;
    if (h.opcode == TpOpcode::kUnreliable) return h.nlp > kNlpEntity ? Drop::kBadNlp : Drop::kNone;
    const uint8_t code = static_cast<uint8_t>(h.opcode);
    return code > 8 || (0b1'0110'1100u >> code & 1) == 0 ? Drop::kBadTpOpcode : Drop::kNone;
  }

  void write(std::byte* p) const {
    store_be64(p, uint64_t{last} << 63 | uint64_t{static_cast<uint8_t>(opcode)} << 56 | uint64_t{padding} << 52 |
                      uint64_t{nlp} << 48 | uint64_t{src_tpn & 0xFFFFFF} << 24 | (dst_tpn & 0xFFFFFF));
    store_be64(p + 8, uint64_t{ack_req} << 63 | uint64_t{fake} << 62 | uint64_t{psn.value()} << 32 |
                          uint64_t{rspst} << 29 | uint64_t{rspinfo} << 24 | tpmsn.value());
  }

  bool is_data() const { return opcode == TpOpcode::kData; }
  bool has_cetph() const {
    return opcode == TpOpcode::kAckCc || opcode == TpOpcode::kSackCc || opcode == TpOpcode::kCnp;
  }
  bool has_saetph() const { return opcode == TpOpcode::kSack || opcode == TpOpcode::kSackCc; }

  bool operator==(const RtpHeader&) const = default;
};
static_assert(sizeof(RtpHeader) == 20 && offsetof(RtpHeader, src_tpn) == 4);

/// Pad bytes that make TPH..payload a multiple of four.
constexpr uint8_t padding_for(size_t size_bytes) { return static_cast<uint8_t>(-size_bytes & 3); }

}  // namespace ub::wire
