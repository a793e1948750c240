// SPDX-License-Identifier: Apache-2.0
//
// Results, as YCSB prints them, and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/ycsb/latencies.h"
#include "tools/ycsb/phase.h"
#include "tools/ycsb/settings.h"

namespace ub::ycsb {

// fn(name, histogram) for the latencies that the settings want told.
template <class Fn>
void for_each_told(const Latencies& latencies, const Settings& settings, Fn fn) {
  latencies.for_each([&](const std::string& name, const LatencyHistogram& histogram) {
    const bool intended = name.starts_with("Intended-");
    if (intended ? settings.intended_latency : settings.operation_latency) fn(name, histogram);
  });
}

struct Moment {
  double elapsed_s, interval_s;
  uint64_t operations, of_interval;
  uint64_t total;  // UINT64_MAX: unknown
};

// One line on the standard error, with the latencies of the interval.
void print_status(const Moment& moment, const Latencies& interval, const Settings& settings);

// The lines "[NAME], what, value" on the standard output.
void print_result(const PhaseResult& result, const Settings& settings);

nlohmann::json result_json(const PhaseResult& result, const Settings& settings);

}  // namespace ub::ycsb
