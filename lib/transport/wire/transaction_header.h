// SPDX-License-Identifier: Apache-2.0
// transaction_header.h - BTAH in front of every request and ATAH in front of every response, in their full (8
// B) and compact (4 B, load/store without transport) forms. UB Base Specification Rev 2.0, 7.2.1, 7.2.2.
// Neither carries the service mode: the channel knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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

/// Bytes 0-1 and 4-5 are bit fields in the places the wire has them, so that reading is copying.
struct Btah {
  static constexpr size_t kSize = 8;
  static constexpr size_t kCompactSize = 4;

  TaOpcode opcode = TaOpcode::kSend;
  bool ud_flag : 1 = false;  ///< UDETAH present
  uint8_t reserved1 : 1 = 0;
  bool poison : 1 = false;    ///< payload is known to be bad
  bool tv_en : 1 = false;     ///< TVETAH present
  uint8_t reserved2 : 2 = 0;  ///< EE_bits: written as non-TEE, ignored
  uint8_t version : 2 = 0;    ///< always 0
  Tassn tassn;
  bool alloc : 1 = false;      ///< wants a sequence context
  bool retry : 1 = false;      ///< retry of the transaction layer (never a retransmission)
  bool fce : 1 = false;        ///< completion event at the target
  bool mt_en : 1 = false;      ///< MTETAH present
  uint8_t odr : 3 = kOdrNone;  ///< kOdr*
  bool no_taack : 1 = false;   ///< CTP: do not answer
  uint8_t reserved3 : 4 = 0;   ///< on the wire the top of rc_id
  uint8_t rc_type : 2 = kRcTypeSq;
  bool e_bit : 1 = false;  ///< exclusive access
  uint8_t reserved4 : 1 = 0;
  uint32_t rc_id = 0;  ///< 20 bits

  /// Any opcode is read, reserved ones too: ta_is_known() tells.
  static Drop read(const std::byte* p, size_t avail, Btah& h) {
    if (avail < kSize) [[unlikely]]
      return Drop::kTruncatedHeader;
    const uint64_t narrow = load_le64(p) & kNarrow;
    std::memcpy(static_cast<void*>(&h), &narrow, sizeof narrow);
    h.tassn = Tassn(load_be16(p + 2));
    h.rc_id = load_be32(p + 4) & 0xFFFFF;
    return h.version != 0 ? Drop::kBadTaVersion : Drop::kNone;
  }
  void write(std::byte* p) const { store_be64(p, word()); }
  /// The header as a big-endian number.
  constexpr uint64_t word() const {
    return uint64_t{first()} << 32 | uint64_t{no_taack} << 31 | uint64_t{odr} << 28 | uint64_t{mt_en} << 27 |
           uint64_t{fce} << 26 | uint64_t{retry} << 25 | uint64_t{alloc} << 24 | uint64_t{e_bit} << 22 |
           uint64_t{rc_type} << 20 | (rc_id & 0xFFFFF);
  }
  static constexpr uint64_t kNumbers = 0xFFFF'000F'FFFF;        ///< in word(): TASSN and INI_RC_ID
  static constexpr uint64_t kToken = uint64_t{1} << (32 + 19);  ///< in word(): TV_EN

  /// The compact form has the first four bytes only; the other fields get their defaults.
  static Drop read_compact(const std::byte* p, size_t avail, Btah& h) {
    if (avail < kCompactSize) return Drop::kTruncatedHeader;
    h = Btah{};
    const uint16_t narrow = load_le16(p) & static_cast<uint16_t>(kNarrow);
    std::memcpy(static_cast<void*>(&h), &narrow, sizeof narrow);
    h.tassn = Tassn(load_be16(p + 2));
    return h.version != 0 ? Drop::kBadTaVersion : Drop::kNone;
  }
  void write_compact(std::byte* p) const { store_be32(p, first()); }

  bool operator==(const Btah&) const = default;

 private:
  static constexpr uint32_t kEeNonTee = 1;
  static constexpr uint64_t kNarrow = 0x70FF'0000'CDFF;  ///< bytes 0-5 without TASSN and reserved bits

  constexpr uint32_t first() const {
    return uint32_t{static_cast<uint8_t>(opcode)} << 24 | kEeNonTee << 20 | uint32_t{tv_en} << 19 |
           uint32_t{poison} << 18 | uint32_t{ud_flag} << 16 | tassn.value();
  }
};

static_assert(sizeof(Btah) == 12 && offsetof(Btah, tassn) == 2 && offsetof(Btah, rc_id) == 8);

/// 7.3.2: does the request ask for strong order? The reserved value counts as that.
inline bool is_strong(const Btah& request) { return (request.odr & kOdrExecutionMask) >= kOdrStrong; }

/// Bit fields as in Btah.
struct Atah {
  static constexpr size_t kSize = 8;

  TaOpcode opcode = TaOpcode::kTaack;
  uint8_t reserved1 : 2 = 0;
  bool poison : 1 = false;  ///< payload is known to be bad
  bool sv : 1 = false;      ///< tassn holds the SCID that was allocated
  uint8_t reserved2 : 2 = 0;
  uint8_t version : 2 = 0;  ///< always 0
  Tassn tassn;              ///< of the request
  uint8_t rspinfo : 5 = 0;
  uint8_t rspst : 3 = 0;      ///< response_status.h
  uint8_t reserved3 : 4 = 0;  ///< on the wire the top of rc_id
  uint8_t rc_type : 2 = kRcTypeSq;
  uint8_t reserved4 : 2 = 0;
  uint32_t rc_id = 0;  ///< 20 bits, of the request

  static Drop read(const std::byte* p, size_t avail, Atah& h) {
    if (avail < kSize) [[unlikely]]
      return Drop::kTruncatedHeader;
    const uint64_t narrow = load_le64(p) & kNarrow;
    std::memcpy(static_cast<void*>(&h), &narrow, sizeof narrow);
    h.tassn = Tassn(load_be16(p + 2));
    h.rc_id = load_be32(p + 4) & 0xFFFFF;
    return h.version != 0 ? Drop::kBadTaVersion : Drop::kNone;
  }
  void write(std::byte* p) const { store_be64(p, word()); }
  /// The header as a big-endian number.
  constexpr uint64_t word() const {
    return uint64_t{static_cast<uint8_t>(opcode)} << 56 | uint64_t{sv} << 51 | uint64_t{poison} << 50 |
           uint64_t{tassn.value()} << 32 | uint64_t{rspst} << 29 | uint64_t{rspinfo} << 24 | uint64_t{rc_type} << 20 |
           (rc_id & 0xFFFFF);
  }
  static constexpr uint64_t kNumbers = 0xFFFF'1F0F'FFFF;      ///< in word(): TASSN, RSPINFO and INI_RC_ID
  static constexpr uint64_t kTransaction = 0xFFFF'000F'FFFF;  ///< the same without RSPINFO
  bool operator==(const Atah&) const = default;

 private:
  static constexpr uint64_t kNarrow = 0x30FF'0000'CCFF;  ///< bytes 0-5 without TASSN and reserved bits
};
static_assert(sizeof(Atah) == 12 && offsetof(Atah, tassn) == 2 && offsetof(Atah, rc_id) == 8);

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
    store_be32(p, uint32_t{static_cast<uint8_t>(opcode)} << 24 | uint32_t{status & 3u} << 20 | uint32_t{poison} << 18 |
                      tassn.value());
  }
  bool operator==(const AtahCompact&) const = default;
};

}  // namespace ub::wire
