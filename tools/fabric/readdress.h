// SPDX-License-Identifier: Apache-2.0
//
// A UB packet with other addresses. The ICRC covers addresses and ports (UB Base Specification Rev 2.0, 5.3.7), so a
// fabric that stands between two NICs under addresses of its own has to write it anew. It carries over how far the old
// one was from the right one: a packet that was damaged before is as damaged behind, and its receiver drops it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/transport/wire/network_header.h"

namespace ub::fabric {

struct Route {
  Endpoint from, to;  // both IPv4 or both IPv6
};

// Room for the headers in front of a payload.
inline constexpr size_t kHeaderRoom = wire::NetTemplate::kMaxSize;

// `payload` is what a UDP socket received, with kHeaderRoom bytes in front of it. Returns the whole frame, with headers
// of the route `is`, for a payload that was sealed for the route `was`.
std::span<const std::byte> readdress(std::span<std::byte> payload, uint8_t tos, const Route& was, const Route& is);

}  // namespace ub::fabric
