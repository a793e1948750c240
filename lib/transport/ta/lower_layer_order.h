// SPDX-License-Identifier: Apache-2.0
//
// The initiator's part of ROL (UB Base Specification Rev 2.0, 7.3.3): when may a strong request leave, so that the
// order of the channel is the order of execution? The target executes in the order of delivery, so the request need not
// wait for WRITEs and atomics before it, which end when they are executed, well or not. It waits for the answers to
// what may come again behind it: READs, whose memory is read once more if a response is lost, and messages that take a
// receive and may be refused. Among SENDs the target sees to that, since it refuses those behind a refused one.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/ta/refused_requests.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/waiting_requests.h"

namespace ub::ta {

// Has an older request that asks for an order segments which are to be sent, or sent again?
inline bool older_is_unsent(const SendQueue& q, uint32_t number) {
  const auto is_older = [&](uint32_t n) {
    return n - q.started_head < number - q.started_head && wqe_of(q, q.work[n & q.work_mask]).place_order != 0;
  };
  if (find_waiting(q, is_older)) return true;
  uint32_t index = q.oldest_refused;
  for (uint32_t left = q.retries; left != 0; --left, index = q.work[index].newer_refused) {
    if (is_older(q.started_head + age_of(q, index))) return true;
  }
  return false;
}

// Does the channel keep this strong request behind all older ones that ask for an order, if it leaves now?
inline bool channel_keeps_order(SendQueue& q, const Wqe& wqe, uint32_t number) {
  if (older_is_unsent(q, number)) return false;
  if (is_send(wqe.op) && q.unanswered_fenced == 0) return true;  // no READ may come again
  const auto may_return = [](const WrState&, const Wqe& w) {
    return w.place_order != 0 && (w.op == WrOp::kRead || takes_receive(w.op));
  };
  return oldest_unfinished(q, q.unfinished_from, number, may_return) == number;
}

// Would the next request of a pinned queue leave the channel of earlier ones that are not answered? It would with the
// first bulk message, after another bind, and when the peer refuses channels of ROL. No channel keeps an order with
// what another one carries. A refused request is not answered, and goes again by its own channel.
inline bool leaves_channel(const SendQueue& q, uint32_t channel) {
  if (!q.pinned || (q.unanswered_segments == 0 && q.waiting == 0)) return false;
  return q.work[(q.started_tail - 1) & q.work_mask].channel != channel;
}

}  // namespace ub::ta
