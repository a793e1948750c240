// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/receive_answer.h"

#include "lib/base/flatten.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/early_completion.h"
#include "lib/transport/ta/oldest_requests.h"
#include "lib/transport/ta/refused_requests.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/target_order.h"
#include "lib/transport/ta/waiting_requests.h"
#include "lib/transport/wire/response_status.h"

namespace ub::ta {

namespace {

// The last started request whose first TASSN is this one or an earlier one. At least one request must be started;
// `likely` is a started request that is tried first.
uint32_t request_at(const SendQueue& q, Tassn tassn, uint32_t likely) {
  const WrState& guess = q.work[likely & q.work_mask];
  if (tassn.distance(guess.first_tassn) < guess.cut) return likely;
  const Tassn origin = q.work[q.started_head & q.work_mask].first_tassn;
  const uint32_t wanted = tassn.distance(origin);
  uint32_t low = q.started_head, high = q.started_tail;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    (q.work[middle & q.work_mask].first_tassn.distance(origin) <= wanted ? low : high) = middle;
  }
  return low;
}

// May the answer to what one channel carried come by the other?
bool same_way(const tp::Channel& request, const tp::Channel& answer) {
  return request.peer == answer.peer && request.compact == answer.compact;
}

// find_segment() in a known queue. Answers mostly come in order, so the request `likely` is tried first.
bool find_in_queue(CoreState& s, uint32_t channel, uint32_t queue, uint32_t likely, Tassn tassn, AnsweredSegment* out) {
  const SendQueue& q = s.queues[queue];
  if (q.started_head == q.started_tail) return false;
  const uint32_t number = request_at(q, tassn, likely == q.started_tail ? q.started_head : likely);
  WrState& wr = q.work[number & q.work_mask];
  uint32_t segment = tassn.distance(wr.first_tassn);
  if (wr.done || segment < wr.base || segment >= wr.cut) return false;
  if (wr.channel != channel && !same_way(s.channels[wr.channel], s.channels[channel])) return false;
  if (((wr.answered | wr.refused) & segment_bit(segment)) != 0) return false;
  *out = {queue, number, &wr, segment};
  return true;
}

// The same for the request of this number in a sequence context. It has one segment.
bool find_numbered(CoreState& s, uint32_t queue, uint32_t number, Tassn tassn, AnsweredSegment* out) {
  SendQueue& q = s.queues[queue];
  if (number - q.started_head >= q.started_tail - q.started_head) return false;
  WrState& wr = q.work[number & q.work_mask];
  const bool awaited = !wr.done && wr.in_context && wr.context_tassn == tassn && wr.cut != 0;
  if (!awaited || (wr.refused & segment_bit(0)) != 0) return false;
  *out = {queue, number, &wr, 0};
  return true;
}

bool is_about_context(const wire::Atah& answer) { return answer.rc_type == wire::kRcTypeSequenceContext; }

}  // namespace

bool find_segment(CoreState& s, uint32_t channel, const wire::Atah& answer, AnsweredSegment* out) {
  const uint32_t queue = queue_of(s, answer.rc_id);
  if (queue == 0) return false;
  if (is_about_context(answer)) {
    uint32_t number;
    return find_in_context(s, s.queues[queue], channel, answer.tassn, &number) &&
           find_numbered(s, queue, number, answer.tassn, out);
  }
  return find_in_queue(s, channel, queue, s.queues[queue].started_head, answer.tassn, out);
}

void note_response(CoreState& s, uint32_t channel, const wire::Atah& answer, bool awaited) {
  const uint32_t queue = is_about_context(answer) ? queue_of(s, answer.rc_id) : 0;
  uint32_t number;
  if (queue == 0 || !find_in_context(s, s.queues[queue], channel, answer.tassn, &number)) return;
  answered_in_context(s, s.queues[queue], answer.tassn);
  if (!awaited) schedule_queue(s, queue);
}

