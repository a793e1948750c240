// SPDX-License-Identifier: Apache-2.0
//
// A window that heeds losses alone, in packets: slow start, then one more packet per window and round trip; half at a loss,
// once per round trip; almost nothing after a timeout. It keeps a sender from drowning a socket buffer or a shared network;
// UB's own algorithms (UB Base Specification Rev 2.0, 6.6) take its place where a peer offers them.
#pragma once

#include <algorithm>

#include "lib/base/assert.h"
#include "lib/transport/cc/member.h"

namespace ub::cc {

struct LossWindow : Member {
  static constexpr uint16_t kInitialPackets = 32;
  static constexpr uint16_t kLeastPackets = 2;

  uint16_t threshold_packets = 0;  ///< slow start ends here
  uint32_t acked_packets = 0;      ///< towards the next increase
  Psn recovery_until;              ///< one reduction per round trip

  void begin(Verdict& v, const Path& path, Psn next) {
    v.window_packets = kInitialPackets;
    *this = {{}, path.most_packets, 0, next};
  }

  void acknowledged(Verdict& v, const Path& path, Instant, uint32_t packets, Psn until) {
    if (until.after(recovery_until)) recovery_until = until;  // or half the number space later it would be ahead again
    uint32_t window = v.window_packets;
    if (window < threshold_packets) {
      window += packets;
    } else if ((acked_packets += packets) >= window) {
      acked_packets -= window;
      ++window;
    }
    v.window_packets = static_cast<uint16_t>(std::min<uint32_t>(window, path.most_packets));
    UB_DCHECK(v.window_packets >= kLeastPackets);
  }

  void lost(Verdict& v, const Path&, Instant, const Loss& loss) {
    if (loss.first.before(recovery_until)) return;  // of the same round trip
    shrink(v, loss.next);
    v.window_packets = threshold_packets;
  }

  void timed_out(Verdict& v, const Path&, Instant, Psn next) {
    shrink(v, next);
    v.window_packets = kLeastPackets;
  }

 private:
  void shrink(const Verdict& v, Psn next) {
    recovery_until = next;
    threshold_packets = std::max<uint16_t>(v.window_packets / 2, kLeastPackets);
    acked_packets = 0;
  }
};

}  // namespace ub::cc
