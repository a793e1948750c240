// SPDX-License-Identifier: Apache-2.0
//
// How old what is taken out of a queue may be at most. A ring keeps frames while nobody looks, and a frame does not say
// when it was sent. But what lies in a queue now came in after it was last seen empty, and after as many frames were
// taken out as it has places.
//
// Times are of a clock that goes on while nobody drives the NIC. Thread: one at a time.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace ub::dpdk {

class QueueAge {
 public:
  // `places`: the most frames that the queue holds. It is empty.
  QueueAge(uint32_t places, Instant now) : places_(places), came_after_(now), mark_(now) {}

  // All that lies in the queue came in after this.
  Instant came_after() const { return came_after_; }

  void seen_empty(Instant now) {
    came_after_ = mark_ = now;
    since_mark_ = 0;
  }
  // So many frames were taken out by now, and there may be more.
  void taken(Instant now, uint32_t frames) {
    since_mark_ += frames;
    if (since_mark_ < places_) return;
    came_after_ = mark_;
    mark_ = now;
    since_mark_ = 0;
  }

 private:
  uint32_t places_;
  Instant came_after_;
  Instant mark_;             // of a moment
  uint32_t since_mark_ = 0;  // frames taken since
};

}  // namespace ub::dpdk
