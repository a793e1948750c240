// SPDX-License-Identifier: Apache-2.0
// congestion_mark.h - what a congested hop does to a frame (UB Base Specification Rev 2.0, 5.3.5, 6.6; RFC 3168).
#pragma once

#include <span>

#include "lib/base/bytes.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

/// The two bits of congestion of a frame: its ECN code point, or what its CCI says in these terms: that a hop marked it
/// (11), that it asks for more (01), that it only may be marked (10), or not even that.
inline uint8_t congestion_code(const wire::Cci& cci) {
  if (cci.mode != wire::CciMode::kCaqm) return cci.fecn;
  if (!cci.enable) return wire::kEcnNotCapable;
  return cci.congested ? wire::kEcnCe : cci.increase ? wire::kEcnEct1 : wire::kEcnEct0;
}

/// Makes the CCI say it. One of C-AQM keeps its hint only where it asks for more.
inline void set_congestion_code(wire::Cci& cci, uint8_t code) {
  if (cci.mode != wire::CciMode::kCaqm) {
    cci.fecn = code;
    return;
  }
  cci.congested = code == wire::kEcnCe;
  cci.increase = code == wire::kEcnEct1;
  if (!cci.increase) cci.hint = 0;
}

/// Writes the code point of a mark into a frame whose sender allows that; false: it does not. The ICRC does not cover
/// it.
inline bool mark_congestion(std::span<std::byte> frame, uint8_t code = wire::kEcnCe) {
  if (wire::Cci cci; wire::read_cci(frame, cci)) {
    if (congestion_code(cci) == wire::kEcnNotCapable) return false;
    set_congestion_code(cci, code);
    wire::write_cci(frame.data(), cci);
    return true;
  }
  wire::NetHeader net;
  if (wire::parse_network(frame, net) != wire::Drop::kNone || net.ecn() == wire::kEcnNotCapable) return false;
  std::byte* ip = frame.data() + (net.l3 - frame.data());
  if (net.v6) {
    ip[1] = (ip[1] & std::byte{0xCF}) | std::byte{code} << 4;
    return true;
  }
  ip[1] = (ip[1] & std::byte{0xFC}) | std::byte{code};
  uint32_t sum = 0;
  for (size_t i = 0; i < wire::kIpv4Size; i += 2) sum += i == 10 ? 0 : load_be16(ip + i);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  store_be16(ip + 10, static_cast<uint16_t>(~sum));
  return true;
}

}  // namespace ub
