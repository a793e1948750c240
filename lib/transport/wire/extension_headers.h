// SPDX-License-Identifier: Apache-2.0
// extension_headers.h - the headers between BTAH or ATAH and the payload. UB Base Specification Rev 2.0, 7.2.3. read()
// takes exactly kSize bytes; the caller has checked that they are there (transaction_packet.cc does so once for all
// headers of a packet). The structs have no default values, so that a decoder need not clear what it does not fill in.
// Initialise a struct with {} to clear it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"

namespace ub::wire {

inline constexpr uint32_t kTokenIdMask = 0xFFFFF;  ///< TokenID, TCID, RCID: 20 bits

/// Memory address.
struct Maetah {
  static constexpr size_t kSize = 16;

  uint64_t address;
  uint32_t token_id;  ///< 20 bits
  uint32_t length;    ///< bytes of the whole segment, the same in each of its packets

  static Maetah read(const std::byte* p) {
    return {load_be64(p), load_be32(p + 8) >> 8 & kTokenIdMask, load_be32(p + 12)};
  }
  void write(std::byte* p) const {
    store_be64(p, address);
    store_be32(p + 8, (token_id & kTokenIdMask) << 8);
    store_be32(p + 12, length);
  }
  bool operator==(const Maetah&) const = default;
};

/// Memory address of a load or store: 64-byte aligned, the low six bits carry order and length.
struct MaetahCompact {
  static constexpr size_t kSize = 12;

  uint64_t address;       ///< multiple of 64
  uint8_t affinity_hint;  ///< 2 bits
  bool strong_order;
  uint8_t length_code;  ///< 3 bits: 64 << code bytes
  uint32_t token_id;    ///< 20 bits

  uint32_t length() const { return 64u << length_code; }

  static MaetahCompact read(const std::byte* p) {
    const uint64_t w = load_be64(p);
    return {w & ~uint64_t{63}, static_cast<uint8_t>(w >> 4 & 3), (w >> 3 & 1) != 0, static_cast<uint8_t>(w & 7),
            load_be32(p + 8) & kTokenIdMask};
  }
  void write(std::byte* p) const {
    store_be64(p, (address & ~uint64_t{63}) | uint64_t{affinity_hint & 3u} << 4 | uint64_t{strong_order} << 3 |
                      (length_code & 7u));
    store_be32(p + 8, token_id & kTokenIdMask);
  }
  bool operator==(const MaetahCompact&) const = default;
};

/// Mtetah::tc_type.
inline constexpr uint8_t kTcTypeQueue = 1;  ///< a receive queue (0 reads the same)
inline constexpr uint8_t kTcTypeGroup = 2;  ///< a group of receive queues

/// Message target.
struct Mtetah {
  static constexpr size_t kSize = 4;

  uint8_t hint;     ///< groups only
  uint8_t tc_type;  ///< kTcType*
  uint32_t tc_id;   ///< 20 bits

  static Mtetah read(const std::byte* p) {
    const uint32_t w = load_be32(p);
    return {static_cast<uint8_t>(w >> 24), static_cast<uint8_t>(w >> 20 & 3), w & kTokenIdMask};
  }
  void write(std::byte* p) const {
    store_be32(p, uint32_t{hint} << 24 | (tc_type & 3u) << 20 | (tc_id & kTokenIdMask));
  }
  bool operator==(const Mtetah&) const = default;
};

/// Token value.
struct Tvetah {
  static constexpr size_t kSize = 4;
  uint32_t token_value;

  static Tvetah read(const std::byte* p) { return {load_be32(p)}; }
  void write(std::byte* p) const { store_be32(p, token_value); }
  bool operator==(const Tvetah&) const = default;
};

/// User-defined data.
struct Udetah {
  static constexpr size_t kSize = 4;
  uint32_t ud;

  static Udetah read(const std::byte* p) { return {load_be32(p)}; }
  void write(std::byte* p) const { store_be32(p, ud); }
  bool operator==(const Udetah&) const = default;
};

/// Opaque tag of a Read, echoed in its response.
struct Taidetah {
  static constexpr size_t kSize = 4;
  uint16_t taid;

