// SPDX-License-Identifier: Apache-2.0
//
// Tables with the columns of perftest, and the same as JSON.
#pragma once

#include <softub_api.h>

#include <string>

#include "tools/common/peer.h"
#include "tools/common/probe.h"
#include "tools/perf/options.h"

namespace ub::tools {

// `row`: what measure_latency or measure_bandwidth returned.
void print_table_head(const Options&);
void print_row(const Options&, const Json& row);

std::string describe_probe(const C2cProbe&);
Json probe_json(const C2cProbe&);

// Which transport carried most of the packets between these two looks: "rtp", "ctp", "ctp with repeats"; "none": there
// were none.
std::string transport_between(const softub_transports_t& before, const softub_transports_t& after);
// Of all rows: "ctp", or "ctp (2 to 4096 bytes), rtp (8192 to 8388608 bytes)".
std::string describe_transports(const Json& rows);

// Adds up both directions.
Json sum_of_rows(const Json& a, const Json& b);

}  // namespace ub::tools
