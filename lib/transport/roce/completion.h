// SPDX-License-Identifier: Apache-2.0
// completion.h - completions of a queue pair. Requests complete in the order in which they were posted, receives when
// their messages end. In ERROR, requests that never began are flushed, too. A full JFC loses nothing, as in UB
// (ta/completion.h).
#pragma once

#include "lib/transport/roce/qp.h"

namespace ub::roce {

/// Completes the oldest requests that are finished, as far as there is room.
void retire_requests(CoreState& s, State& r, uint32_t qp);
/// Completes the receive that a message holds. The caller has set in `cqe` what the message says.
void complete_receive(CoreState& s, Qp& qp, CrStatus status, Cqe& cqe);
/// The completion of a receive, as the last packet of its message says.
Cqe message_completion(const Qp& qp, const Packet& packet);
/// Empties the send ring, without completions.
void discard_posted(Qp& qp);

}  // namespace ub::roce
