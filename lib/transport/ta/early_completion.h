// SPDX-License-Identifier: Apache-2.0
//
// Completions of a send queue as its requests finish, whatever is older (UB Base Specification Rev 2.0, 7.3.2.3). A
// request is reported where it ends. It retires in its turn, because slots become the application's again in the order
// in which they were posted.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

void report_ended(CoreState& s, uint32_t queue, uint32_t number);
void report_ended_before(CoreState& s, uint32_t queue, uint32_t end, uint32_t segments);

// Called where a request may have ended: it is done, or a copy of its response has arrived.
inline void on_ended(CoreState& s, uint32_t queue, uint32_t number) {
  if (s.queues[queue].completes_early) [[unlikely]]
    report_ended(s, queue, number);
}

// The same where so many segments of the requests before `end` may have ended together.
inline void on_ended_before(CoreState& s, uint32_t queue, uint32_t end, uint32_t segments) {
  if (s.queues[queue].completes_early) [[unlikely]]
    report_ended_before(s, queue, end, segments);
}

// The JFC has room again: reports what has ended meanwhile.
void report_all_ended(CoreState& s, uint32_t queue);

}  // namespace ub::ta
