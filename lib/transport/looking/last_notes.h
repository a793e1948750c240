// SPDX-License-Identifier: Apache-2.0
//
// The last rare notes of a Core (UB_RARE, UB_COUNTED and UB_SERIES in stages.def): what a person wants to know when
// something has died. They are kept all the time, whether somebody looks or not, in memory of a fixed size that belongs
// to whoever made the Core. A NIC keeps them in its statistics page, where they outlive the process.
//
// Thread: the owner of the Core writes; anybody reads, also while that goes on. Memory of zeros has none.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "lib/base/time.h"
#include "lib/transport/looking/note.h"

namespace ub {

struct LastNote {
  uint64_t first_ns = 0, last_ns = 0;  // of the real clock, when it was said first and last
  Note note{};
  uint32_t times = 0;  // in a row
};
static_assert(sizeof(LastNote) == 40 && std::is_trivially_copyable_v<LastNote>);

struct LastNotes {
  static constexpr uint32_t kRoom = 256;
  static constexpr uint32_t kSoon = 8;  // so many others may come between

  uint64_t count;      // of those that were ever kept
  uint64_t behind_ns;  // the real clock minus that of the Core, which stands still while nobody drives it
  LastNote ring[kRoom];

  // What is said again and again takes one place, so that a flood does not push all others out.
  void add(Instant at, const Note& note) {
    const uint64_t now = at.ns + behind_ns;
    const uint64_t back = kept_of(note.stage) == Kept::kEach ? 1 : kSoon;
    for (uint64_t i = 1; i <= back && i <= count; ++i) {
      LastNote& before = ring[(count - i) % kRoom];
      if (!goes_on(before.note, note)) continue;
      before.last_ns = now;
      before.note = note;
      ++before.times;
      return;
    }
    ring[count % kRoom] = {now, now, note, 1};
    std::atomic_ref(count).store(count + 1, std::memory_order_release);
  }

  static bool goes_on(const Note& last, const Note& next) {
    if (kept_of(next.stage) != Kept::kNewest) return last == next;
    return last.stage == next.stage && last.object == next.object;
  }

  // Calls fn(const LastNote&) for each, the oldest first, but for the place that is written next: the writer may be
  // there.
  template <class Fn>
  void each(Fn fn) const {
    std::atomic_ref total(const_cast<uint64_t&>(count));
    const uint64_t end = total.load(std::memory_order_acquire);
    for (uint64_t i = end < kRoom ? 0 : end - kRoom + 1; i != end; ++i) {
      const LastNote copy = ring[i % kRoom];
      std::atomic_thread_fence(std::memory_order_acquire);
      if (total.load(std::memory_order_relaxed) < i + kRoom) fn(copy);
    }
  }
};
static_assert(std::is_trivially_copyable_v<LastNotes>);

}  // namespace ub
