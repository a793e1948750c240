// SPDX-License-Identifier: Apache-2.0
//
// Writes completions into the rings of JFCs, and retires send requests in the order in which they were posted. A full
// JFC loses nothing: send requests wait in their queue until there is room, and a receive is only taken together with a
// place in its JFC.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// Has the JFC room for another completion? If not, an event reports that; it is not repeated until there was room.
bool jfc_has_room(CoreState& s, uint32_t jfc);
// Writes a completion. The caller has checked that there is room, or has reserved it.
void push_completion(CoreState& s, uint32_t jfc, const Cqe& cqe);

// A completion of a request, without what say_how_it_ended() adds.
Cqe send_completion(const CoreState& s, const SendQueue& q, const WrState& wr);
// Completes finished requests from the oldest on.
void retire_requests(CoreState& s, uint32_t queue);
// The JFC had no room for a completion of this waiter (a number of one of CoreState::waiter_kinds). The waiter tries
// again when there is room.
void wait_for_room(CoreState& s, uint32_t jfc, uint32_t waiter);
void stop_waiting(CoreState& s, uint32_t jfc, uint32_t waiter);
// The JFC may have room again: its waiters try again.
void resume_jfc(CoreState& s, uint32_t jfc);
// resume_jfc() for one of the JFCs that somebody waits for; these JFCs take turns. The Core calls it at every poll, in
// case an application made room just after we had read its index. One JFC at a time bounds the cost, however many stay
// full.
void resume_next_jfc(CoreState& s);
// The application armed the JFC: if a matching completion is in the ring, an event is reported at once. That of a
// moderated JFC may wait until there are more.
void check_armed(CoreState& s, uint32_t jfc);
// The period of a moderated JFC is over: an event tells of what waits.
void end_period(CoreState& s, uint32_t jfc);

}  // namespace ub::ta
