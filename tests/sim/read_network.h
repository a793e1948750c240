// SPDX-License-Identifier: Apache-2.0
//
// What lies in front of RTPH, whether a frame is one of UBoE or has UB's own network header.
#pragma once

#include <span>

#include "lib/impair/congestion_mark.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/network_header.h"

namespace ub::sim {

// Like wire::parse_network(). Of a frame with a link header there are no addresses, and its CCI stands as a code point.
inline bool read_network(std::span<const std::byte> frame, wire::NetHeader& net) {
  if (!wire::has_link_header(frame)) return wire::parse_network(frame, net) == wire::Drop::kNone;
  wire::CnaPacket packet;
  if (wire::parse_cna(frame, packet) != wire::Drop::kNone) return false;
  wire::Cci cci;
  net = {};
  net.tph = packet.tph;
  net.tos = wire::Cci::unpack(packet.cci, cci) ? congestion_code(cci) : wire::kEcnNotCapable;
  net.l3 = packet.nth;
  net.end = packet.end;
  return true;
}

// The ICRC that fits the bytes of such a frame.
inline uint32_t icrc_of(std::span<const std::byte> frame, const wire::NetHeader& net) {
  const auto covered = static_cast<size_t>(net.end - net.l3);
  if (wire::has_link_header(frame)) return wire::icrc_compute_nth24(net.l3, covered);
  return wire::icrc_compute(net.l3, covered, net.v6);
}

}  // namespace ub::sim
