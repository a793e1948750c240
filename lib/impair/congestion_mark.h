// SPDX-License-Identifier: Apache-2.0
// congestion_mark.h - what a congested hop does to a frame (UB Base Specification Rev 2.0, 6.6; RFC 3168).
#pragma once

#include <span>

#include "lib/base/bytes.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

/// Writes the code point of a mark into a frame whose sender allows that; false: it does not. The ICRC does not cover
/// it.
inline bool mark_congestion(std::span<std::byte> frame, uint8_t code = wire::kEcnCe) {
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
