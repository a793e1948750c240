// SPDX-License-Identifier: Apache-2.0
//
// What is said of channels and their paths: words for what they are, all of it as JSON, and as the text of
// `urma_admin show channels`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataplane/stats_page.h"

namespace ub::tools {

const char* channel_state(uint8_t state);
std::string lane_name(const StatsChannel&);
const char* transport_name(const StatsChannel&);
const char* retransmission_name(const StatsChannel&);
// "10.0.0.1:4792", "[fd00::1]:4792".
std::string endpoint_text(const uint8_t (&ip)[16], uint16_t port);
// Those of this channel, in order.
std::vector<StatsPath> paths_of(const StatsReport&, const StatsChannel&);

std::string ip_text(const uint8_t (&bytes)[16]);
// Each channel with its `counts` and its `paths`.
nlohmann::ordered_json channels_json(const StatsReport&);
// A line for each channel, and below it one for each of its paths if it has several. `all`: with counts that are 0
// everywhere.
void print_channels(const StatsReport&, bool all);

}  // namespace ub::tools
