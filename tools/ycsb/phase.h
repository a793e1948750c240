// SPDX-License-Identifier: Apache-2.0
//
// A phase of the benchmark: the records are inserted (load), or the operations of the workload are run. It has threads
// of its own; the caller's thread waits for them, and tells meanwhile what happened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tools/ycsb/latencies.h"
#include "tools/ycsb/settings.h"
#include "tools/ycsb/spec.h"
#include "tools/ycsb/stores/store.h"
#include "tools/ycsb/thread_clock.h"

namespace ub::ycsb {

struct PhaseOptions {
  bool load = false;
  bool whole_records = false;  // the store has no single fields
  bool status = false;         // print a line in each interval
};

struct PhaseResult {
  bool load = false;
  double seconds = 0;
  uint64_t operations = 0;  // that ended, well or badly
  std::unique_ptr<Latencies> latencies = std::make_unique<Latencies>();
  uint64_t checked = 0, wrong = 0;  // records, with dataintegrity=true
  std::string first_wrong_key, first_error;
  std::unique_ptr<Histogram> draw_ns = std::make_unique<Histogram>();  // what it takes to draw an operation: samples
};

// ToolError: the store cannot be reached or is lost, or a log cannot be written. When the program is told to stop, the
// result is what was done until then.
PhaseResult run_phase(const Spec& spec, const Settings& settings, const PhaseOptions& options, Backend& backend,
                      const TimeBase& time);

}  // namespace ub::ycsb
