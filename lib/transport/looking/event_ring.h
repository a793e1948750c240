// SPDX-License-Identifier: Apache-2.0
//
// The last notes with their times, in memory of a fixed size: what happened just before something failed.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/time.h"
#include "lib/transport/looking/note.h"

namespace ub {

struct NotedEvent {
  Instant at;
  uint32_t place = 0;  // of the Core that said so, where there are several
  Note note{};
};

template <uint32_t kRoom>
class EventRing {
 public:
  static_assert((kRoom & (kRoom - 1)) == 0, "a power of two");

  void add(const NotedEvent& event) { events_[count_++ % kRoom] = event; }

  uint32_t size() const { return count_ < kRoom ? static_cast<uint32_t>(count_) : kRoom; }
  // So many were added and are gone.
  uint64_t forgotten() const { return count_ - size(); }
  // Calls fn(const NotedEvent&) for at most `most` of the last ones, the oldest first.
  template <class Fn>
  void each_of_last(uint32_t most, Fn fn) const {
    for (uint64_t i = count_ - (most < size() ? most : size()); i != count_; ++i) fn(events_[i % kRoom]);
  }

 private:
  std::array<NotedEvent, kRoom> events_;
  uint64_t count_ = 0;
};

}  // namespace ub
