// SPDX-License-Identifier: Apache-2.0
// transaction_header.h - BTAH in front of every request and ATAH in front of every response, in their full (8
// B) and compact (4 B, load/store without transport) forms. UB Base Specification Rev 2.0, 7.2.1, 7.2.2.
// Neither carries the service mode: the channel knows it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/base/serial.h"
#include "lib/transport/wire/drop.h"
#include "lib/transport/wire/opcodes.h"

namespace ub::wire {

/// Btah::odr: execution order in the low two bits, in-order receive completion above.
inline constexpr uint8_t kOdrNone = 0;
inline constexpr uint8_t kOdrRelaxed = 1;
inline constexpr uint8_t kOdrStrong = 2;
inline constexpr uint8_t kOdrExecutionMask = 3;
inline constexpr uint8_t kOdrCompletion = 4;

/// Btah::rc_type: what INI_RC_ID names.
inline constexpr uint8_t kRcTypeSq = 1;               ///< RCID of a send queue (0 reads the same)
inline constexpr uint8_t kRcTypeSequenceContext = 2;  ///< SCID at the target

struct Btah {
  static constexpr size_t kSize = 8;
  static constexpr size_t kCompactSize = 4;

  TaOpcode opcode = TaOpcode::kSend;
  bool tv_en = false;    ///< TVETAH present
  bool poison = false;   ///< payload is known to be bad
  bool ud_flag = false;  ///< UDETAH present
  Tassn tassn;
  bool no_taack = false;  ///< CTP: do not answer
  uint8_t odr = kOdrNone;
  bool mt_en = false;  ///< MTETAH present
  bool fce = false;    ///< completion event at the target
  bool retry = false;  ///< retry of the transaction layer (never a retransmission)
  bool alloc = false;  ///< wants a sequence context
  bool e_bit = false;  ///< exclusive access
  uint8_t rc_type = kRcTypeSq;
  uint32_t rc_id = 0;  ///< 20 bits

  /// Any opcode is read, reserved ones too: ta_is_known() tells.
  static Drop read(const std::byte* p, size_t avail, Btah& h) {
    if (avail < kSize) [[unlikely]]
      return Drop::kTruncatedHeader;
    const uint64_t w = load_be64(p);
    h.read_first(static_cast<uint32_t>(w >> 32));
    h.no_taack = (w >> 31 & 1) != 0;
    h.odr = static_cast<uint8_t>(w >> 28 & 7);
    h.mt_en = (w >> 27 & 1) != 0;
    h.fce = (w >> 26 & 1) != 0;
    h.retry = (w >> 25 & 1) != 0;
    h.alloc = (w >> 24 & 1) != 0;
    h.e_bit = (w >> 22 & 1) != 0;
    h.rc_type = static_cast<uint8_t>(w >> 20 & 3);
    h.rc_id = static_cast<uint32_t>(w & 0xFFFFF);
    return (w >> 48 & 0xC0) != 0 ? Drop::kBadTaVersion : Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be64(p, uint64_t{first()} << 32 | uint64_t{no_taack} << 31 | uint64_t{odr & 7u} << 28 |
                      uint64_t{mt_en} << 27 | uint64_t{fce} << 26 | uint64_t{retry} << 25 |
                      uint64_t{alloc} << 24 | uint64_t{e_bit} << 22 | uint64_t{rc_type & 3u} << 20 |
                      (rc_id & 0xFFFFF));
  }

  /// The compact form has the first four bytes only; the other fields keep their defaults.
  static Drop read_compact(const std::byte* p, size_t avail, Btah& h) {
    if (avail < kCompactSize) return Drop::kTruncatedHeader;
    const uint32_t w = load_be32(p);
    h = Btah{};
    h.read_first(w);
    return (w >> 16 & 0xC0) != 0 ? Drop::kBadTaVersion : Drop::kNone;
  }
  void write_compact(std::byte* p) const { store_be32(p, first()); }

  bool operator==(const Btah&) const = default;

 private:
  static constexpr uint32_t kEeNonTee = 1;

  void read_first(uint32_t w) {
    opcode = static_cast<TaOpcode>(w >> 24);
    tv_en = (w >> 19 & 1) != 0;
    poison = (w >> 18 & 1) != 0;
    ud_flag = (w >> 16 & 1) != 0;
    tassn = Tassn(w & 0xFFFF);
  }
  uint32_t first() const {
    return uint32_t{static_cast<uint8_t>(opcode)} << 24 | kEeNonTee << 20 | uint32_t{tv_en} << 19 |
           uint32_t{poison} << 18 | uint32_t{ud_flag} << 16 | tassn.value();
  }
};

struct Atah {
  static constexpr size_t kSize = 8;

  TaOpcode opcode = TaOpcode::kTaack;
  bool sv = false;      ///< tassn holds the SCID that was allocated
  bool poison = false;  ///< payload is known to be bad
  Tassn tassn;          ///< of the request
  uint8_t rspst = 0;    ///< 3 bits, response_status.h
  uint8_t rspinfo = 0;  ///< 5 bits
  uint8_t rc_type = kRcTypeSq;
  uint32_t rc_id = 0;  ///< 20 bits, of the request

  static Drop read(const std::byte* p, size_t avail, Atah& h) {
    if (avail < kSize) [[unlikely]]
      return Drop::kTruncatedHeader;
    const uint64_t w = load_be64(p);
    h.opcode = static_cast<TaOpcode>(w >> 56);
    h.sv = (w >> 51 & 1) != 0;
    h.poison = (w >> 50 & 1) != 0;
    h.tassn = Tassn(static_cast<uint32_t>(w >> 32 & 0xFFFF));
    h.rspst = static_cast<uint8_t>(w >> 29 & 7);
    h.rspinfo = static_cast<uint8_t>(w >> 24 & 31);
    h.rc_type = static_cast<uint8_t>(w >> 20 & 3);
    h.rc_id = static_cast<uint32_t>(w & 0xFFFFF);
    return (w >> 48 & 0xC0) != 0 ? Drop::kBadTaVersion : Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be64(p, uint64_t{static_cast<uint8_t>(opcode)} << 56 | uint64_t{sv} << 51 | uint64_t{poison} << 50 |
                      uint64_t{tassn.value()} << 32 | uint64_t{rspst & 7u} << 29 |
                      uint64_t{rspinfo & 31u} << 24 | uint64_t{rc_type & 3u} << 20 | (rc_id & 0xFFFFF));
  }
  bool operator==(const Atah&) const = default;
};

struct AtahCompact {
  static constexpr size_t kSize = 4;
  static constexpr uint8_t kOk = 0, kAuthenticationFailed = 1;

  TaOpcode opcode = TaOpcode::kTaack;
  uint8_t status = kOk;  ///< 2 bits
  bool poison = false;
  Tassn tassn;

  static Drop read(const std::byte* p, size_t avail, AtahCompact& h) {
    if (avail < kSize) return Drop::kTruncatedHeader;
    const uint32_t w = load_be32(p);
    h.opcode = static_cast<TaOpcode>(w >> 24);
    h.status = static_cast<uint8_t>(w >> 20 & 3);
    h.poison = (w >> 18 & 1) != 0;
    h.tassn = Tassn(w & 0xFFFF);
    return (w >> 16 & 0xC0) != 0 ? Drop::kBadTaVersion : Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be32(p, uint32_t{static_cast<uint8_t>(opcode)} << 24 | uint32_t{status & 3u} << 20 |
                      uint32_t{poison} << 18 | tassn.value());
  }
  bool operator==(const AtahCompact&) const = default;
};

}  // namespace ub::wire
