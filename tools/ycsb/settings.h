// SPDX-License-Identifier: Apache-2.0
//
// How a workload is run and measured, out of its properties; what it is stands in spec.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ycsb/properties.h"

namespace ub::ycsb {

struct Settings {
  uint32_t threads = 1;
  uint32_t window = 16;      // requests in flight for each thread
  double target = 0;         // operations each second, of all threads together; 0: no limit
  uint64_t max_seconds = 0;  // 0: no limit
  bool operation_latency = true, intended_latency = false;  // which of the two is told
  std::vector<double> percentiles;                          // ascending
  double status_interval_s = 10;
  bool write_logs = false;  // HdrHistogram logs, one for each name of latencies
  std::string log_path;     // what the names of their files begin with
};

// ToolError (kExitUsage): a property has a bad value.
Settings read_settings(const Properties& properties);

}  // namespace ub::ycsb
