// SPDX-License-Identifier: Apache-2.0
//
// What happened last in an instance, as sentences with times (lib/transport/looking/last_notes.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataplane/stats_page.h"

namespace ub::tools {

// One object for each: "at" (seconds since 1970), "until" and "times" (it was said so often in a row), "stage", "text".
nlohmann::ordered_json events_json(const std::vector<StatsNote>&);
// "13:05:41.123456  channel 3 is now open", in local time; "(7 times, until 13:05:42.000001)" where it was said more
// often.
std::vector<std::string> event_lines(const std::vector<StatsNote>&);

}  // namespace ub::tools