void end_segment(CoreState& s, const AnsweredSegment& a, CrStatus status) {
  SendQueue& q = s.queues[a.queue];
  WrState& wr = *a.wr;
  tp::Channel& ch = s.channels[wr.channel];
  const Wqe& wqe = wqe_of(q, wr);
  count_segment(q, op_of_segment(wqe.op, a.segment, wr.segments), -1);
  q.no_retry_before = Instant{};
  count_answer(s, ch);
  wr.answered |= segment_bit(a.segment);
  while (wr.base < wr.cut && (wr.answered & segment_bit(wr.base)) != 0) {
    wr.answered &= ~segment_bit(wr.base);
    ++wr.base;
  }
  if (status != CrStatus::kSuccess) fail_request(s, q, wr, status);
  wr.done = wr.base == (wr.status == CrStatus::kSuccess ? wr.segments : wr.cut);
  if (wr.done) {
    if (q.waiting != 0) stop_waiting(q, a.number);
  } else {
    renew_deadline(s, q, wr);
  }
}

void go_on(CoreState& s, uint32_t queue, uint32_t channel) {
  retire_requests(s, queue);
  activate(s, channel);
  schedule_queue(s, queue);
}

void finish_segment(CoreState& s, const AnsweredSegment& a, CrStatus status) {
  const uint32_t channel = a.wr->channel;
  s.note(Stage::kRequestAnswered, a.queue, a.number, static_cast<uint32_t>(status));
  end_segment(s, a, status);
  on_ended(s, a.queue, a.number);
  go_on(s, a.queue, channel);
}

void refuse_segment(CoreState& s, const AnsweredSegment& a, Duration pause) {
  SendQueue& q = s.queues[a.queue];
  WrState& wr = *a.wr;
  WrOp op = wqe_of(q, wr).op;
  s.count(wr.channel, ChannelCount::kRnrReceived);
  s.note(Stage::kRequestRefused, a.queue, a.number);
  tp::Channel& ch = s.channels[wr.channel];
  count_answer(s, ch);
  if (takes_receive(op)) {
    bool ordered = keeps_receive_order(s, q);
    // RC: only the oldest unanswered request uses up a retry and carries BTAH.Retry: the target refuses the ones behind
    // it because it refused that one.
    bool oldest = !ordered || oldest_receive(q, a.number) == a.number;
    if (ordered && oldest) q.retry_next = wr.blocks_target = true;
    if (oldest && q.rnr_retry < 7) {
      if (wr.rnr_left == 0) {
        ++lane_of(s, ch).unanswered;  // because finish_segment() counts the answer, too
        return finish_segment(s, a, CrStatus::kRnrRetryExceeded);
      }
      --wr.rnr_left;
    }
  }
  if (wr.refused == 0) link_refused(q, a.number);
  wr.refused |= segment_bit(a.segment);
  renew_deadline(s, q, wr);
  if (takes_receive(op_of_segment(op, a.segment, wr.segments))) ++q.receives_refused;
  q.no_retry_before = Instant{};
  wr.retry_at = s.now + pause;
  schedule_queue(s, a.queue);  // which sets the timer
}

CrStatus error_status(const CoreState& s, const AnsweredSegment& a, uint8_t rspinfo) {
  if (rspinfo == wire::kErrRemoteAbort) return CrStatus::kRemAccessAbort;
  // A malformed request and a receive that is too small have the same code; the operation tells them apart.
  const SendQueue& q = s.queues[a.queue];
  return takes_receive(wqe_of(q, *a.wr).op) ? CrStatus::kRemOperation : CrStatus::kRemUnsupported;
}

