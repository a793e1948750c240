// SPDX-License-Identifier: Apache-2.0
//
// Deadlines of many objects, the earliest first: an indexed binary heap with one entry for each object.
//
// Deadlines that only move later (a retransmission timer, which every acknowledgement restarts) need not touch the
// heap: arm() keeps the earlier time, the entry fires early, and its owner looks at the true deadline and arms the
// entry again. Equal times fire in the order of the objects' numbers, so the order is deterministic.
#pragma once

#include <cstdint>

#include "lib/base/arena.h"
#include "lib/base/time.h"

namespace ub {

class TimerHeap {
 public:
  void init(Arena& arena, uint32_t objects) {
    entries_ = arena.take<Entry>(objects + 1);
    position_ = arena.take<uint32_t>(objects + 1);
  }

  // The entry of the object will fire at `at` or before.
  void arm(uint32_t object, Instant at) {
    uint32_t p = position_[object];
    if (p == 0) {
      if (at.is_never()) return;
      p = ++size_;
      place(p, Entry{at, object});
      sift_up(p);
    } else if (at < entries_[p].at) {
      entries_[p].at = at;
      sift_up(p);
    }
  }

  void cancel(uint32_t object) {
    uint32_t p = position_[object];
    if (p == 0) return;
    position_[object] = 0;
    Entry last = entries_[size_--];
    if (p <= size_) {
      place(p, last);
      sift_up(p);
      sift_down(position_[last.object]);
    }
  }

  bool armed(uint32_t object) const { return position_[object] != 0; }
  Instant earliest() const { return size_ == 0 ? Instant::never() : entries_[1].at; }

  // Takes the earliest entry that is due. False: none is due.
  bool pop_due(Instant now, uint32_t* object) {
    if (size_ == 0 || entries_[1].at > now) return false;
    *object = entries_[1].object;
    cancel(*object);
    return true;
  }

 private:
  struct Entry {
    Instant at;
    uint32_t object;
  };

  static bool before(const Entry& a, const Entry& b) { return a.at < b.at || (a.at == b.at && a.object < b.object); }
  void place(uint32_t p, Entry e) {
    entries_[p] = e;
    position_[e.object] = p;
  }
  void sift_up(uint32_t p) {
    Entry e = entries_[p];
    for (; p > 1 && before(e, entries_[p / 2]); p /= 2) place(p, entries_[p / 2]);
    place(p, e);
  }
  void sift_down(uint32_t p) {
    Entry e = entries_[p];
    while (2 * p <= size_) {
      uint32_t child = 2 * p;
      if (child < size_ && before(entries_[child + 1], entries_[child])) ++child;
      if (!before(entries_[child], e)) break;
      place(p, entries_[child]);
      p = child;
    }
    place(p, e);
  }

  Entry* entries_ = nullptr;
  uint32_t* position_ = nullptr;  // 0: the object is not in the heap
  uint32_t size_ = 0;
};

}  // namespace ub
