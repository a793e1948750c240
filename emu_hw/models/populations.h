// SPDX-License-Identifier: Apache-2.0
//
// How many there are: N applications of a host, each of which talks to M remote hosts.
#pragma once

#include <cstdint>

#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

inline uint64_t applications(const Parameters& p) { return p.active_connections; }
inline uint64_t remote_hosts(const Parameters& p) {
  return p.remote_hosts == 0 ? p.active_connections : p.remote_hosts;
}

}  // namespace ub::emu
