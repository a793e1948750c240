// SPDX-License-Identifier: Apache-2.0
// congestion.h - how a queue pair tells its flow what happens to its packets, and heeds what that says (cc/flow.h). Only a
// reliable one hears acknowledgements, so only that one tells of numbers.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/roce/requester.h"

namespace ub::roce {

struct State;
struct Qp;

/// The flow of a queue pair that nothing was sent on: from INIT on, since answers to READs may leave from RTR on. Its first
/// number is known at RTS only, and no algorithm that a queue pair may have looks at that. Forgets the flow that there was.
void begin_flow(CoreState& s, State& r, uint32_t qp);
void end_flow(State& r, Qp& qp);

/// A packet of a request leaves, of so many bytes as the wire carries.
void tell_sent(CoreState& s, State& r, uint32_t qp, Psn psn, uint32_t bytes, bool again);
/// A packet of an answer to a READ leaves, of so many bytes as the wire carries.
void tell_answered(CoreState& s, State& r, uint32_t qp, uint32_t bytes);
/// What an acknowledgement or response came to; `oldest`: that of the requester before.
void tell_progress(CoreState& s, State& r, uint32_t qp, Psn oldest, const Progress& progress);
void tell_timed_out(CoreState& s, State& r, uint32_t qp);
/// A CNP came.
void tell_marked(CoreState& s, State& r, uint32_t qp);
/// The queue pair's timer fired, perhaps early.
void look_at_flow(CoreState& s, State& r, uint32_t qp);

}  // namespace ub::roce
