// SPDX-License-Identifier: Apache-2.0
//
// How paths are named in files and commands:
//
//   a>b      all paths from NIC a to NIC b
//   a<>b     those in both directions
//   a>b/2    the second of several paths
//   *>b      those from every NIC to b; "*" stands for every NIC, on either side
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/fabric/config.h"
#include "tools/fabric/network.h"

namespace ub::fabric {

// The paths that `text` names, at least one. Throws ToolError, which says what there is.
std::vector<PathId> paths_named(std::string_view text, const Config& config);

// "a>b", and "a>b/2" where there are several paths.
std::string name_of(const PathId& id, const Config& config);

}  // namespace ub::fabric
