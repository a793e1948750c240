// SPDX-License-Identifier: Apache-2.0
//
// Swift: a window that keeps the round trip near a target (Kumar et al., SIGCOMM 2020), with that paper's rules and our
// constants (constants.h). A smaller window has a longer target, so that many flows share a queue that has room for
// all of them, and a flow with more than its part gives way first.
//
// A round trip below the target lets the window grow by one packet for each window. One beyond it takes a part of the
// window, at most once in a round trip: only a packet that left after the last decrease can cause another. A loss takes
// the largest part, and a timeout leaves one packet. The paper lets windows fall below one packet, with pauses between
// packets; here none does, since a path that takes longer than the target would be as good as cut. So more flows than
// the line bears in a round trip keep a packet each in the queue.
//
// The times must be those of the network. A peer delays the acknowledgement of a packet that does not ask for one, and
// one acknowledgement tells of many small packets, of which the oldest waited for the newest. So the sender notes when
// a packet left only if it asks for an acknowledgement (kOnlyAsked), and at least one packet of each window has to ask.
// A flow without a block of SendTimes hears of losses only. And base_target has to be beyond the round trip of an empty
// path: otherwise the window falls to one packet, although nothing waits in any queue. No flow can find that out by
// itself, since to one that begins while a queue is long, the queue looks like a long path.
#pragma once

#include "lib/transport/cc/member.h"

namespace ub::cc {

struct Swift : Member {
  static constexpr bool kHearsRoundTrips = true;
  static constexpr bool kOnlyAsked = true;
  static constexpr uint32_t kPacket = 1 << 16;

  Instant decreased_at{};
  uint32_t window = 0;               ///< unit: 1/kPacket
  uint32_t delay_ns : 31 = 0;        ///< the latest round trip; 0: none was measured
  uint32_t below_target : 1 = true;  ///< it was shorter than the target

  void begin(Verdict& v, const Path& path, Psn);
  void acknowledged(Verdict& v, const Path& path, Instant, uint32_t packets, Psn);
  void round_trip(Verdict& v, const Path& path, Instant now, Duration sample);
  void lost(Verdict& v, const Path& path, Instant now, const Loss&);
  void timed_out(Verdict& v, const Path& path, Instant now, Psn);

  /// How long a round trip of this window may be.
  Duration target(const SwiftConstants& c) const;

 private:
  Duration usual_round_trip(const SwiftConstants& c) const;
  void decrease(Instant now, uint64_t part);
  void judge(Verdict& v) const;
};

}  // namespace ub::cc
