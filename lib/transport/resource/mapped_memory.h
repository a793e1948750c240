// SPDX-License-Identifier: Apache-2.0
//
// Memory of other instances of this host that the host has mapped, because its owner allows it. Requests to it need no
// packets (ta/mapped_requests.h, docs/same-host-design.md).
#pragma once

#include "lib/transport/core_state.h"

namespace ub {

// kInvalid: no memory, or the range wraps. kNoMemory: the table is full.
Status add_mapped(CoreState& s, const MappedConfig& config, uint32_t* handle);
Status remove_mapped(CoreState& s, uint32_t handle);

// The memory of the range at that instance, if the element of this application may access it in that way (one of
// kAccessRead, kAccessWrite, kAccessAtomic); else nullptr. `*gate` is the host's name for it.
std::byte* mapped_memory(CoreState& s, Owner owner, const InstanceId& instance, const Wqe& wqe, uint8_t access,
                         void** gate);

}  // namespace ub
