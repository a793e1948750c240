// SPDX-License-Identifier: Apache-2.0
//
// Loss-based congestion control in packets: slow start, then one more packet per window and round trip; half at a
// loss, once per round trip; almost nothing after a timeout. It keeps a sender from drowning a socket buffer or
// a shared network; UB's own algorithms (6.6) take its place where a peer offers them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/transport/tp/channel.h"

namespace ub::tp {

constexpr uint32_t kInitialWindow = 32;
constexpr uint32_t kMinWindow = 2;

inline void cc_init(CongestionWindow& cc, Psn next) { cc = {kInitialWindow, kMaxWindow, 0, next}; }

inline void cc_acked(CongestionWindow& cc, uint32_t packets) {
  if (cc.window < cc.threshold) {
    cc.window += packets;
  } else if ((cc.acked += packets) >= cc.window) {
    cc.acked -= cc.window;
    ++cc.window;
  }
  cc.window = std::min(cc.window, kMaxWindow);
  UB_DCHECK(cc.window >= kMinWindow);
}

inline void cc_lost(CongestionWindow& cc, Psn lost, Psn next) {
  if (lost.before(cc.recovery_until)) return;  // of the same round trip
  cc.recovery_until = next;
  cc.threshold = std::max(cc.window / 2, kMinWindow);
  cc.window = cc.threshold;
  cc.acked = 0;
}

inline void cc_timeout(CongestionWindow& cc, Psn next) {
  cc.recovery_until = next;
  cc.threshold = std::max(cc.window / 2, kMinWindow);
  cc.window = kMinWindow;
  cc.acked = 0;
}

}  // namespace ub::tp
