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
// Gives queues that found a JFC full another try.
void resume_blocked_jfcs(CoreState& s);
// The application armed the JFC: an event at once if a matching completion waits.
void check_armed(CoreState& s, uint32_t jfc);

}  // namespace ub::ta
