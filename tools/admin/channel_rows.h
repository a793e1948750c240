// SPDX-License-Identifier: Apache-2.0
//
// What `urma_admin show channels` says: channels and their paths as JSON, and as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "dataplane/stats_page.h"

namespace ub::tools {

std::string ip_text(const uint8_t (&bytes)[16]);
// Each channel with its `counts` and its `paths`.
nlohmann::ordered_json channels_json(const StatsReport&);
// A line for each channel, and below it one for each of its paths if it has several. `all`: with counts that are 0
// everywhere.
void print_channels(const StatsReport&, bool all);

}  // namespace ub::tools
