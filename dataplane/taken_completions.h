// SPDX-License-Identifier: Apache-2.0
//
// Which completions an application has taken out of its JFCs since somebody looked last. The index of the consumer is
// all that a NIC sees of that, so it looks at each JFC with completions that were not taken, at the beginning of each
// turn. At most kMost JFCs are looked at: those with completions that nobody takes keep their places.
//
// Thread: the owner of the Core.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "lib/transport/core_state.h"

namespace ub {

class TakenCompletions {
 public:
  static constexpr uint32_t kMost = 64;

  // Completions may have been written into this JFC, or will be before the next call: calls came(index) for those that
  // came since the last one. False: too many JFCs are looked at, and this one is not.
  template <class Came>
  bool note(const CoreState& s, uint32_t jfc, Came came) {
    Seen* const seen = place_of(s, jfc);
    if (seen == nullptr) return false;
    look_for_new(s, *seen, came);
    return true;
  }

  // Calls came(jfc, index) for completions that came since the last call.
  template <class Came>
  void each_new(const CoreState& s, Came came) {
    for (Seen& seen : seen_) {
      if (seen.jfc != 0) look_for_new(s, seen, [&](uint32_t index) { came(seen.jfc, index); });
    }
  }

  // Calls taken(jfc, index) for each that was taken since the last call.
  template <class Taken>
  void each_taken(const CoreState& s, Taken taken) {
    for (Seen& seen : seen_) {
      if (seen.jfc == 0 || seen.taken == seen.produced) continue;
      const Jfc& j = s.jfcs[seen.jfc];
      if (!j.in_use) {
        seen = {};
        continue;
      }
      const uint32_t consumed = j.indices->consumed.load(std::memory_order_relaxed);
      if (consumed - seen.taken > seen.produced - seen.taken) continue;  // an index that cannot be
      for (; seen.taken != consumed; ++seen.taken) taken(seen.jfc, seen.taken);
    }
  }

 private:
  struct Seen {
    uint32_t jfc = 0;  // 0: the place is free
    uint32_t produced = 0, taken = 0;
  };

  Seen* place_of(const CoreState& s, uint32_t jfc) {
    Seen* place = nullptr;
    for (Seen& seen : seen_) {
      if (seen.jfc == jfc) return &seen;
      if (seen.jfc == 0 || seen.taken == seen.produced) place = &seen;
    }
    if (place != nullptr) *place = {jfc, s.jfcs[jfc].produced, s.jfcs[jfc].produced};
    return place;
  }

  // One whose number is used again begins anew.
  template <class Came>
  static void look_for_new(const CoreState& s, Seen& seen, Came came) {
    const Jfc& j = s.jfcs[seen.jfc];
    if (!j.in_use || j.produced - seen.produced > j.mask + 1) seen.produced = seen.taken = j.produced;
    for (; seen.produced != j.produced; ++seen.produced) came(seen.produced);
  }

  std::array<Seen, kMost> seen_;
};

}  // namespace ub
