// SPDX-License-Identifier: Apache-2.0
//
// The UDP ports of a NIC that the fabric carries: the well-known one, and that of its first block of ids, where an
// import asks who has an id (docs/identity.md). The block is the same for all NICs, each of which has an address of its
// own, so that the fabric need not look for it.
#pragma once

#include <array>
#include <cstdint>

#include "lib/transport/wire/id_port.h"
#include "lib/transport/wire/network_header.h"

namespace ub::fabric {

inline constexpr uint32_t kIdBlock = 3;
inline constexpr std::array<uint16_t, 2> kUdpPorts = {wire::kUbUdpPort, wire::port_of_block(kIdBlock)};

}  // namespace ub::fabric
