// SPDX-License-Identifier: Apache-2.0
//
// Queues take their turns on a channel in the order in which they line up. One with a higher priority lines up in front
// of those with lower ones. Each of those is passed, between two turns of its own, at most as often as the priorities
// differ: it waits for one turn of each queue in front of it, and for fifteen more. A queue whose priority is not above
// that of the last one in line goes to the end, as if there were no priorities, and so does one of priority 0 at once.
//
// Queues of UM do not stand in line at a channel, and their priorities do not matter.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// So many queues from the front are looked at, and note that they are passed. Those behind them are passed, too, but
// have longer to wait anyway.
constexpr uint32_t kMostLookedAt = 16;

inline uint8_t priority_of(const CoreState& s, const SendQueue& q) { return s.jettys[q.jetty].priority; }

// Is it more urgent than the last queue in line?
inline bool outranks_last(const CoreState& s, const IndexList& line, const SendQueue& q) {
  return !line.empty() && priority_of(s, s.queues[line.back()]) < priority_of(s, q);
}

// Does a queue that stands in line let this one pass? Its next TASSN tells whether it had a turn since it was passed
// last.
inline bool lets_pass(CoreState& s, const SendQueue& standing, const SendQueue& q) {
  Jetty& j = s.jettys[standing.jetty];
  const WrState& newest = standing.work[(standing.started_tail - 1) & standing.work_mask];
  const auto next = static_cast<uint8_t>((newest.first_tassn + newest.cut).value());
  if (j.passed_before != next) j.passes = 0;
  j.passed_before = next;
  return j.priority + j.passes < priority_of(s, q);
}

// The queue in front of which this one may stand; 0: none. It is behind all that do not let it pass.
inline uint32_t place_by_priority(CoreState& s, const IndexList& line, const SendQueue& q) {
  if (!outranks_last(s, line, q)) return 0;
  const auto behind = [&](uint32_t at) { return line.behind<&SendQueue::in_line>(s.queues, at); };
  uint32_t at = line.front<&SendQueue::in_line>(s.queues), place = at;
  for (uint32_t looked = 0; at != 0 && looked < kMostLookedAt; ++looked) {
    if (!lets_pass(s, s.queues[at], q)) place = behind(at);
    at = behind(at);
  }
  if (place == at) return 0;  // none of them
  for (uint32_t passed = place; passed != at; passed = behind(passed)) ++s.jettys[s.queues[passed].jetty].passes;
  return place;
}

// The queue, which stands at the end of the line of its channel, goes to the place that its priority gives it.
inline void move_up(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  tp::Channel& ch = s.channels[q.waits_for];
  ch.mixed_line = true;
  ch.queues.remove<&SendQueue::in_line>(s.queues, queue);
  const uint32_t place = place_by_priority(s, ch.queues, q);
  if (place == 0) return ch.queues.push_back<&SendQueue::in_line>(s.queues, queue);
  ch.queues.insert_before<&SendQueue::in_line>(s.queues, queue, place);
}

}  // namespace ub::ta
