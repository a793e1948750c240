// SPDX-License-Identifier: Apache-2.0
// posted.h - the front of a queue pair's send ring: what was posted and is not begun, whether it can be carried out,
// and how it becomes a request that is begun.
#pragma once

#include "lib/transport/roce/state.h"

namespace ub::roce {

/// The oldest element that was not begun.
struct Posted {
  const Wqe* wqe = nullptr;
  RequestKind kind = RequestKind::kSend;
  CrStatus refused = CrStatus::kSuccess;  ///< else: it cannot be carried out, and completes so in its turn
};

/// Looks at the front of the ring. False: nothing is posted, or what lies there is no element (`*broken`).
[[nodiscard]] bool look_at_front(CoreState& s, const State& r, Qp& qp, Posted* out, bool* broken);

/// May the element at the front begin now, with the requester in this state?
[[nodiscard]] bool may_start(const CoreState& s, const Qp& qp, const RequesterState& req, const Posted& front);

/// Begins the next request, if it may begin with the requester in the state `req`. False: there is none that may. A
/// request that is refused fails the queue pair once all requests before it are complete.
[[nodiscard]] bool start_next(CoreState& s, State& r, uint32_t qp, const RequesterState& req);

/// Would more requests begin if the requester were in this state?
[[nodiscard]] bool more_to_send(CoreState& s, const State& r, Qp& qp, const RequesterState& req);

/// Takes the element at the front out of the ring, as a request that is begun.
void take_front(Qp& qp, const Wqe& wqe);

}  // namespace ub::roce
