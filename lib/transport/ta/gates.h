// SPDX-License-Identifier: Apache-2.0
//
// The gates at which requests of a send queue wait (UB Base Specification Rev 2.0, 7.3.2): one of strong order waits
// for ordered ones in front of it, and a message that takes a receive waits for its turn.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/ta/lower_layer_order.h"
#include "lib/transport/ta/refused_requests.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/target_order.h"
#include "lib/transport/ta/waiting_requests.h"

namespace ub::ta {

// Must this new request, which takes a receive, wait? It must if an older one to the same target was refused, or (RC)
// may still be refused.
inline bool receives_wait(const CoreState& s, const SendQueue& q, const Wqe& wqe) {
  if (keeps_receive_order(s, q)) return q.retries != 0 || (q.retry_next && q.receives_in_flight != 0);
  uint32_t index = q.oldest_refused;
  for (uint32_t left = q.retries; left != 0; --left, index = q.work[index].newer_refused) {
    const Wqe& refused = wqe_of(q, q.work[index]);
    if (takes_receive(refused.op) && refused.target == wqe.target) return true;
  }
  return false;
}

// Returns false, because a request may not start now, and notes why.
[[gnu::noinline, gnu::cold]] inline bool held_by(const CoreState& s, const SendQueue& q, RequestWaits why) {
  s.note(Stage::kRequestWaits, static_cast<uint32_t>(&q - &s.queues[0]), static_cast<uint32_t>(why));
  return false;
}

// Strong order: the request waits until every older one that asks for an order is done (ROI), or until the channel
// (ROL) or the target (ROT) keeps it behind them. `ch`: the channel that it leaves on; one that needs no packet has
// none.
inline bool order_allows(const CoreState& s, SendQueue& q, const Wqe& wqe, uint32_t number, const tp::Channel* ch) {
  if (wqe.place_order < 2) return true;
  const auto allows = [&] {
    if (ch != nullptr && ordered_by_channel(s, q, ch->peer)) return channel_keeps_order(q, wqe, number);
    if (ch != nullptr && takes_context(s, q, wqe, *ch)) return target_keeps_order(s, q, number, *ch);
    return oldest_ordered(q, number) == number;
  };
  return allows() || held_by(s, q, RequestWaits::kOrder);
}

// Is one of the waiting requests before this one a message that takes a receive?
inline bool older_receive_waits(const SendQueue& q, uint32_t number) {
  return find_waiting(q, [&](uint32_t n) {
    return n - q.waiting_from < number - q.waiting_from && takes_receive(wqe_of(q, q.work[n & q.work_mask]).op);
  });
}

// May a message take its receive now? Receives are taken in the order of posting: none overtakes another that waits or
// was refused, they change lane only when none is unanswered, and in RM one whose completion is ordered waits until all
// before it are done, since the target does not refuse those behind a refused one.
inline bool receive_allows(const CoreState& s, SendQueue& q, const Wqe& wqe, uint32_t number, uint8_t lane) {
  if (older_receive_waits(q, number)) return held_by(s, q, RequestWaits::kReceive);
  if (receives_wait(s, q, wqe)) return held_by(s, q, RequestWaits::kReceive);
  const bool ordered_alone = (wqe.flags & kWrCompOrder) != 0 && !keeps_receive_order(s, q);
  if (ordered_alone && oldest_receive(q, number) != number) return held_by(s, q, RequestWaits::kReceive);
  if (q.receives_in_flight == 0) {
    q.receive_lane = lane;
  } else if (lane != q.receive_lane) {
    return held_by(s, q, RequestWaits::kLane);
  }
  return true;
}

// Does a request of this kind stand at a gate at all? Most do not, and pay no more than this question.
inline bool has_gate(const Wqe& wqe) { return wqe.place_order >= 2 || takes_receive(wqe.op); }

// May this segment be sent? The gates of its request keep back the first one, or the last one, which waits for the
// others; those between pass.
[[gnu::noinline]] inline bool gates_allow(const CoreState& s, SendQueue& q, const Wqe& wqe, uint32_t number,
                                          uint32_t segment, uint32_t segments, const tp::Channel& ch) {
  if (!order_allows(s, q, wqe, number, &ch)) return false;
  const bool takes = takes_receive(op_of_segment(wqe.op, segment, segments));
  return !takes || receive_allows(s, q, wqe, number, ch.lane);
}

}  // namespace ub::ta
