// SPDX-License-Identifier: Apache-2.0
// link_header.h - LPH, the two compact network headers NTH16 and NTH24, and the congestion indicator CCI
// inside them. UB Base Specification Rev 2.0, 4.3.2.2.2, 5.2.1, 5.2.2, 5.3.2, 5.3.5. UBoE has none of these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/transport/wire/drop.h"

namespace ub::wire {

/// LPH packet types this project reads.
inline constexpr uint8_t kCfgIpv4 = 3;
inline constexpr uint8_t kCfgIpv6 = 4;
inline constexpr uint8_t kCfgNoncoherent = 6;  ///< NTH16, CTP
inline constexpr uint8_t kCfgCna24 = 7;        ///< NTH24, RTP or CTP
inline constexpr uint8_t kCfgLoadStore = 9;    ///< NTH16, no transport header, no ICRC

struct LinkHeader {
  static constexpr size_t kSize = 4;

  bool crd = false;
  bool ack = false;
  uint8_t crd_vl = 0;             ///< 4 bits
  uint8_t vl = 0;                 ///< 4 bits
  uint8_t cfg = 0;                ///< 4 bits, kCfg*
  bool rt_shortest_only = false;  ///< routing policy
  bool rt_per_packet = false;     ///< routing mode
  uint16_t plength = 0;           ///< 14 bits; 0 over Ethernet

  static Drop read(const std::byte* p, size_t avail, LinkHeader& h) {
    if (avail < kSize) return Drop::kTooShort;
    const uint32_t w = load_be32(p);
    h.crd = (w >> 31 & 1) != 0;
    h.ack = (w >> 30 & 1) != 0;
    h.crd_vl = static_cast<uint8_t>(w >> 26 & 15);
    h.vl = static_cast<uint8_t>(w >> 21 & 15);
    h.cfg = static_cast<uint8_t>(w >> 16 & 15);
    h.rt_shortest_only = (w >> 15 & 1) != 0;
    h.rt_per_packet = (w >> 14 & 1) != 0;
    h.plength = static_cast<uint16_t>(w & 0x3FFF);
    return Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be32(p, uint32_t{crd} << 31 | uint32_t{ack} << 30 | (crd_vl & 15u) << 26 | (vl & 15u) << 21 |
                      (cfg & 15u) << 16 | uint32_t{rt_shortest_only} << 15 | uint32_t{rt_per_packet} << 14 |
                      (plength & 0x3FFFu));
  }
  bool operator==(const LinkHeader&) const = default;
};

enum class CciMode : uint8_t { kCaqm = 0, kFecnRtt = 2, kFecn = 4 };

/// CCI, 16 bits. Fields that the mode does not have are ignored by pack() and 0 after unpack().
struct Cci {
  CciMode mode = CciMode::kCaqm;
  bool loc = false;        ///< congestion is at the last hop
  bool enable = false;     ///< CAQM
  bool congested = false;  ///< CAQM C
  bool increase = false;   ///< CAQM I
  uint8_t hint = 0;        ///< CAQM
  uint8_t fecn = 0;        ///< FECN modes: 0 not markable, 2 none, 1 light, 3 severe
  uint16_t timestamp = 0;  ///< FECN_RTT, 10 bits

  constexpr uint16_t pack() const {
    const uint32_t top = uint32_t{static_cast<uint8_t>(mode)} << 13 | uint32_t{loc} << 12;
    if (mode == CciMode::kCaqm)
      return static_cast<uint16_t>(top | uint32_t{enable} << 10 | uint32_t{congested} << 9 | uint32_t{increase} << 8 |
                                   hint);
    const uint32_t stamp = mode == CciMode::kFecnRtt ? (timestamp & 0x3FFu) << 2 : 0;
    return static_cast<uint16_t>(top | stamp | (fecn & 3u));
  }

  /// False for a reserved mode.
  static constexpr bool unpack(uint16_t v, Cci& c) {
    c = Cci{};
    c.loc = (v >> 12 & 1) != 0;
    switch (v >> 13) {
      case 0:
        c.mode = CciMode::kCaqm;
        c.enable = (v >> 10 & 1) != 0;
        c.congested = (v >> 9 & 1) != 0;
        c.increase = (v >> 8 & 1) != 0;
        c.hint = static_cast<uint8_t>(v);
        return true;
      case 2:
        c.mode = CciMode::kFecnRtt;
        c.timestamp = v >> 2 & 0x3FF;
        c.fecn = v & 3;
        return true;
      case 4:
        c.mode = CciMode::kFecn;
        c.fecn = v & 3;
        return true;
      default:
        return false;
    }
  }
  constexpr bool operator==(const Cci&) const = default;
};

struct Nth16 {
  static constexpr size_t kSize = 8;

  uint16_t scna = 0, dcna = 0;
  uint16_t cci = 0;
  uint8_t lbf = 0;
  uint8_t sl = 0;  ///< 4 bits
  bool mgmt = false;
  uint8_t nlp = 0;  ///< 3 bits; CFG 9: 0 = transaction header; CFG 6: 0 = CTPH, 1 = UPIH-16

  static Drop read(const std::byte* p, size_t avail, Nth16& h) {
    if (avail < kSize) return Drop::kTooShort;
    h.scna = load_be16(p);
    h.dcna = load_be16(p + 2);
    h.cci = load_be16(p + 4);
    h.lbf = load_u8(p + 6);
    const uint8_t b = load_u8(p + 7);
    h.sl = b >> 4;
    h.mgmt = (b & 8) != 0;
    h.nlp = b & 7;
    return h.nlp > 1 ? Drop::kBadNlp : Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be16(p, scna);
    store_be16(p + 2, dcna);
    store_be16(p + 4, cci);
    store_u8(p + 6, lbf);
    store_u8(p + 7, static_cast<uint8_t>((sl & 15) << 4 | mgmt << 3 | (nlp & 7)));
  }
  bool operator==(const Nth16&) const = default;
};

struct Nth24 {
  static constexpr size_t kSize = 10;
  static constexpr uint8_t kNlpCtp = 0, kNlpRtp = 2;

  uint32_t scna = 0, dcna = 0;  ///< 24 bits
  uint16_t cci = 0;
  uint8_t lbf = 0;
  uint8_t sl = 0;  ///< 4 bits
  uint8_t nlp = kNlpRtp;

  static Drop read(const std::byte* p, size_t avail, Nth24& h) {
    if (avail < kSize) return Drop::kTooShort;
    h.scna = load_be24(p);
    h.dcna = load_be24(p + 3);
    h.cci = load_be16(p + 6);
    h.lbf = load_u8(p + 8);
    h.sl = load_u8(p + 9) >> 4;
    h.nlp = load_u8(p + 9) & 7;
    return h.nlp != kNlpCtp && h.nlp != kNlpRtp ? Drop::kBadNlp : Drop::kNone;
  }
  void write(std::byte* p) const {
    store_be24(p, scna & 0xFFFFFF);
    store_be24(p + 3, dcna & 0xFFFFFF);
    store_be16(p + 6, cci);
    store_u8(p + 8, lbf);
    store_u8(p + 9, static_cast<uint8_t>((sl & 15) << 4 | (nlp & 7)));
  }
  bool operator==(const Nth24&) const = default;
};

}  // namespace ub::wire
