// SPDX-License-Identifier: Apache-2.0
// network_header.h - Ethernet II, IPv4 or IPv6, and UDP around a UB packet (UBoE); the headers that a sender stamps
// onto each packet, which can also be those of cna_packet.h.
// UB Base Specification Rev 2.0, 5.2.3 and appendix E: no IP options or extension headers, no fragments, DF
// set, UDP checksum 0, lengths that reach through the ICRC. The reader believes no length it has not
// compared. Any UDP destination port is accepted: instances listen on various ports, the caller
// demultiplexes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/transport/addresses.h"
#include "lib/transport/wire/drop.h"

namespace ub::wire {

using ub::Endpoint;
using ub::IpAddress;
using ub::MacAddress;

inline constexpr uint16_t kUbUdpPort = 4792;  ///< "unified-bus"
inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86DD;
inline constexpr uint16_t kEtherTypeVlan = 0x8100;
inline constexpr uint16_t kEtherTypeUb = 0x88B5;  ///< local experimental; carries LPH + NTH

inline constexpr size_t kEthSize = 14;
inline constexpr size_t kMinEthFrame = 60;  ///< Ethernet fills shorter frames up with bytes that mean nothing
inline constexpr size_t kVlanSize = 4;
inline constexpr size_t kIpv4Size = 20;
inline constexpr size_t kIpv6Size = 40;
inline constexpr size_t kUdpSize = 8;

/// ECN code points (6.6): what a hop may write into a data packet.
inline constexpr uint8_t kEcnNotCapable = 0;
inline constexpr uint8_t kEcnEct1 = 1;
inline constexpr uint8_t kEcnEct0 = 2;
inline constexpr uint8_t kEcnCe = 3;

/// Where the parts of a received frame are. Pointers are into the frame. They do not lie side by side: a
/// compiler would store two neighbours at once, and the caller, who reads them next, would wait for that
/// store to retire.
struct NetHeader {
  const std::byte* tph;  ///< first byte after UDP
  Endpoint src;
  uint8_t tos;  ///< type of service, or traffic class: DSCP and ECN
  bool v6;
  const std::byte* l3;  ///< IP header: where the ICRC's coverage starts
  Endpoint dst;
  const std::byte* end;  ///< first byte of the ICRC; tph <= end

  uint8_t dscp() const { return tos >> 2; }
  uint8_t ecn() const { return tos & 3; }
  /// Did a hop say that it is congested? A little or severely, as FECN has it (6.6); plain IP knows the latter alone.
  bool met_congestion() const { return (tos & 1) != 0; }
  size_t tp_size() const { return static_cast<size_t>(end - tph); }
};

/// Reads Ethernet II (one 802.1Q tag allowed), IPv4 or IPv6, UDP. Bytes behind the IP packet are Ethernet
/// padding and ignored. The ICRC is not checked here: see icrc_matches.
[[nodiscard]] Drop parse_network(std::span<const std::byte> eth_frame, NetHeader& out);

/// Whether the ICRC at net.end fits the packet.
[[nodiscard]] bool icrc_matches(const NetHeader& net);

/// What lies between Ethernet and the transport header.
enum class NetForm : uint8_t {
  kIpv4,   ///< IPv4, UDP
  kIpv6,   ///< IPv6, UDP
  kCna24,  ///< LPH, NTH24 (cna_packet.h)
};

/// The network headers of one direction of one path, built once and stamped onto each packet.
struct NetTemplate {
  static constexpr size_t kMaxSize = kEthSize + kIpv6Size + kUdpSize;
  static constexpr size_t kSizeV4 = kEthSize + kIpv4Size + kUdpSize;

  std::array<std::byte, kMaxSize> bytes{};
  uint8_t size = 0;               ///< 42 for IPv4, 62 for IPv6, 28 for CNA
  NetForm form = NetForm::kIpv4;
  uint32_t checksum_partial = 0;  ///< one's complement sum of the constant IPv4 header words

  bool v6() const { return form == NetForm::kIpv6; }
  uint8_t dscp() const;

  /// IPv4 if both addresses are, else IPv6. TTL or hop limit 64, IPv4 ID 0, DF.
  void init(const MacAddress& src_mac, const MacAddress& dst_mac, const Endpoint& src, const Endpoint& dst,
            uint8_t dscp);

  /// Writes the headers for a UDP payload (TPH to ICRC, inclusive) of that many bytes and returns their size. With CNA
  /// the code point is that of FECN. The caller keeps kUdpSize + udp_payload_len (IPv4: + kIpv4Size) below 65536.
  size_t write(std::byte* frame, size_t udp_payload_len, uint8_t ecn) const;
};

}  // namespace ub::wire
