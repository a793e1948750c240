// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/oldest_requests.h"

#include "lib/base/flatten.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/send_completion.h"
#include "lib/transport/ta/waiting_requests.h"

namespace ub::ta {

namespace {

// Is a request of the queue over when its answer has come, with nothing else to do for it or for others?
bool ends_simply(const SendQueue& q) {
  return q.state == QueueState::kReady && !q.completes_early && !q.marker_pending && !has_earlier(q) && !q.waiter;
}

// It has one segment, which was sent by this channel, and nobody has said anything about it.
bool awaits_success(const WrState& wr, uint32_t channel) {
  return wr.channel == channel && wr.segments == 1 && wr.cut == 1 && wr.refused == 0 && wr.copies == 0 && !wr.done &&
         wr.status == CrStatus::kSuccess && !wr.blocks_target && !wr.in_context && !wr.asks && !wr.silent;
}

// Has the channel anything to do, or does it wait for something that may have come?
bool is_idle(const tp::Channel& ch) {
  return !ch.held_back && !ch.mid_message && ch.queues.empty() && ch.answers.empty() && ch.in_flight.empty() &&
         ch.repeats == 0;
}

}  // namespace

const Wqe* oldest_read(CoreState& s, uint32_t channel, uint32_t queue, Tassn tassn, uint64_t bytes) {
  const SendQueue& q = s.queues[queue];
  if (q.started_head == q.started_tail || !ends_simply(q)) [[unlikely]]
    return nullptr;
  const WrState& wr = q.work[q.started_head & q.work_mask];
  if (wr.first_tassn != tassn || !awaits_success(wr, channel)) [[unlikely]]
    return nullptr;
  const Wqe& wqe = wqe_of(q, wr);
  const bool fits = wqe.op == WrOp::kRead && wqe.length == bytes && wqe.sge_count == 1 && wqe.sge.length >= bytes;
  return fits ? &wqe : nullptr;
}

UB_FLATTEN uint32_t complete_oldest(CoreState& s, uint32_t channel, uint32_t queue, Tassn tassn, uint32_t answers) {
  SendQueue& q = s.queues[queue];
  if (!s.config.straight || !ends_simply(q)) [[unlikely]]
    return 0;
  tp::Channel& ch = s.channels[channel];
  uint32_t ended = 0;
  while (ended != answers && q.started_head != q.started_tail) {
    WrState& wr = q.work[q.started_head & q.work_mask];
    if (wr.first_tassn != tassn || !awaits_success(wr, channel)) [[unlikely]]
      break;
    const Wqe& wqe = wqe_of(q, wr);
    count_segment(q, wqe.op, -1);
    count_answer(s, ch);
    q.no_retry_before = Instant{};
    wr.base = 1;
    wr.done = true;
    ++tassn;
    ++ended;
    s.note(Stage::kRequestEnded, queue, q.started_head, static_cast<uint32_t>(wr.status));
    const auto describe = [&] { return send_completion(s, q, wr); };
    if (!complete_send(s, q, q.jfc, s.queue_waiters, queue, wqe, wr.slot + wqe.slots, wr.status, describe)) break;
    ++q.started_head;
  }
  return ended;
}

void go_on_behind_oldest(CoreState& s, uint32_t queue, uint32_t channel) {
  const SendQueue& q = s.queues[queue];
  if (q.started_head != q.started_tail && q.work[q.started_head & q.work_mask].done) retire_requests(s, queue);
  if (!is_idle(s.channels[channel])) tp::activate(s, channel);
  const bool has_more = q.next_slot != q.indices->produced.load(std::memory_order_relaxed);
  if (q.held_back || has_more || has_admitted(q)) schedule_queue(s, queue);
}

}  // namespace ub::ta
