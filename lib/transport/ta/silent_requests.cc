// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/silent_requests.h"

#include "lib/transport/ta/early_completion.h"
#include "lib/transport/ta/packet_content.h"
#include "lib/transport/ta/queue_answer.h"
#include "lib/transport/ta/receive_answer.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/wire/response_status.h"

namespace ub::ta {

namespace {

bool is_newest(const SendQueue& q, const tp::TxMessage& m) { return m.work_request + 1 == q.started_tail; }

// Does nobody wait for the answer?
bool matters_little(const WrState& wr, const Wqe& wqe) {
  return wqe.op == WrOp::kWrite && wr.segments == 1 && (wqe.flags & kWrSignaled) == 0;
}

// Will an answer come, whatever becomes of the request? A message to a receiver that is not ready has none.
bool brings_answer(const Wqe& wqe) { return !takes_receive(wqe.op); }

// Is so much left of the ring and of the window of the lane that neither fills up before an answer makes room?
bool has_plenty(const CoreState& s, const SendQueue& q, const tp::Channel& ch) {
  const uint32_t started = q.started_tail - q.started_head;
  return started <= (q.work_mask + 1) / 2 && s.peers[ch.peer].lanes[ch.lane].unanswered <= ch.most_unanswered / 2;
}

}  // namespace

bool is_silent(const CoreState& s, const tp::Channel& ch, const tp::TxMessage& m) {
  if (m.kind != tp::MessageKind::kRequest || m.retry) return false;
  const SendQueue& q = s.queues[m.source];
  const WrState& wr = q.work[m.work_request & q.work_mask];
  return matters_little(wr, wqe_of(q, wr)) && is_newest(q, m) && q.silent != kMostSilent && has_plenty(s, q, ch);
}

void note_left(CoreState& s, const tp::TxMessage& m, bool silent) {
  if (m.kind != tp::MessageKind::kRequest) return;
  SendQueue& q = s.queues[m.source];
  WrState& wr = q.work[m.work_request & q.work_mask];
  if (!silent) {
    if (is_newest(q, m) && brings_answer(wqe_of(q, wr))) q.silent = 0;  // it tells of all before it
    return;
  }
  s.count(Counter::kCtpTxSilent);
  wr.silent = true;
  if (q.silent++ == 0) s.timers.arm(s.timer_of_queue(m.source), s.now + kAskAfter);
}

void end_silent_before(CoreState& s, uint32_t channel, const wire::Atah& answer) {
  wire::Atah last = answer;  // of those that it answers
  if (wire::says_success(answer.rspst)) last.tassn += answer.rspinfo;
  AnsweredSegment a;
  if (!find_segment(s, channel, last, &a)) return;
  a.wr->silent = false;  // it has an answer of its own
  SendQueue& q = s.queues[a.queue];
  bool ended = false;
  for (uint32_t n = q.started_head; n != a.number; ++n) {
    WrState& wr = q.work[n & q.work_mask];
    if (!wr.silent || wr.done || wr.channel != channel) continue;
    end_segment(s, {a.queue, n, &wr, 0}, CrStatus::kSuccess);
    on_ended(s, a.queue, n);
    ended = true;
  }
  if (ended) go_on(s, a.queue, channel);
}

namespace {

// The newest silent request of the queue; started_tail: all have ended.
uint32_t newest_silent(const SendQueue& q) {
  for (uint32_t n = q.started_tail; n != q.started_head;) {
    const WrState& wr = q.work[--n & q.work_mask];
    if (wr.silent && !wr.done) return n;
  }
  return q.started_tail;
}

}  // namespace

void ask_for_silent(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  const uint32_t number = newest_silent(q);
  if (number != q.started_tail) {
    const WrState& wr = q.work[number & q.work_mask];
    tp::Channel& ch = s.channels[wr.channel];
    tp::TxMessage* m = has_chunks(s, ch) ? ch.answers.push(s.answers) : nullptr;
    if (m == nullptr) return s.timers.arm(s.timer_of_queue(queue), s.now + kAskAfter);
    *m = tp::TxMessage{};
    m->kind = tp::MessageKind::kFake;
    m->source = queue;
    m->generation = q.generation;
    m->work_request = number;
    m->tassn = wr.first_tassn;
    activate(s, wr.channel);
  }
  q.silent = 0;
}

wire::TaPacket question(const CoreState& s, const tp::TxMessage& m) {
  return empty_write(m.tassn, wire::kRcTypeSq, s.queues[m.source].rcid);
}

}  // namespace ub::ta
