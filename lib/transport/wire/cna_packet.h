// SPDX-License-Identifier: Apache-2.0
// cna_packet.h - what is around a packet of RTP on Ethernet where it has UB's own network header: type 0x88B5, LPH with
// CFG 7, NTH24 with NLP 2, and behind RTPH and the rest the ICRC. UB Base Specification Rev 2.0, 4.3.2.2.2, 5.2.2 and
// 5.3.5. Unlike UBoE it has a whole congestion control indicator (CCI). A frame has no length of its own: the wire must
// deliver it with the length that it was sent with. Packets of CTP are in compact_packet.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/transport/addresses.h"
#include "lib/transport/wire/drop.h"
#include "lib/transport/wire/link_header.h"
#include "lib/transport/wire/network_header.h"

namespace ub::wire {

inline constexpr size_t kCnaHeadersSize = kEthSize + LinkHeader::kSize + Nth24::kSize;

/// Where the parts of a received frame are. Pointers are into the frame.
struct CnaPacket {
  const std::byte* nth;  ///< where the ICRC's coverage starts
  const std::byte* tph;  ///< first byte after NTH24
  const std::byte* end;  ///< first byte of the ICRC; tph <= end
  uint32_t scna, dcna;
  uint16_t cci;
  uint8_t sl;  ///< service level
};

/// Reads a frame for which has_link_header() holds. kBadNlp: it is none of RTP. The ICRC is not checked here.
[[nodiscard]] Drop parse_cna(std::span<const std::byte> eth_frame, CnaPacket& out);
[[nodiscard]] bool icrc_matches(const CnaPacket& packet);

/// The address of a host in NTH24: the low 24 bits of its IP address.
constexpr uint32_t cna_of(const IpAddress& ip) {
  return uint32_t{ip.bytes[13]} << 16 | uint32_t{ip.bytes[14]} << 8 | ip.bytes[15];
}
/// Service level of a class of packets, and its virtual lane: eight of the sixteen, one for each class selector of
/// DSCP.
constexpr uint8_t service_level(uint8_t dscp) { return dscp >> 3; }
/// The headers of one direction of a channel of RTP.
[[nodiscard]] NetTemplate cna_template(const Endpoint& src, const Endpoint& dst, uint8_t dscp);

/// Replaces the CCI of a frame whose type in LPH is CFG 7.
void write_cci(std::byte* eth_frame, const Cci& cci);
/// Reads it. False: the frame is none with NTH24, or the mode is a reserved one.
[[nodiscard]] bool read_cci(std::span<const std::byte> eth_frame, Cci& out);

}  // namespace ub::wire
