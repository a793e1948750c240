// SPDX-License-Identifier: Apache-2.0
//
// A segment of a request becomes a message of a channel: what the request, its queue and the message are told then.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/ta/queue_front.h"
#include "lib/transport/ta/request_state.h"

namespace ub::ta {

// Is all memory that the result of a READ or atomic is written to registered?
inline bool result_fits(CoreState& s, Owner owner, const Wqe& wqe) {
  for (uint32_t i = 0; i < wqe.sge_count; ++i) {
    const Sge& sge = sge_of(wqe, i);
    if (sge.length != 0 && local_memory(s, owner, sge.segment, sge.address, sge.length) == nullptr) return false;
  }
  return true;
}
// The same for the element at the front of the ring, whatever it asks for.
inline bool result_fits(CoreState& s, const SendQueue& q) {
  const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
  return !is_fenced(wqe.op) || result_fits(s, q.owner, wqe);
}

// An answer to the request is awaited from now on.
inline void begin_deadline(CoreState& s, SendQueue& q, WrState& wr) {
  wr.deadline = s.now + q.request_timeout;
  if (wr.deadline >= q.deadline) return;
  q.deadline = wr.deadline;
  s.timers.arm(timer_of(s, q), q.deadline);
}

// Fills in the message that carries this segment of a request, by a channel that then waits for its answer.
inline void describe_message(SendQueue& q, uint32_t queue, uint32_t number, uint32_t segment, WrState& wr,
                             tp::Channel& ch, tp::TxMessage* m) {
  m->kind = tp::MessageKind::kRequest;
  m->source = queue;
  m->generation = q.generation;
  m->work_request = number;
  m->segment = static_cast<uint16_t>(segment);
  m->tassn = wr.first_tassn + segment;
  if (ch.give_up_after < q.request_timeout) ch.give_up_after = q.request_timeout;
  wr.places |= ch.place_bit;
}

// A straight request (routes.h), which is at the front of the ring, becomes a message of the channel.
inline const Wqe& begin_straight(CoreState& s, Lane& lane, uint32_t queue, uint32_t channel, tp::TxMessage* m) {
  SendQueue& q = s.queues[queue];
  const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
  const uint32_t number = q.started_tail;
  WrState& wr = start_request(q, wqe, channel, 1);
  if (q.next_tassn.value() == 0) [[unlikely]]
    note_wrap(s, q.rcid);
  describe_message(q, queue, number, 0, wr, s.channels[channel], m);
  wr.cut = 1;
  count_segment(q, wqe.op, 1);
  begin_deadline(s, q, wr);
  ++lane.unanswered;
  return wqe;
}

}  // namespace ub::ta
