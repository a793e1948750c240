// SPDX-License-Identifier: Apache-2.0
// syndrome.h - the one byte of AETH that says what became of a request: it is acknowledged, with how many receives are
// posted; the responder is not ready, with how long to wait; or it is refused, with the reason. InfiniBand Architecture
// Specification volume 1, 9.3 (AETH) and 9.7 (credits, RNR).
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace ub::roce {

enum class NakCode : uint8_t {
  kPsnSequence = 0,     ///< packets are missing: send again from this PSN on
  kInvalidRequest = 1,  ///< the request is malformed, or the QP does not do such a thing
  kRemoteAccess = 2,    ///< the key, the range or the permission is wrong
  kRemoteOperation = 3,
};

inline constexpr uint8_t kNoCredits = 31;  ///< the responder counts no credits, and the requester is not limited

enum class AckKind : uint8_t { kAck, kRnr, kNak, kReserved };

/// Bits 7:5 are the kind, bits 4:0 the value: credits, RNR timer or NAK code.
struct Syndrome {
  uint8_t code = kNoCredits;

  static constexpr Syndrome ack(uint8_t credits = kNoCredits) { return {static_cast<uint8_t>(credits & 31)}; }
  static constexpr Syndrome rnr(uint8_t timer) { return {static_cast<uint8_t>(0x20 | (timer & 31))}; }
  static constexpr Syndrome nak(NakCode c) { return {static_cast<uint8_t>(0x60 | static_cast<uint8_t>(c))}; }

  constexpr AckKind kind() const {
    switch (code >> 5) {
      case 0:
        return AckKind::kAck;
      case 1:
        return AckKind::kRnr;
      case 3:
        return value() <= static_cast<uint8_t>(NakCode::kRemoteOperation) ? AckKind::kNak : AckKind::kReserved;
      default:
        return AckKind::kReserved;
    }
  }
  constexpr uint8_t value() const { return code & 31; }
  constexpr NakCode nak_code() const { return static_cast<NakCode>(value()); }  ///< for a kNak

  constexpr bool operator==(const Syndrome&) const = default;
};

namespace detail {
/// The value of a code that grows by halves. Codes 1 to 31 stand for 1, 2, 3, 4, 6, 8, 12, 16, ...
constexpr uint32_t by_halves(uint8_t code) { return code < 2 ? code : (2u | (code & 1u)) << (code / 2 - 1); }
}  // namespace detail

/// How many receives the credit code of an ACK stands for. Not for kNoCredits.
constexpr uint32_t credits_of(uint8_t code) { return detail::by_halves(code & 31); }

/// The largest code that stands for no more receives than that.
constexpr uint8_t credit_code(uint32_t receives) {
  uint8_t code = kNoCredits - 1;
  while (code > 0 && credits_of(code) > receives) --code;
  return code;
}

/// How long an RNR timer code asks the requester to wait. Code 0 is the longest.
constexpr Duration rnr_delay(uint8_t code) {
  return microseconds(10) * ((code & 31) == 0 ? 65536 : detail::by_halves(code & 31));
}

}  // namespace ub::roce
