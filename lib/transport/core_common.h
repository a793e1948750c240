// SPDX-License-Identifier: Apache-2.0
//
// What every layer of one Core uses, and what a layer that is tested by itself needs besides its own state:
// configuration, counters, timers, and frames that wait for memory. It knows no layer.
#pragma once

#include <cstdint>

#include "lib/base/assert.h"
#include "lib/base/counters.h"
#include "lib/base/slab.h"
#include "lib/base/timer_heap.h"
#include "lib/transport/core_types.h"

namespace ub {

struct CoreCommon {
  CoreConfig config;
  Counters counters;
  TimerHeap timers;

  // Frames that wait for memory which answers later (held_frames.h), and those whose owner gave them up: the Core tells
  // the host.
  std::byte* held_frames = nullptr;
  uint32_t* orphans = nullptr;
  uint32_t orphan_count = 0;

  std::byte* held_frame(uint32_t held) {
    UB_ASSERT(config.slow_memory);
    return held_frames + size_t{held} * config.max_frame_bytes;
  }
  void orphan(uint32_t held) { orphans[orphan_count++] = held; }

  void count(Counter c, uint64_t n = 1) { counters.add(c, n); }
};

// May one of many take another record of a pool, having `held`? No more than are left for all others, so that one alone
// gets half of the pool, and whoever takes what he can leaves as much to the next.
template <class T>
bool has_share(const Slab<T>& pool, uint32_t held) {
  return held < pool.capacity() - pool.in_use();
}

}  // namespace ub
