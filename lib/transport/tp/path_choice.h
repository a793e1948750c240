// SPDX-License-Identifier: Apache-2.0
//
// Which of several paths a packet takes (docs/paths-design.md): the one on which it arrives first. On a path where
// packets wait, one that makes it k in flight arrives after k times the gap between arrivals; elsewhere it takes the
// least round trip. A path that is full by its own congestion control, or that is paced, gets none while another one has
// room.
#pragma once

#include <algorithm>

#include "lib/transport/tp/path.h"

namespace ub::tp {

inline bool has_room(const Path& p, Instant now) {
  return cc::may_leave(p.flow, now) && p.in_flight < p.flow.window_packets;
}

// When a packet that leaves now is expected to arrive and be acknowledged.
inline uint64_t expected_ns(const Path& p) {
  const auto least = static_cast<uint64_t>(std::min(p.round_trip.least, p.round_trip.former_least).ns);
  return std::max(least, uint64_t{p.gap_ns} * (p.in_flight + 1));
}

// What is known of the path is old: a packet will tell.
inline bool is_forgotten(const Path& p, Instant now) {
  constexpr int64_t kRoundTrips = 16;
  return p.in_flight == 0 && now - p.news_at > p.round_trip.smoothed * kRoundTrips;
}

struct PathChoice {
  Instant now;
  uint8_t best = kNoPath;
  bool best_has_room = false;
  uint64_t best_score = 0;

  void consider(uint8_t at, const Path& p) {
    const bool room = has_room(p, now);
    if (best != kNoPath && best_has_room && !room) return;
    const uint64_t score = is_forgotten(p, now) ? 0 : expected_ns(p) + p.in_flight;
    if (best != kNoPath && best_has_room == room && best_score <= score) return;
    best = at;
    best_has_room = room;
    best_score = score;
  }
};

}  // namespace ub::tp