namespace {

// An answer that grants a sequence context. It has the name of that in place of the TASSN, so it is for the request
// that asks, if that awaits one.
void on_grant(CoreState& s, uint32_t channel, const wire::Atah& answer, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  const WrState* asking = asking_request(q);
  AnsweredSegment a;
  const bool awaited = asking != nullptr && q.context == 0 && answer.rspst == wire::kRspOk &&
                       find_in_queue(s, channel, queue, q.asked_by, asking->first_tassn, &a);
  if (!awaited) return s.drop(Counter::kTaRxStaleAnswer);
  begin_context(s, q, *asking, answer.tassn.value());
  finish_segment(s, a, CrStatus::kSuccess);
}

// An answer to requests of a sequence context, or to the one that asked for it.
[[gnu::noinline]] void on_context_answers(CoreState& s, uint32_t channel, const wire::Atah& answer, uint32_t queue) {
  if (answer.sv) return on_grant(s, channel, answer, queue);
  SendQueue& q = s.queues[queue];
  Tassn tassn = answer.tassn;
  const uint32_t answers = wire::says_success(answer.rspst) ? answer.rspinfo + 1 : 1;
  const bool refused = answer.rspst == wire::kRspRnr || answer.rspst == wire::kRspPageFault;
  bool goes_on = false;
  for (uint32_t i = 0; i < answers; ++i, ++tassn) {
    uint32_t number;
    if (!find_in_context(s, q, channel, tassn, &number)) {
      s.drop(Counter::kTaRxStaleAnswer);
      continue;
    }
    AnsweredSegment a;
    const bool awaited = find_numbered(s, queue, number, tassn, &a);
    if (!refused) answered_in_context(s, q, tassn);
    // Also after the answer to a request that was given up, since others may wait for its number; and where a number is
    // to be filled and there is no room for that, all requests of the context have ended.
    goes_on |= !awaited || !refused;
    if (!awaited) {
      s.drop(Counter::kTaRxStaleAnswer);
      if (refused) fill_number(s, queue, channel, tassn);
    } else if (refused) {
      refuse_segment(s, a, wire::refusal_duration(answer.rspst, answer.rspinfo));
    } else {
      const bool success = wire::says_success(answer.rspst);
      if (!success) s.count(Counter::kTaRxError);
      end_segment(s, a, success ? CrStatus::kSuccess : error_status(s, a, answer.rspinfo));
      on_ended(s, queue, a.number);
    }
  }
  if (goes_on) go_on(s, queue, channel);
}

}  // namespace

UB_FLATTEN void on_answer(CoreState& s, uint32_t channel, const wire::Atah& answer) {
  const uint32_t more = wire::says_success(answer.rspst) ? answer.rspinfo : 0;
  const uint32_t queue = queue_of(s, answer.rc_id);
  if (queue == 0) return s.count(Counter::kTaRxStaleAnswer, more + 1);
  if (answer.sv || is_about_context(answer)) [[unlikely]]
    return on_context_answers(s, channel, answer, queue);
  s.note(Stage::kTransactionsAnswered, queue, answer.tassn.value(), more + 1, answer.rspst);
  uint32_t first = 0;  // of the segments that are not completed yet
  if (wire::says_success(answer.rspst)) {
    first = complete_oldest(s, channel, queue, answer.tassn, more + 1);
    if (first == more + 1) return go_on_behind_oldest(s, queue, channel);
  }
  uint32_t likely = s.queues[queue].started_head;
  bool ended = first != 0;
  for (uint32_t i = first; i <= more; ++i) {
    AnsweredSegment a;
    if (!find_in_queue(s, channel, queue, likely, answer.tassn + i, &a)) {
      s.drop(Counter::kTaRxStaleAnswer);
      continue;
    }
    switch (answer.rspst) {
      case wire::kRspOk:
      case wire::kRspReceived:
        end_segment(s, a, CrStatus::kSuccess);
        ended = true;
        break;
      case wire::kRspRnr:
      case wire::kRspPageFault:
        refuse_segment(s, a, wire::refusal_duration(answer.rspst, answer.rspinfo));
        break;
      default:
        s.count(Counter::kTaRxError);
        end_segment(s, a, error_status(s, a, answer.rspinfo));
        ended = true;
    }
    likely = a.wr->done ? a.number + 1 : a.number;
  }
  if (!ended) return;
  on_ended_before(s, queue, likely, more + 1);
  go_on(s, queue, channel);
}

}  // namespace ub::ta
