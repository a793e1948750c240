// SPDX-License-Identifier: Apache-2.0
// completion.h - completions of a queue pair: of requests in the order they were posted, of receives as messages end.
// In ERROR also what was never begun comes back. A full JFC loses nothing, as in UB (ta/completion.h).
#pragma once

#include "lib/transport/roce/qp.h"

namespace ub::roce {

/// Completes what can be, as far as there is room.
void retire_requests(CoreState& s, State& r, uint32_t qp);
/// Completes the receive that a message holds. Of `cqe` what the message says is set.
void complete_receive(CoreState& s, Qp& qp, CrStatus status, Cqe& cqe);
/// What a receive completes with, by the last packet of its message.
Cqe message_completion(const Qp& qp, const Packet& packet);
/// The send ring is empty then, without completions.
void discard_posted(Qp& qp);

}  // namespace ub::roce
