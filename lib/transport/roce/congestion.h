// SPDX-License-Identifier: Apache-2.0
// congestion.h - how a queue pair tells its flow what happens to its packets, and obeys the verdict of the flow
// (cc/flow.h). Only a reliable queue pair hears acknowledgements, so only such a one tells its flow of PSNs.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/roce/requester.h"

namespace ub::roce {

struct State;
struct Qp;

/// Begins the flow of a queue pair that nothing was sent on, and forgets the flow before it. The flow is needed from
/// INIT on, because answers to READs may leave from RTR on. The first PSN is known only in RTS, but no algorithm that a
/// queue pair may have looks at it.
void begin_flow(CoreState& s, State& r, uint32_t qp);
void end_flow(State& r, Qp& qp);

/// A packet of a request leaves. `bytes`: its length on the wire.
void tell_sent(CoreState& s, State& r, uint32_t qp, Psn psn, uint32_t bytes, bool again);
/// A packet of an answer to a READ leaves. `bytes`: its length on the wire.
void tell_answered(CoreState& s, State& r, uint32_t qp, uint32_t bytes);
/// Tells what an acknowledgement or response has changed. `oldest`: the oldest PSN of the requester before that.
void tell_progress(CoreState& s, State& r, uint32_t qp, Psn oldest, const Progress& progress);
void tell_timed_out(CoreState& s, State& r, uint32_t qp);
/// A CNP arrived.
void tell_marked(CoreState& s, State& r, uint32_t qp);
/// The queue pair's timer fired, perhaps early.
void look_at_flow(CoreState& s, State& r, uint32_t qp);

}  // namespace ub::roce
