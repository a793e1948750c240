// SPDX-License-Identifier: Apache-2.0
//
// Send queues with something to send stand in the list of what will carry it: a channel, or for UM a link.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

struct WaitingList {
  uint32_t& head;
  uint32_t& tail;
};

inline WaitingList waiting_list(CoreState& s, uint32_t waits_for) {
  if ((waits_for & kWaitsForLink) != 0) {
    LinkRecord& link = s.links[waits_for & ~kWaitsForLink];
    return {link.queue_head, link.queue_tail};
  }
  tp::Channel& ch = s.channels[waits_for];
  return {ch.queue_head, ch.queue_tail};
}

inline void join_list(CoreState& s, uint32_t queue, uint32_t waits_for) {
  SendQueue& q = s.queues[queue];
  WaitingList list = waiting_list(s, waits_for);
  q.waits_for = waits_for;
  q.next = 0;
  (list.tail != 0 ? s.queues[list.tail].next : list.head) = queue;
  list.tail = queue;
}

inline void leave_list(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  if (q.waits_for == 0) return;
  WaitingList list = waiting_list(s, q.waits_for);
  uint32_t before = 0;
  for (uint32_t at = list.head; at != queue; at = s.queues[at].next) before = at;
  (before == 0 ? list.head : s.queues[before].next) = q.next;
  if (list.tail == queue) list.tail = before;
  q.waits_for = 0;
}

}  // namespace ub::ta
