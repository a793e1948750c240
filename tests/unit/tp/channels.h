// SPDX-License-Identifier: Apache-2.0
// channels.h - the state of the transport layer and a clock, in the hands of a test; no other layer is there.
#pragma once

#include <memory>

#include "lib/transport/tp/state.h"
#include "tests/unit/transport/small_tables.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace ub::tp {

struct Channels {
  explicit Channels(const CoreConfig& config = small_tables()) : memory_(bytes(config)) {
    s->config = config;
    Arena arena(memory_.get());
    lay_out(*s, arena);
  }
  uint64_t count(Counter c) const { return s->counters[c]; }

  std::unique_ptr<State> s = std::make_unique<State>();
  Instant now{1'000'000'000};

 private:
  static void lay_out(State& s, Arena& arena) {
    lay_out_channels(s, arena);
    s.lay_out_ranges(arena);
  }
  static size_t bytes(const CoreConfig& config) {
    auto measured = std::make_unique<State>();
    measured->config = config;
    Arena arena(nullptr);
    lay_out(*measured, arena);
    return arena.used_bytes();
  }
  ZeroedMemory memory_;
};

}  // namespace ub::tp
