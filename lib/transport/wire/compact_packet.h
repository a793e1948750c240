// SPDX-License-Identifier: Apache-2.0
// compact_packet.h - what is around a packet of CTP on Ethernet: type 0x88B5, LPH with CFG 7, NTH24, CTPH, and the ICRC
// at its end. UB Base Specification Rev 2.0, 4.3.2.2.2, 5.2.2, 6.2.1. A frame has no length of its own: the wire must
// deliver it with the length that it was sent with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/bytes.h"
#include "lib/transport/addresses.h"
#include "lib/transport/wire/compact_header.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/network_header.h"

namespace ub::wire {

/// Where the parts of a received frame are. Pointers are into the frame.
struct CompactPacket {
  const std::byte* nth;   ///< where the ICRC's coverage starts
  const std::byte* rest;  ///< first byte after CTPH
  const std::byte* end;   ///< first byte of the ICRC; rest <= end
  uint32_t scna, dcna;
  CtpHeader ctp;

  std::span<const std::byte> body() const { return {rest, end}; }
};

/// Does the frame begin with LPH, and not with IP?
inline bool has_link_header(std::span<const std::byte> eth_frame) {
  return eth_frame.size() >= kEthSize && load_be16(eth_frame.data() + 12) == kEtherTypeUb;
}
/// Reads a frame for which has_link_header() holds. The ICRC is not checked here.
[[nodiscard]] Drop parse_compact(std::span<const std::byte> eth_frame, CompactPacket& out);
[[nodiscard]] bool icrc_matches(const CompactPacket& packet);

/// The address that an Ethernet header has for an endpoint until a port puts the real one there: a locally administered
/// one, made from the last four bytes of the IP address and the last one of the port.
MacAddress stand_in_mac(const Endpoint& endpoint);
/// The IPv4 address that a stand-in (6 bytes) was made from. Of an IPv6 address there are the last four bytes only.
inline IpAddress v4_of_stand_in(const std::byte* mac) { return IpAddress::from_v4(load_be32(mac + 1)); }

/// The headers of one direction of a channel, built once and stamped onto each packet.
class CompactTemplate {
 public:
  static constexpr size_t kSize = kEthSize + LinkHeader::kSize + Nth24::kSize + CtpHeader::kSize;

  /// The addresses in NTH24 are the TPNs of the channel's two ends.
  CompactTemplate(const Endpoint& src, const Endpoint& dst, uint32_t src_tpn, uint32_t dst_tpn);
  /// Writes kSize bytes.
  void write(std::byte* frame, uint8_t padding) const {
    std::memcpy(frame, bytes_.data(), kSize);
    CtpHeader{CtpOpcode::kData, padding, 0}.write(frame + kSize - CtpHeader::kSize);
  }

  /// The address that a received frame of kSize bytes at least was sent to.
  static uint32_t dcna_of(const std::byte* frame) { return load_be24(frame + kNthAt + 3); }
  /// Does a received frame, which begins with a link header, go on as the template of the channel's other end would?
  /// Only its padding, which is read, and its Ethernet addresses may be any.
  bool expects(const std::byte* frame, uint8_t* padding) const {
    constexpr uint8_t kPadding = 3 << 4;
    const std::byte* const ours = bytes_.data();
    const uint64_t addresses = load_be64(ours + kNthAt);  // SCNA and DCNA, 24 bits each, and CCI, which is 0
    const uint64_t expected = addresses << 24 | (addresses >> 24 & 0xFF'FFFF'0000);
    const uint8_t ctp = load_u8(frame + kSize - CtpHeader::kSize);
    *padding = ctp >> 4 & 3;
    return load_be64(frame + kNthAt) == expected && (ctp & ~kPadding) == 0 &&
           load_be32(frame + kEthSize) == load_be32(ours + kEthSize) &&
           load_be16(frame + kNthAt + 8) == load_be16(ours + kNthAt + 8);
  }

 private:
  static constexpr size_t kNthAt = kEthSize + LinkHeader::kSize;

  std::array<std::byte, kSize> bytes_{};
};

/// Pad bytes behind a payload, with `size_bytes` between CTPH and the end of the payload.
constexpr uint8_t compact_padding_for(size_t size_bytes) {
  return static_cast<uint8_t>(-(CtpHeader::kSize + size_bytes) & 3);
}

}  // namespace ub::wire
