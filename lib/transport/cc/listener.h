// SPDX-License-Identifier: Apache-2.0
//
// A listener limits nothing and records what it is told. It shows what a network says before an algorithm is chosen for
// it, and that every signal that an algorithm may use arrives (CoreConfig::listen_to_network).
#pragma once

#include <algorithm>

#include "lib/transport/cc/member.h"

namespace ub::cc {

struct Listener : Member {
  static constexpr bool kHearsRoundTrips = true;

  uint32_t round_trips = 0;          ///< how many were measured
  uint32_t least_round_trip_ns = 0;  ///< 0: none was measured; UINT32_MAX: that long or longer
  uint16_t marks = 0;                ///< this number and the next two stay at UINT16_MAX
  uint16_t losses = 0;
  uint16_t timeouts = 0;

  void begin(Verdict&, const Path&, Psn) { *this = {}; }
  void round_trip(Verdict&, const Path&, Instant, Duration sample) {
    const auto ns = static_cast<uint32_t>(std::clamp<int64_t>(sample.ns, 1, UINT32_MAX));
    least_round_trip_ns = round_trips == 0 ? ns : std::min(least_round_trip_ns, ns);
    ++round_trips;
  }
  void marked(Verdict&, const Path&, Instant, const Mark&) { count(marks, 1); }
  void fed_back(Verdict&, const Path&, Instant, const Feedback& f) { count(marks, f.marked_packets); }
  void lost(Verdict&, const Path&, Instant, const Loss&) { count(losses, 1); }
  void timed_out(Verdict&, const Path&, Instant, Psn) { count(timeouts, 1); }

 private:
  static void count(uint16_t& n, uint32_t more) { n = static_cast<uint16_t>(std::min<uint32_t>(n + more, UINT16_MAX)); }
};

}  // namespace ub::cc
