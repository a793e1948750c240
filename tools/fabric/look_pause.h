// SPDX-License-Identifier: Apache-2.0
//
// When the switch looks at ports that cannot tell that a frame came. memif cannot: its driver would ring a descriptor
// that belongs to the connection, and comes and goes with every peer.
//
// The times are those of a NIC's own helper (progress.helper_backoff_min and _max). A look with its wake-up costs some
// 15 us, so an idle fabric takes between one and two hundredths of a core. What comes first after a rest waits for 1 ms
// at most, which is well below the shortest time-out of a retransmission (4 ms).
//
// Thread: the caller serialises.
#pragma once

#include <algorithm>

#include "lib/base/time.h"

namespace ub::fabric {

class LookPause {
 public:
  static constexpr Duration kLeast = microseconds(50), kMost = milliseconds(1);

  Instant next_look() const { return looked_ + pause_; }
  // Without frames the pauses double.
  void looked(Instant now) {
    looked_ = now;
    pause_ = std::min(pause_ * 2, kMost);
  }
  // A frame came or went: more will come soon.
  void hurry() { pause_ = kLeast; }

 private:
  Instant looked_{};
  Duration pause_ = kLeast;
};

}  // namespace ub::fabric
