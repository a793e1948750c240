// SPDX-License-Identifier: Apache-2.0
//
// The paths of channels besides that of their set-up, as transport.paths and transport.path_map ask for them: sockets
// with source ports of their own, and pairs of addresses (docs/paths-design.md).
#pragma once

#include <string>
#include <vector>

#include "dataplane/config.h"
#include "dataplane/udp_port.h"
#include "lib/transport/core_types.h"

namespace ub {

// Opens the sockets that are needed, and lists the paths. False: `*error` says why: an entry that is none, more than a
// channel or the Core has room for, or a socket that cannot be had.
bool open_extra_paths(const TransportConfig& config, UdpPort& udp, std::vector<ExtraPath>* paths, std::string* error);

}  // namespace ub
