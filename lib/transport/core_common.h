// SPDX-License-Identifier: Apache-2.0
//
// What every layer and engine of one Core uses: configuration, counters, timers, notes for observers, and frames that
// wait for memory. A layer that is tested by itself needs this and its own state. CoreCommon knows no layer and no
// engine: each takes a range of timers, places for held frames and copy tags while the tables are laid out.
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

// A CopyTag is opaque to the host. Its uppermost byte, the prefix, names the engine that asked for the copy; the engine
// uses the other bytes as it likes. Prefixes from 1 to kCopyPrefixes - 1 are handed out; the engine that takes none
// (UB) has all others.
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

  // Takes the memory that all ranges need from the arena. To be called when every range has been taken.
  void lay_out_ranges(Arena& arena) {
    UB_ASSERT(copy_prefixes.end() <= kCopyPrefixes);
    timers.init(arena, timer_numbers.end());
    held_frames = arena.take<std::byte>(config.slow_memory ? size_t{held_places.end()} * config.max_frame_bytes : 0);
    orphans = arena.take<uint32_t>(held_places.end());
  }

  // Frames that wait for memory which answers later (held_frames.h), and the numbers of those that their owner gave up
  // and of which the host has not been told yet (release_orphans()).
  std::byte* held_frames = nullptr;
  uint32_t* orphans = nullptr;
  uint32_t orphan_count = 0;

  std::byte* held_frame(uint32_t held) {
    UB_ASSERT(config.slow_memory);
    return held_frames + size_t{held} * config.max_frame_bytes;
  }
  void orphan(uint32_t held) { orphans[orphan_count++] = held; }

  void count(Counter c, uint64_t n = 1) { counters.add(c, n); }

  // Tells an observer, if there is one, that something changed its state (docs/looking.md). For functions that do not
  // know the Host, and for code that not every packet runs through; other code calls note_of().
  void note(Stage stage, uint32_t object, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0) const {
    if (looker.looks()) [[unlikely]]
      looker.say(stage, object, a, b, c);
  }
  // Counts a packet that was dropped, under the reason `why`.
  void drop(Counter why) {
    count(why);
    note(Stage::kPacketDropped, 0, static_cast<uint32_t>(why));
  }
  Looker looker;
};

// The same where the Host is known: it compiles to nothing if the Host has no note().
template <class Host>
inline void note_of(const CoreCommon& s, Stage stage, uint32_t object, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0) {
  if constexpr (Looks<Host>) s.note(stage, object, a, b, c);
}
// The same for single steps of a packet: it compiles to nothing unless the Host looks closely (looking/note.h).
template <class Host>
inline void note_step(const CoreCommon& s, Stage stage, uint32_t object, uint32_t a = 0, uint32_t b = 0) {
  if constexpr (LooksClosely<Host>) s.note(stage, object, a, b);
}

// May a user of a shared pool take another record while it holds `held`? Only if more records are free than it holds.
// So a single user gets at most half of the pool, and some of it always remains for others.
template <class T>
bool has_share(const Slab<T>& pool, uint32_t held) {
  return held < pool.capacity() - pool.in_use();
}

}  // namespace ub
