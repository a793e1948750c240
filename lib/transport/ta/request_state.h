// SPDX-License-Identifier: Apache-2.0
//
// Counters of segments, which change when a request is started, answered or given up.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/ta/segmentation.h"

namespace ub::ta {

// Why the next request of a queue may not start.
enum class RequestWaits : uint8_t { kFence, kOrder, kReceive, kAnswers, kRate, kLane };

// The bit of a segment in WrState::answered and WrState::refused.
inline uint64_t segment_bit(uint32_t segment) { return uint64_t{1} << (segment % kSegmentsInFlight); }

// Counts a segment of the queue. `by`: 1 when it becomes unanswered, -1 when it is so no longer.
inline void count_segment(SendQueue& q, const Wqe& wqe, WrOp op, int by) {
  q.unanswered_segments += by;
  if (wqe.place_order != 0) q.unanswered_ordered += by;
  if (is_fenced(op)) q.unanswered_fenced += by;
  if (takes_receive(op)) q.receives_in_flight += by;
}

// A segment that was sent on a channel of this lane was answered, or its answer is no longer awaited.
inline void count_answer(CoreState& s, Lane& lane) {
  UB_DCHECK(lane.unanswered != 0);
  if (lane.unanswered-- != kLaneRequestsInFlight) return;
  for (uint32_t channel : lane.channels) {
    if (channel != 0) activate(s, channel);
  }
}

inline bool bulk_message(const CoreState& s, const Wqe& wqe) {
  return s.config.lanes > 1 && wqe.length > s.config.lane_bulk_bytes;
}

// The place in their lane of the channels that the requests of this queue begin on.
inline uint32_t place_of(const CoreState& s, const SendQueue& q) { return q.jetty & (s.config.channels_per_lane - 1); }

// RC: receives are taken in the order of the requests, even if some requests are refused.
inline bool keeps_receive_order(const CoreState& s, const SendQueue& q) { return s.jettys[q.jetty].mode == Mode::kRc; }

}  // namespace ub::ta
