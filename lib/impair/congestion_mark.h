// SPDX-License-Identifier: Apache-2.0
// congestion_mark.h - what a frame says of congestion, and how a hop changes it: the ECN code point of IP, or the CCI
// of UB's own network header (UB Base Specification Rev 2.0, 5.3.5, 6.6; RFC 3168). The ICRC covers neither.
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
  cci.enable = code != wire::kEcnNotCapable;
  cci.congested = code == wire::kEcnCe;
  cci.increase = code == wire::kEcnEct1;
  if (!cci.increase) cci.hint = 0;
}

/// A code point as a CCI of C-AQM. One that asks for more (01) asks for a packet of a length that it does not say: its
/// hint is the longest.
inline wire::Cci cci_of(uint8_t code) {
  wire::Cci cci{.hint = UINT8_MAX};
  set_congestion_code(cci, code);
  return cci;
}

inline void write_ecn(std::byte* ip, bool v6, uint8_t code) {
  if (v6) {
    ip[1] = (ip[1] & std::byte{0xCF}) | std::byte{code} << 4;
    return;
  }
  ip[1] = (ip[1] & std::byte{0xFC}) | std::byte{code};
  uint32_t sum = 0;
  for (size_t i = 0; i < wire::kIpv4Size; i += 2) sum += i == 10 ? 0 : load_be16(ip + i);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  store_be16(ip + 10, static_cast<uint16_t>(~sum));
}

/// Applies a rule, bool(wire::Cci&), to what the frame says, be it a CCI or a code point (cci_of). False: the rule says
/// that nothing is to be changed, or the frame has neither.
template <class Rule>
bool change_congestion(std::span<std::byte> frame, Rule rule) {
  wire::Cci cci;
  if (wire::read_cci(frame, cci)) {
    if (!rule(cci)) return false;
    wire::write_cci(frame.data(), cci);
    return true;
  }
  wire::NetHeader net;
  if (wire::parse_network(frame, net) != wire::Drop::kNone) return false;
  cci = cci_of(net.ecn());
  if (!rule(cci)) return false;
  write_ecn(frame.data() + (net.l3 - frame.data()), net.v6, congestion_code(cci));
  return true;
}

/// Writes the code point of a mark into a frame whose sender allows that; false: it does not.
inline bool mark_congestion(std::span<std::byte> frame, uint8_t code = wire::kEcnCe) {
  return change_congestion(frame, [code](wire::Cci& cci) {
    if (congestion_code(cci) == wire::kEcnNotCapable) return false;
    set_congestion_code(cci, code);
    return true;
  });
}

}  // namespace ub
