// SPDX-License-Identifier: Apache-2.0
//
// One swarm run: faults first (safety), then none (liveness).
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/options.h"
#include "tests/sim/reached.h"

namespace ub::sim {

class World;

struct RunResult {
  std::string failure;      // empty: all promises were kept
  std::string last_events;  // of all nodes, before a failure
  uint64_t trace_hash = 0;
  uint64_t events = 0;
  uint64_t succeeded = 0, failed = 0, lost = 0;  // requests
  uint64_t accesses = 0, refused_accesses = 0, lost_accesses = 0;  // loads and stores
  double virtual_seconds = 0;
  StateSet states;  // if it was asked for
};

struct RunWishes {
  bool verbose = false;  // every packet, post and completion
  bool states = false;   // which ones are reached
  std::string record = {};  // each Core is recorded in a file whose name begins so
};

RunResult run_scenario(const Options&, RunWishes = {});

// What has become of this world so far.
RunResult result_of(const World&);

}  // namespace ub::sim