  static Taidetah read(const std::byte* p) { return {load_be16(p + 2)}; }
  void write(std::byte* p) const { store_be32(p, taid); }
  bool operator==(const Taidetah&) const = default;
};

/// Where this packet's data belongs inside its transaction.
struct Ofstetah {
  static constexpr size_t kSize = 4;
  uint32_t offset_kib;  ///< 24 bits, in units of 1024 bytes

  static Ofstetah read(const std::byte* p) { return {load_be32(p) & 0xFFFFFF}; }
  void write(std::byte* p) const { store_be32(p, offset_kib & 0xFFFFFF); }
  bool operator==(const Ofstetah&) const = default;
};

/// Immediate data.
struct Immetah {
  static constexpr size_t kSize = 16;

  uint64_t immediate;    ///< Send with invalidate: TokenID in the upper, TokenValue in the lower 32 bits
  uint32_t token_value;  ///< Write with immediate only: of the Jetty
  uint32_t msg_length;   ///< Write with immediate only: bytes written in total

  static Immetah read(const std::byte* p) { return {load_be64(p), load_be32(p + 8), load_be32(p + 12)}; }
  void write(std::byte* p) const {
    store_be64(p, immediate);
    store_be32(p + 8, token_value);
    store_be32(p + 12, msg_length);
  }
  bool operator==(const Immetah&) const = default;
};

/// Notify word, written after all data of the transaction.
struct Ntfetah {
  static constexpr size_t kSize = 24;

  uint64_t address;
  uint32_t token_id;     ///< 20 bits
  uint32_t token_value;  ///< reserved without TV_EN
  uint64_t data;

  static Ntfetah read(const std::byte* p) {
    return {load_be64(p), load_be32(p + 8) >> 8 & kTokenIdMask, load_be32(p + 12), load_be64(p + 16)};
  }
  void write(std::byte* p) const {
    store_be64(p, address);
    store_be32(p + 8, (token_id & kTokenIdMask) << 8);
    store_be32(p + 12, token_value);
    store_be64(p + 16, data);
  }
  bool operator==(const Ntfetah&) const = default;
};

/// The byte-enable bitmap. It is one big-endian integer that has a bit for each of the first `enables` bytes of the
/// payload, so payload byte 0 is the lowest bit of the last byte. The bytes behind those are valid.
struct BeetahView {
  const std::byte* bits;
  uint32_t enables;  ///< N: 64, 128, 256, 512 or 1024

  static constexpr uint32_t kMaxEnables = 1024;
  /// How many enables a payload of this length has; 0: no payload is so long.
  static constexpr uint32_t enables_of(uint32_t length) {
    if (length > kMaxEnables) return kMaxEnables;
    return length >= 64 && (length & (length - 1)) == 0 ? length : 0;
  }

  uint32_t size() const { return enables / 8; }
  /// Of a byte that has an enable.
  bool enabled(uint32_t payload_byte) const {
    return (load_u8(bits + size() - 1 - payload_byte / 8) >> (payload_byte % 8) & 1) != 0;
  }
  /// The bits of payload bytes 64*index to 64*index+63. Byte 64*index is the least significant bit.
  uint64_t word(uint32_t index) const { return load_be64(bits + size() - 8 * (index + 1)); }
  static void store_word(std::byte* beetah, uint32_t enables, uint32_t index, uint64_t word) {
    store_be64(beetah + enables / 8 - 8 * (index + 1), word);
  }
};

/// Management.
struct Mgmtetah {
  static constexpr size_t kSize = 4;

  uint8_t sub_code;  ///< 4 bits
  uint8_t code;      ///< 3 bits
  bool rsp;
  uint8_t status;
  uint16_t pdu_length;  ///< 12 bits

  static Mgmtetah read(const std::byte* p) {
    const uint32_t w = load_be32(p);
    return {static_cast<uint8_t>(w >> 28), static_cast<uint8_t>(w >> 25 & 7), (w >> 24 & 1) != 0,
            static_cast<uint8_t>(w >> 16), static_cast<uint16_t>(w & 0xFFF)};
  }
  void write(std::byte* p) const {
    store_be32(p, (sub_code & 15u) << 28 | (code & 7u) << 25 | uint32_t{rsp} << 24 | uint32_t{status} << 16 |
                      (pdu_length & 0xFFFu));
  }
  bool operator==(const Mgmtetah&) const = default;
};

}  // namespace ub::wire
