// SPDX-License-Identifier: Apache-2.0
// posted.h - the front of a queue pair's send ring: what is posted and not begun, whether it can be carried out, and the
// step into the requests that are begun.
#pragma once

#include "lib/transport/roce/state.h"

namespace ub::roce {

/// The oldest element that was not begun.
struct Posted {
  const Wqe* wqe = nullptr;
  RequestKind kind = RequestKind::kSend;
  CrStatus refused = CrStatus::kSuccess;  ///< else: it cannot be, and completes so when its turn has come
};

/// False: nothing is posted, or what is there is no element (`*broken`).
[[nodiscard]] bool look_at_front(CoreState& s, const State& r, Qp& qp, Posted* out, bool* broken);

/// May it begin now, with the requester in that state?
[[nodiscard]] bool may_start(const CoreState& s, const Qp& qp, const RequesterState& req, const Posted& front);

/// Makes the next one a request that goes out, if it may begin with the requester in the state `req`. False: none now. A
/// refused one fails the queue pair once all before it is complete.
[[nodiscard]] bool start_next(CoreState& s, State& r, uint32_t qp, const RequesterState& req);

/// Would more go out if the requester were in that state?
[[nodiscard]] bool more_to_send(CoreState& s, const State& r, Qp& qp, const RequesterState& req);

/// Takes the element at the front out of the ring, as a request that is begun.
void take_front(Qp& qp, const Wqe& wqe);

}  // namespace ub::roce
