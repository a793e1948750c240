// SPDX-License-Identifier: Apache-2.0
// id_port.h - the UDP port that says who may give out an id of a host. The ids of jettys, JFSs, JFRs and groups of all
// instances of one EID are one space of 20 bits. The instance that has bound the port of an id at the address of the
// EID may give the id out, and hears when somebody elsewhere looks for it. Token ids work in the same way; those of
// single ids stand for names (lib/base/name_entry.h). This is SoftUB's own; docs/identity.md tells why.
#pragma once

#include <cstdint>

#include "lib/transport/addresses.h"

namespace ub::wire {

inline constexpr uint32_t kIdsOfBlock = 1024;  ///< so many dynamic ids have one port
inline constexpr uint32_t kFirstIdBlock = kFirstDynamicId / kIdsOfBlock;
inline constexpr uint32_t kIdBlocks = kIdSpace / kIdsOfBlock;  ///< numbers kFirstIdBlock to kIdBlocks - 1 are in use

inline constexpr uint16_t kBlockPorts = 61440;     ///< the port of a block is this number plus that of the block
inline constexpr uint16_t kSingleIdPorts = 62464;  ///< the port of a single id is this number plus the id
static_assert(kBlockPorts + kIdBlocks <= kSingleIdPorts && kSingleIdPorts + kFirstDynamicId - 1 == UINT16_MAX);

constexpr uint16_t port_of_block(uint32_t block) { return static_cast<uint16_t>(kBlockPorts + block); }
constexpr uint16_t port_of_id(uint32_t id) {
  return id < kFirstDynamicId ? static_cast<uint16_t>(kSingleIdPorts + id) : port_of_block(id / kIdsOfBlock);
}
/// May the port belong to an id?
constexpr bool is_id_port(uint16_t port) { return port >= kBlockPorts; }

}  // namespace ub::wire
