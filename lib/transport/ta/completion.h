// SPDX-License-Identifier: Apache-2.0
//
// Completions: into a JFC's ring, and the retiring of send requests in the order they were posted.
// A full JFC loses nothing: send requests wait in their queue until there is room, a receive is only taken
// together with a place in its JFC.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

// Room for one more? If not, the episode is reported once as an event.
bool jfc_has_room(CoreState& s, uint32_t jfc);
// The caller has checked the room, or reserved it.
void push_completion(CoreState& s, uint32_t jfc, const Cqe& cqe);

// Completes finished requests from the oldest on.
void retire_requests(CoreState& s, uint32_t queue);
// A completion of this waiter (a number of one of CoreState::waiter_kinds) found no room: it tries again when there is
// some.
void wait_for_room(CoreState& s, uint32_t jfc, uint32_t waiter);
void stop_waiting(CoreState& s, uint32_t jfc, uint32_t waiter);
// There may be room again: what waits for it gets another try.
void resume_jfc(CoreState& s, uint32_t jfc);
// The same for one of the JFCs that are waited for, each in its turn: an index that we read a moment too early is
// read again, however many applications leave their completions where they are.
void resume_next_jfc(CoreState& s);
// The application armed the JFC: an event at once if a matching completion waits.
void check_armed(CoreState& s, uint32_t jfc);

}  // namespace ub::ta
