// SPDX-License-Identifier: Apache-2.0
// rtp_header.h - RTPH, the 16 bytes in front of every packet of a reliable channel, and the place where UTPH
// is told apart from it. UB Base Specification Rev 2.0, 6.2.1.
#pragma once

#include <cstddef>
#include <cstdint>

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

struct RtpHeader {
  static constexpr size_t kSize = 16;

  TpOpcode opcode = TpOpcode::kData;
  bool last = false;    ///< last packet of its message; only in data packets
  uint8_t padding = 0;  ///< 0-3 zero bytes after the payload
  uint8_t nlp = 0;
  bool ack_req = false;  ///< A
  bool fake = false;     ///< F
  uint8_t rspst = 0;     ///< 3 bits, response_status.h
  uint8_t rspinfo = 0;   ///< 5 bits
  uint32_t src_tpn = 0;  ///< 24 bits, of this packet's own direction
  uint32_t dst_tpn = 0;
  Psn psn;
  Tpmsn tpmsn;

  static Drop read(const std::byte* p, size_t avail, RtpHeader& h) {
    if (avail < kSize) [[unlikely]]
      return Drop::kTooShort;
    const uint64_t w0 = load_be64(p);
    const uint64_t w1 = load_be64(p + 8);
    const uint8_t op = static_cast<uint8_t>(w0 >> 56 & 0x7F);
    if ((w0 >> 48 & 0xC0) != 0) [[unlikely]]
      return Drop::kBadTpVersion;
    if (op > 8 || (0b1'0110'1111u >> op & 1) == 0) [[unlikely]]
      return Drop::kBadTpOpcode;
    h.opcode = static_cast<TpOpcode>(op);
    h.last = (w0 >> 63) != 0 && op == static_cast<uint8_t>(TpOpcode::kData);
    h.padding = static_cast<uint8_t>(w0 >> 52 & 3);
    h.nlp = static_cast<uint8_t>(w0 >> 48 & 15);
    if (op <= static_cast<uint8_t>(TpOpcode::kData) && h.nlp > kNlpEntity) [[unlikely]]
      return Drop::kBadNlp;
    h.src_tpn = static_cast<uint32_t>(w0 >> 24 & 0xFFFFFF);
    h.dst_tpn = static_cast<uint32_t>(w0 & 0xFFFFFF);
    h.ack_req = (w1 >> 63 & 1) != 0;
    h.fake = (w1 >> 62 & 1) != 0;
    h.psn = Psn(static_cast<uint32_t>(w1 >> 32 & 0xFFFFFF));
    h.rspst = static_cast<uint8_t>(w1 >> 29 & 7);
    h.rspinfo = static_cast<uint8_t>(w1 >> 24 & 31);
    h.tpmsn = Tpmsn(static_cast<uint32_t>(w1 & 0xFFFFFF));
    return Drop::kNone;
  }

  void write(std::byte* p) const {
    store_be64(p, uint64_t{last} << 63 | uint64_t{static_cast<uint8_t>(opcode)} << 56 |
                      uint64_t{padding & 3u} << 52 | uint64_t{nlp & 15u} << 48 |
                      uint64_t{src_tpn & 0xFFFFFF} << 24 | (dst_tpn & 0xFFFFFF));
    store_be64(p + 8, uint64_t{ack_req} << 63 | uint64_t{fake} << 62 | uint64_t{psn.value()} << 32 |
                          uint64_t{rspst & 7u} << 29 | uint64_t{rspinfo & 31u} << 24 | tpmsn.value());
  }

  bool is_data() const { return opcode == TpOpcode::kData; }
  bool has_cetph() const {
    return opcode == TpOpcode::kAckCc || opcode == TpOpcode::kSackCc || opcode == TpOpcode::kCnp;
  }
  bool has_saetph() const { return opcode == TpOpcode::kSack || opcode == TpOpcode::kSackCc; }

  bool operator==(const RtpHeader&) const = default;
};

/// Pad bytes that make TPH..payload a multiple of four.
constexpr uint8_t padding_for(size_t size_bytes) {
  return static_cast<uint8_t>(-size_bytes & 3);
}

}  // namespace ub::wire
