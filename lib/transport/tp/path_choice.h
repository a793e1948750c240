// SPDX-License-Identifier: Apache-2.0
//
// Which of several paths a packet takes (docs/paths-design.md): the one on which it arrives first. On a path where
// packets wait, one that makes it k in flight arrives after k times the gap between arrivals; elsewhere it takes the
// least round trip. A path that is full by its own congestion control, or that is paced, gets none while another one
// has room.
#pragma once

#include <algorithm>

#include "lib/transport/tp/path.h"

namespace ub::tp {

inline bool has_room(const Path& p, Instant now) { return cc::may_leave(p.flow, now) && p.in_flight < p.room; }

// A path is slow if packets would take longer there than twice the round trip of the fastest one. They wait for room on
// a fast one instead: else all that is behind them would wait for them at the receiver. One packet may always take it.
inline uint32_t room_on(const Path& p, Duration fastest) {
  if (p.gap_ns == 0) return p.flow.window_packets;
  const auto in_time = static_cast<uint32_t>(std::max<int64_t>(fastest.ns * 2 / p.gap_ns, 1));
  return std::min<uint32_t>(p.flow.window_packets, in_time);
}

// When a packet that leaves now is expected to arrive and be acknowledged. Until packets wait, nobody knows how fast
// the path is: so each packet in flight counts an eighth of the least round trip besides.
inline uint64_t expected_ns(const Path& p) {
  const auto least = static_cast<uint64_t>(least_round_trip(p.round_trip).ns);
  return std::max(least, uint64_t{p.gap_ns} * (p.in_flight + 1)) + least * p.in_flight / 8;
}

// What is known of the path is old: a packet will tell. The more packets have told nothing, the longer that takes.
inline bool is_forgotten(const Path& p, Instant now) {
  constexpr int64_t kRoundTrips = 16;
  constexpr uint32_t kMostDoublings = 6;
  if (p.in_flight != 0) return false;
  const uint32_t unanswered = std::min(p.newest - p.reach, kMostDoublings);
  return now - p.news_at > p.round_trip.smoothed * (kRoundTrips << unanswered);
}

struct PathChoice {
  Instant now;
  uint8_t best = kNoPath;
  bool best_has_room = false;
  uint64_t best_score = 0;

  void consider(uint8_t at, const Path& p) {
    const bool room = has_room(p, now);
    if (best != kNoPath && best_has_room && !room) return;
    const uint64_t score = is_forgotten(p, now) ? 0 : expected_ns(p);
    if (best != kNoPath && best_has_room == room && best_score <= score) return;
    best = at;
    best_has_room = room;
    best_score = score;
  }
};

}  // namespace ub::tp
