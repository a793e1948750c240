// SPDX-License-Identifier: Apache-2.0
//
// LDCP: a window, in packets, that obeys how much of what arrived was marked (UB Base Specification Rev 2.0, 6.6). The
// specification names the signal and leaves the formula open; this one is that of DCTCP (RFC 8257).
//
// It begins with slow start, which the first mark ends and which halves the window. From then on each round trip
// changes the window once: by one packet more if nothing was marked, else by a part of alpha/2 less. Alpha is a moving
// average of the marked part. A loss halves the window at most once in a round trip. A timeout leaves one packet, with
// which slow start begins again.
//
// A round trip ends when an acknowledgement passes the PSN that was next when it began. It hears of the packets that
// left before it began. So a round trip that began with half a window changes nothing but alpha.
#pragma once

#include "lib/transport/cc/member.h"

namespace ub::cc {

struct Ldcp : Member {
  static constexpr uint32_t kAlphaOne = 1 << 15;
  static constexpr uint32_t kPacket = 1 << 14;

  uint32_t received_words = 0;  ///< the newest totals that were heard
  uint32_t marked_words = 0;
  uint32_t received_before = 0;  ///< what they were when the round trip began
  uint32_t marked_before = 0;
  Psn round_until;                  ///< an acknowledgement that passes it ends the round trip
  uint32_t alpha : 16 = kAlphaOne;  ///< how congested the network is, as a part of kAlphaOne
  uint32_t fraction : 14 = 0;       ///< what the window has beyond whole packets; unit: 1/kPacket
  uint32_t starting : 1 = true;     ///< slow start
  uint32_t halved : 1 = false;      ///< the round trip began with a loss, a timeout or the end of slow start

  void begin(Verdict& v, const Path& path, Psn next);
  void take_over(const Ldcp& before);
  void acknowledged(Verdict& v, const Path& path, Instant, uint32_t packets, Psn until);
  void fed_back(Verdict&, const Path&, Instant, const Feedback& f);
  void lost(Verdict& v, const Path& path, Instant, const Loss& loss);
  void timed_out(Verdict& v, const Path& path, Instant, Psn next);

 private:
  uint64_t window(const Verdict& v) const { return uint64_t{v.window_packets} * kPacket + fraction; }
  void set_window(Verdict& v, const Path& path, uint64_t window);
  void halve(Verdict& v, const Path& path, Psn next);
  void learn(Verdict& v, const Path& path, bool used);
  void begin_round(Psn next);
};

}  // namespace ub::cc
