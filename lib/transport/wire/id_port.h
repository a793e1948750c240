// SPDX-License-Identifier: Apache-2.0
// id_port.h - the UDP port that says who may give out an id of a host. The ids of jettys, JFS, JFR and groups of all
// instances of one EID are one space of 20 bits. Whoever has bound the port of an id at the address of the EID may give
// it out, and hears of it when somebody elsewhere looks for it. The same for token ids, which have ports of blocks only.
// SoftUB's own; docs/identity.md tells why.
#pragma once

#include <cstdint>

#include "lib/transport/addresses.h"

namespace ub::wire {

inline constexpr uint32_t kIdsOfBlock = 1024;  ///< dynamic ids have a port for so many
inline constexpr uint32_t kFirstIdBlock = kFirstDynamicId / kIdsOfBlock;
inline constexpr uint32_t kIdBlocks = kIdSpace / kIdsOfBlock;  ///< numbers kFirstIdBlock to kIdBlocks - 1 are in use

inline constexpr uint16_t kBlockPorts = 61440;     ///< plus the number of a block
inline constexpr uint16_t kSingleIdPorts = 62464;  ///< plus an id
static_assert(kBlockPorts + kIdBlocks <= kSingleIdPorts && kSingleIdPorts + kFirstDynamicId - 1 == UINT16_MAX);

constexpr uint16_t port_of_block(uint32_t block) { return static_cast<uint16_t>(kBlockPorts + block); }
constexpr uint16_t port_of_id(uint32_t id) {
  return id < kFirstDynamicId ? static_cast<uint16_t>(kSingleIdPorts + id) : port_of_block(id / kIdsOfBlock);
}
/// May that port be one of an id?
constexpr bool is_id_port(uint16_t port) { return port >= kBlockPorts; }

}  // namespace ub::wire
