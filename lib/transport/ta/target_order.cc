// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/target_order.h"

#include "lib/transport/setup/peers.h"
#include "lib/transport/setup/send_record.h"
#include "lib/transport/ta/giving_up.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/queue_front.h"
#include "lib/transport/ta/segmentation.h"

namespace ub::ta {

namespace {

// Where a number stands in the tables of its context.
uint32_t slot_of(Tassn t) { return t.value() % TassnWindow::kSpan; }
bool is_strong(const Wqe& wqe) { return wqe.place_order >= 2; }

// nullptr: it has ended.
const WrState* alive_request(const SendQueue& q, uint32_t number) {
  if (number - q.started_head >= q.started_tail - q.started_head) return nullptr;
  const WrState& wr = q.work[number & q.work_mask];
  return wr.done ? nullptr : &wr;
}

// Has the only segment of the request been sent, and not been refused since?
bool is_under_way(const WrState& wr) { return wr.cut != 0 && (wr.refused & segment_bit(0)) == 0; }

// Is it of a kind that a context takes?
bool fits_context(const CoreState& s, const Wqe& wqe, const tp::Channel& ch) {
  if (wqe.place_order == 0) return false;
  if (is_fenced(wqe.op) && wqe.length <= s.config.segment_bytes) return true;
  return wqe.op == WrOp::kWrite && wqe.length <= (is_strong(wqe) ? ch.mtu : s.config.segment_bytes);
}

}  // namespace

bool takes_context(const CoreState& s, const SendQueue& q, const Wqe& wqe, const tp::Channel& ch) {
  return q.context != 0 && s.initiator_contexts[q.context].peer == ch.peer && fits_context(s, wqe, ch);
}

bool context_has_room(const CoreState& s, const SendQueue& q, const Wqe& wqe, const tp::Channel& ch) {
  if (!takes_context(s, q, wqe, ch)) return true;
  const InitiatorContext& c = s.initiator_contexts[q.context];
  return c.answered.spans(c.next);
}

void enter_order(CoreState& s, SendQueue& q, WrState& wr, uint32_t number, const Wqe& wqe, const tp::Channel& ch) {
  if (takes_context(s, q, wqe, ch)) {
    InitiatorContext& c = s.initiator_contexts[q.context];
    UB_DCHECK(c.answered.spans(c.next));
    wr.in_context = true;
    wr.context_tassn = c.next++;
    c.requests[slot_of(wr.context_tassn)] = number;
    return;
  }
  const bool may_ask = q.context == 0 && ch.so_credit != 0 && asking_request(q) == nullptr;
  if (!may_ask || wqe.op != WrOp::kWrite || !is_strong(wqe) || !fits_context(s, wqe, ch)) return;
  wr.asks = true;
  q.asked_by = number;
}

bool target_keeps_order(const CoreState& s, SendQueue& q, uint32_t number, const tp::Channel& ch) {
  const InitiatorContext& c = s.initiator_contexts[q.context];
  if (c.strong_unanswered >= ch.so_credit) return false;
  // A READ counts as executed at the target when its response begins. Its memory is read once more if the response is
  // lost.
  const auto not_at_target = [](const WrState& w, const Wqe& wqe) {
    return wqe.place_order != 0 && (!w.in_context || wqe.op == WrOp::kRead);
  };
  return oldest_unfinished(q, q.unfinished_from, number, not_at_target) == number;
}

void describe_order(CoreState& s, const SendQueue& q, const WrState& wr, tp::TxMessage* m) {
  if (wr.asks) m->value = kAsksForContext;
  if (!wr.in_context) return;
  m->tassn = wr.context_tassn;
  m->value = scid_of(s, q);
  if (!is_strong(wqe_of(q, wr))) return;
  InitiatorContext& c = s.initiator_contexts[q.context];
  const uint32_t slot = slot_of(wr.context_tassn);
  if (!tp::test_bit(c.strong, slot)) ++c.strong_unanswered;  // else it goes again
  tp::set_bit(c.strong, slot);
}

bool find_in_context(const CoreState& s, const SendQueue& q, uint32_t channel, Tassn tassn, uint32_t* number) {
  if (q.context == 0) return false;
  const InitiatorContext& c = s.initiator_contexts[q.context];
  if (c.peer != s.channels[channel].peer || !c.answered.spans(tassn) || !tassn.before(c.next)) return false;
  *number = c.requests[slot_of(tassn)];
  const WrState* wr = alive_request(q, *number);
  return wr == nullptr || is_under_way(*wr);
}

void answered_in_context(CoreState& s, const SendQueue& q, Tassn tassn) {
  InitiatorContext& c = s.initiator_contexts[q.context];
  if (tp::test_bit(c.strong, slot_of(tassn))) --c.strong_unanswered;
  tp::clear_bit(c.strong, slot_of(tassn));
  c.answered.mark(tassn);
}

const WrState* asking_request(const SendQueue& q) {
  const WrState* wr = alive_request(q, q.asked_by);
  return wr != nullptr && wr->asks ? wr : nullptr;
}

void ask_no_more(const CoreState& s, SendQueue& q, const WrState& asking) {
  if (setup::has_channels(s.peers[s.channels[asking.channel].peer])) q.rot = false;
}

void begin_context(CoreState& s, SendQueue& q, const WrState& asking, uint32_t scid) {
  UB_DCHECK(q.context == 0);
  q.context = s.initiator_contexts.alloc();
  if (q.context == 0) return;
  InitiatorContext& c = s.initiator_contexts[q.context];
  c = InitiatorContext{};
  c.scid = scid;
  c.overdue_at = Instant::never();
  c.peer = s.channels[asking.channel].peer;
  q.unfinished_from = q.started_head;
}

void note_given_up(CoreState& s, SendQueue& q, const WrState& wr) {
  if (!wr.in_context) return;
  InitiatorContext& c = s.initiator_contexts[q.context];
  if (!c.overdue_at.is_never()) return;  // another one is to be answered sooner
  c.overdue = wr.context_tassn;
  c.overdue_at = s.now + q.request_timeout;
  if (c.overdue_at >= q.deadline) return;
  q.deadline = c.overdue_at;
  s.timers.arm(timer_of(s, q), q.deadline);
}

namespace {

// The next number that the target is to answer although its request was given up.
void find_overdue(CoreState& s, const SendQueue& q, InitiatorContext& c) {
  for (Tassn t = c.answered.first(); t != c.next; ++t) {
    if (!c.answered.is_open(t) || alive_request(q, c.requests[slot_of(t)]) != nullptr) continue;
    c.overdue = t;
    c.overdue_at = s.now + q.request_timeout;
    return;
  }
  c.overdue_at = Instant::never();
}

}  // namespace

Instant end_overdue_context(CoreState& s, uint32_t queue) {
  const SendQueue& q = s.queues[queue];
  if (q.context == 0) return Instant::never();
  InitiatorContext& c = s.initiator_contexts[q.context];
  if (c.overdue_at > s.now) return c.overdue_at;
  if (c.answered.is_open(c.overdue)) {
    lose_context(s, queue, c.peer);
    return Instant::never();
  }
  find_overdue(s, q, c);
  return c.overdue_at;
}

void leave_context(CoreState& s, SendQueue& q) {
  if (q.context == 0) return;
  const InitiatorContext& c = s.initiator_contexts[q.context];
  // An answer names its queue and a number, and not the context. So where some may still come, there is no other one.
  const bool awaits_answers = c.answered.first() != c.next && setup::has_channels(s.peers[c.peer]);
  if (awaits_answers) q.rot = false;
  setup::send_context_free(s, c.peer, c.scid);
  s.initiator_contexts.free(q.context);
  q.context = 0;
}

void fill_number(CoreState& s, uint32_t queue, uint32_t channel, Tassn tassn) {
  const SendQueue& q = s.queues[queue];
  tp::Channel& ch = s.channels[channel];
  if (!room_for_answer(s, ch)) return lose_context(s, queue, ch.peer);
  tp::TxMessage* m = ch.answers.push(s.answers);
  UB_ASSERT(m != nullptr);
  *m = tp::TxMessage{};
  m->kind = tp::MessageKind::kFake;
  m->source = queue;
  m->generation = q.generation;
  m->tassn = tassn;
  m->value = scid_of(s, q);
  activate(s, channel);
}

void lose_context(CoreState& s, uint32_t queue, uint32_t peer) {
  SendQueue& q = s.queues[queue];
  if (q.context == 0 || s.initiator_contexts[q.context].peer != peer) return;
  for (uint32_t n = q.started_head; n != q.started_tail; ++n) {
    if (q.work[n & q.work_mask].in_context) give_up(s, queue, n, CrStatus::kAckTimeout);
  }
  leave_context(s, q);
}

}  // namespace ub::ta
