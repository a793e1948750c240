// SPDX-License-Identifier: Apache-2.0
//
// What every layer and engine of one Core uses: configuration, counters, timers, notes for observers, and frames that
// wait for memory. A layer that is tested by itself needs this and its own state. CoreCommon knows no layer and no
// engine: each takes ranges of timers and of held frames, and a prefix of copy tags, while the tables are laid out.
#pragma once

#include <cstdint>

#include "lib/base/assert.h"
#include "lib/base/counters.h"
#include "lib/base/number_range.h"
#include "lib/base/timer_heap.h"
#include "lib/transport/copy_prefix.h"
#include "lib/transport/core_types.h"
#include "lib/transport/held_frames.h"
#include "lib/transport/looking/call_log.h"
#include "lib/transport/looking/last_notes.h"
#include "lib/transport/looking/note.h"

namespace ub {

struct CoreCommon {
  CoreConfig config;
  Instant now;  // of the call under way
  Counters counters;
  TimerHeap timers;
  HeldFrames held;

  NumberRanges timer_numbers;                          // in `timers`
  NumberRanges copy_prefixes{kFirstEngineCopyPrefix};  // below kCopyPrefixes

  // Takes the memory that all ranges need from the arena. To be called when every range has been taken.
  void lay_out_ranges(Arena& arena) {
    UB_ASSERT(copy_prefixes.end() <= kCopyPrefixes);
    timers.init(arena, timer_numbers.end());
    if (config.slow_memory) held.lay_out(arena, config.max_frame_bytes);
  }

  void count(Counter c, uint64_t n = 1) { counters.add(c, n); }

  // Tells an observer, if there is one, that something changed its state (docs/looking.md). For functions that do not
  // know the Host, and for code that not every packet runs through; other code calls note_of().
  void note(Stage stage, uint32_t object, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0) const {
    if (kept_of(stage) != Kept::kNo) keep({stage, object, a, b, c});
    if (looker.looks()) [[unlikely]]
      looker.say(stage, object, a, b, c);
  }
  // Counts a packet that was dropped, under the reason `why`.
  void drop(Counter why) {
    count(why);
    note(Stage::kPacketDropped, 0, static_cast<uint32_t>(why));
    if (call_log != nullptr) [[unlikely]]
      call_log->dropped(why);
  }
  Looker looker;
  LastNotes* last_notes = nullptr;  // null: nobody wants them
  CallLog* call_log = nullptr;      // null: nobody records
  bool observed = false;            // one of the two looks: `looker` or `call_log`
  bool is_observed() const { return observed; }

 private:
  [[gnu::noinline, gnu::cold]] void keep(const Note& rare) const {
    if (last_notes != nullptr) last_notes->add(now, rare);
  }
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

}  // namespace ub
