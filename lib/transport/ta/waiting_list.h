// SPDX-License-Identifier: Apache-2.0
//
// A send queue with something to send stands on the list of the channel that will carry it. A queue of UM stands on the
// list of the link.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

inline IndexList& waiting_list(CoreState& s, uint32_t waits_for) {
  if ((waits_for & kWaitsForLink) != 0) return s.links[waits_for & ~kWaitsForLink].queues;
  return s.channels[waits_for].queues;
}

// Puts the queue at the end of `list`, which must be the list of `waits_for`.
inline void line_up(CoreState& s, IndexList& list, uint32_t queue, uint32_t waits_for) {
  list.push_back<&SendQueue::in_line>(s.queues, queue);
  s.queues[queue].waits_for = waits_for;
}
inline void join_list(CoreState& s, uint32_t queue, uint32_t waits_for) {
  line_up(s, waiting_list(s, waits_for), queue, waits_for);
}

inline void leave_list(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  if (q.waits_for == 0) return;
  waiting_list(s, q.waits_for).remove<&SendQueue::in_line>(s.queues, queue);
  q.waits_for = 0;
}

// Takes the first queue off the list, which must not be empty.
inline uint32_t take_first(CoreState& s, IndexList& list) {
  const uint32_t queue = list.pop_front<&SendQueue::in_line>(s.queues);
  s.queues[queue].waits_for = 0;
  return queue;
}

}  // namespace ub::ta
