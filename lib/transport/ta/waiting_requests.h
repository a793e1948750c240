// SPDX-License-Identifier: Apache-2.0
//
// Requests that were admitted, have segments to send, and are held back by a gate: a strong request behind ordered ones
// that are not done, a message that takes a receive and whose turn it is not, and the last segment of a request that
// waits for the answers to the others. Requests that were posted later pass them (UB Base Specification Rev 2.0,
// 7.3.2).
//
// There are at most kWaitingSpan requests from the oldest waiting one to the newest admitted one, so that a bit in
// SendQueue::waiting stands for each, and every walk is short. Only the initiator has such requests.
#pragma once

#include <bit>

#include "lib/transport/core_state.h"

namespace ub::ta {

constexpr uint32_t kWaitingSpan = 64;

// May the next request be admitted, even if it has to wait?
inline bool may_wait(const SendQueue& q) { return q.waiting == 0 || q.started_tail - q.waiting_from < kWaitingSpan; }

inline bool waits(const SendQueue& q, uint32_t number) {
  const uint32_t place = number - q.waiting_from;
  return place < kWaitingSpan && (q.waiting >> place & 1) != 0;
}

inline void let_wait(SendQueue& q, uint32_t number) {
  if (q.waiting == 0) q.waiting_from = number;
  UB_DCHECK(number - q.waiting_from < kWaitingSpan);
  q.waiting |= uint64_t{1} << (number - q.waiting_from);
}

// All its segments were sent, or it has ended.
inline void stop_waiting(SendQueue& q, uint32_t number) {
  if (!waits(q, number)) return;
  q.waiting &= ~(uint64_t{1} << (number - q.waiting_from));
  if (q.waiting == 0) return;
  const auto gone = static_cast<uint32_t>(std::countr_zero(q.waiting));
  q.waiting >>= gone;
  q.waiting_from += gone;
}

// Calls visit(number) for the waiting requests, the oldest first, until it returns true; returns whether it did.
template <class Visit>
bool find_waiting(const SendQueue& q, Visit visit) {
  const uint32_t from = q.waiting_from;
  for (uint64_t left = q.waiting; left != 0; left &= left - 1) {
    if (visit(from + static_cast<uint32_t>(std::countr_zero(left)))) return true;
  }
  return false;
}

// Does the queue have requests that were admitted before its newest one and have segments to send?
inline bool has_earlier(const SendQueue& q) { return (q.waiting | q.retries) != 0; }

// Has the newest admitted request segments that were not sent?
inline bool newest_goes_on(const SendQueue& q) {
  if (q.started_head == q.started_tail) return false;
  const WrState& wr = q.work[(q.started_tail - 1) & q.work_mask];
  return wr.cut != wr.segments;
}

// Is there an admitted request with segments to send, or to send again?
inline bool has_admitted(const SendQueue& q) { return has_earlier(q) || newest_goes_on(q); }

}  // namespace ub::ta
