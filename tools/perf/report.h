// SPDX-License-Identifier: Apache-2.0
//
// Tables with the columns of perftest, and the same as JSON.
#pragma once

#include "tools/common/peer.h"
#include "tools/common/probe.h"
#include "tools/perf/options.h"

namespace ub::tools {

// `row`: what measure_latency or measure_bandwidth returned.
void print_table_head(const Options&);
void print_row(const Options&, const Json& row);

std::string describe_probe(const C2cProbe&);
Json probe_json(const C2cProbe&);

// Adds up both directions.
Json sum_of_rows(const Json& a, const Json& b);

}  // namespace ub::tools
