// SPDX-License-Identifier: Apache-2.0
// test_state.h - the state of a Core without the Core: for tests that call the functions of one layer and look at what
// they changed.
#pragma once

#include <memory>

#include "lib/transport/core_state.h"
#include "tests/unit/transport/small_tables.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace ub {

struct TestState {
  explicit TestState(const CoreConfig& config = small_tables()) : memory_(bytes(config)) {
    s->config = config;
    s->prng = Prng(config.seed);
    Arena arena(memory_.get());
    lay_out(*s, arena);
    s->now = Instant{1'000'000'000};
  }
  uint64_t count(Counter c) const { return s->counters[c]; }
  /// Makes what lies behind the tables of ids look like an id and a token id: whoever looks there is found out. The
  /// memory is that of number 0, which is never given out, and of the first buckets of peers.
  void trap_behind_ids(ObjectKind kind, uint32_t record = 1) {
    s->ids[kIdSpace] = IdSlot{record, 0, kind};
    s->token_ids[kIdSpace] = TokenId{record, 0, true};
  }

  std::unique_ptr<CoreState> s = std::make_unique<CoreState>();

 private:
  static size_t bytes(const CoreConfig& config) {
    auto measured = std::make_unique<CoreState>();
    measured->config = config;
    Arena arena(nullptr);
    lay_out(*measured, arena);
    return arena.used_bytes();
  }
  static void lay_out(CoreState& s, Arena& arena) {
    lay_out_ub(s, arena);
    lay_out_shared(s, arena);
  }
  ZeroedMemory memory_;
};

}  // namespace ub
