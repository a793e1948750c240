// SPDX-License-Identifier: Apache-2.0
//
// An element of transport.path_map.
#pragma once

#include <optional>
#include <string>

#include "lib/transport/wire/network_header.h"

namespace ub {

// "PEER=LOCAL>REMOTE", three IP addresses of one family: channels to PEER also take the path from LOCAL to REMOTE.
struct PathMapping {
  wire::IpAddress peer, local, remote;
  bool operator==(const PathMapping&) const = default;
};
std::optional<PathMapping> parse_path_mapping(const std::string& text);

}  // namespace ub
