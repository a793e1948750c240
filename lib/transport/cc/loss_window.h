// SPDX-License-Identifier: Apache-2.0
//
// A window, in packets, that obeys only losses. It begins with slow start, then grows by one packet for each window and
// round trip. A loss halves it, at most once in a round trip, and a timeout leaves almost nothing of it. It keeps a
// sender from overfilling a socket buffer or a shared network. UB's own algorithms (UB Base Specification Rev 2.0, 6.6)
// take its place if a peer offers them.
#pragma once

#include <algorithm>

#include "lib/base/assert.h"
#include "lib/transport/cc/member.h"

namespace ub::cc {

struct LossWindow : Member {
  uint16_t threshold_packets = 0;  ///< slow start ends here
  uint32_t acked_packets = 0;      ///< acknowledged packets since the last increase
  Psn recovery_until;              ///< losses before this PSN belong to a round trip that reduced the window already

  void begin(Verdict& v, const Path& path, Psn next) {
    v.window_packets = constants_of(path).initial_packets;
    *this = {{}, path.most_packets, 0, next};
  }

  void acknowledged(Verdict& v, const Path& path, Instant, uint32_t packets, Psn until) {
    // Without the comparison it would seem to lie ahead half the number space later. On one of several paths, a packet
    // before `until` may be known as lost only now.
    constexpr uint32_t kFarBehind = Psn::kHalf / 2;
    if (until.after(recovery_until + kFarBehind)) recovery_until = until - kFarBehind;
    uint32_t window = v.window_packets;
    if (window < threshold_packets) {
      window += packets;
    } else if ((acked_packets += packets) >= window) {
      acked_packets -= window;
      ++window;
    }
    v.window_packets = static_cast<uint16_t>(std::min<uint32_t>(window, path.most_packets));
    UB_DCHECK(v.window_packets >= constants_of(path).least_packets);
  }

  void lost(Verdict& v, const Path& path, Instant, const Loss& loss) {
    if (loss.first.before(recovery_until)) return;  // it belongs to the same round trip
    shrink(v, path, loss.next);
    v.window_packets = threshold_packets;
  }

  void timed_out(Verdict& v, const Path& path, Instant, Psn next) {
    shrink(v, path, next);
    v.window_packets = constants_of(path).least_packets;
  }

 private:
  static const LossWindowConstants& constants_of(const Path& path) { return path.constants->loss_window; }

  void shrink(const Verdict& v, const Path& path, Psn next) {
    recovery_until = next;
    threshold_packets = std::max<uint16_t>(v.window_packets / 2, constants_of(path).least_packets);
    acked_packets = 0;
  }
};

}  // namespace ub::cc
