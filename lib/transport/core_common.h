// SPDX-License-Identifier: Apache-2.0
//
// What every layer and engine of one Core uses, and what a layer that is tested by itself needs besides its own state:
// configuration, counters, timers, who looks, and frames that wait for memory. It knows no layer and no engine: who needs timers,
// places for held frames or copy tags takes a range of them while tables are laid out.
#pragma once

#include <cstdint>

#include "lib/base/assert.h"
#include "lib/base/counters.h"
#include "lib/base/number_range.h"
#include "lib/base/slab.h"
#include "lib/base/timer_heap.h"
#include "lib/transport/core_types.h"
#include "lib/transport/looking/note.h"

namespace ub {

// A CopyTag is opaque to the host. Its uppermost byte says whose it is, all behind that is the owner's to use. Whoever has
// not taken a prefix has those that are not handed out: 0, and from kCopyPrefixes on.
constexpr uint32_t kCopyPrefixShift = 56;
constexpr uint32_t kCopyPrefixes = 0x40;
constexpr uint64_t copy_prefix_of(uint64_t tag) { return tag >> kCopyPrefixShift; }

struct CoreCommon {
  CoreConfig config;
  Counters counters;
  TimerHeap timers;

  NumberRanges timer_numbers;     // in `timers`
  NumberRanges held_places;       // in `held_frames`
  NumberRanges copy_prefixes{1};  // below kCopyPrefixes

  // Takes what all ranges together need from the arena: behind everybody who takes some.
  void lay_out_ranges(Arena& arena) {
    UB_ASSERT(copy_prefixes.end() <= kCopyPrefixes);
    timers.init(arena, timer_numbers.end());
    held_frames = arena.take<std::byte>(config.slow_memory ? size_t{held_places.end()} * config.max_frame_bytes : 0);
    orphans = arena.take<uint32_t>(held_places.end());
  }

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

  // Something changed its state, for whoever looks. For places that a packet does not pass each time, and for functions
  // that do not know the Host; others are note_of().
  void note(Stage stage, uint32_t object, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0) const {
    if (looker.looks()) [[unlikely]]
      looker.say(stage, object, a, b, c);
  }
  // A packet was dropped for that reason.
  void drop(Counter why) {
    count(why);
    note(Stage::kPacketDropped, 0, static_cast<uint32_t>(why));
  }
  Looker looker;
};

// The same where the Host is known: nothing is left of it if the Host does not look.
template <class Host>
inline void note_of(const CoreCommon& s, Stage stage, uint32_t object, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0) {
  if constexpr (Looks<Host>) s.note(stage, object, a, b, c);
}
// Of a step within a packet's way: nothing is left of it unless the Host looks closely.
template <class Host>
inline void note_step(const CoreCommon& s, Stage stage, uint32_t object, uint32_t a = 0, uint32_t b = 0) {
  if constexpr (LooksClosely<Host>) s.note(stage, object, a, b);
}

// May one of many take another record of a pool, having `held`? No more than are left for all others, so that one alone
// gets half of the pool, and whoever takes what he can leaves as much to the next.
template <class T>
bool has_share(const Slab<T>& pool, uint32_t held) {
  return held < pool.capacity() - pool.in_use();
}

}  // namespace ub
