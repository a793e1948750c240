// SPDX-License-Identifier: Apache-2.0
//
// What a fabric counted, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "tools/fabric/config.h"
#include "tools/fabric/medium.h"
#include "tools/fabric/network.h"

namespace ub::fabric {

// A line for each of the paths, with what is wrong with it; below it what it counted, how many frames are under way and
// how many changes of it are to come, unless all that is nothing.
std::string paths_as_text(std::span<const PathId> paths, const Config&, Network&, Instant now);
// A line with all that the medium counted; empty: nothing.
std::string medium_as_text(const Medium&);

// {"seed": N, "links": [{"from", "to", "path", "impairments", "counters": {}, "under_way", "changes_to_come"}],
// "medium": {}}, with all paths and all counters. Paths count from 1.
nlohmann::json as_json(const Config&, Network&, const Medium&, Instant now);

}  // namespace ub::fabric
