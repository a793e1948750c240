// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/giving_up.h"

#include <bit>

#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/datagram_queue.h"
#include "lib/transport/ta/early_completion.h"
#include "lib/transport/ta/queue_front.h"
#include "lib/transport/ta/refused_requests.h"
#include "lib/transport/ta/repeated_requests.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/scheduler.h"
#include "lib/transport/ta/sent_messages.h"
#include "lib/transport/ta/silent_requests.h"
#include "lib/transport/ta/target_order.h"
#include "lib/transport/ta/waiting_list.h"
#include "lib/transport/ta/waiting_requests.h"

namespace ub::ta {

namespace {

// Ends what is half sent of the request on the channels that carried it, except the one that it began on. In place of
// one that died there may be none: channel 0 has sent nothing.
void stop_on_other_channels(CoreState& s, uint32_t queue, uint32_t number, const WrState& wr) {
  const tp::Channel& began = s.channels[wr.channel];
  for (uint32_t left = wr.places & ~began.place_bit; left != 0; left &= left - 1) {
    stop_request(s, lane_of(s, began).channels[std::countr_zero(left)], queue, number);
  }
}

// No answer to its unanswered segments is awaited any more, and what was not sent of them is not sent.
void give_up_segments(CoreState& s, uint32_t queue, uint32_t number, WrState& wr) {
  SendQueue& q = s.queues[queue];
  const WrOp op_of_request = wqe_of(q, wr).op;
  const tp::Channel& ch = s.channels[wr.channel];
  for (uint32_t segment = wr.base; segment < wr.cut; ++segment) {
    if ((wr.answered & segment_bit(segment)) != 0) continue;
    const WrOp op = op_of_segment(op_of_request, segment, wr.segments);
    count_segment(q, op, -1);
    if ((wr.refused & segment_bit(segment)) != 0) {
      if (takes_receive(op)) --q.receives_refused;
    } else {
      count_answer(s, ch);
    }
  }
  stop_request(s, wr.channel, queue, number);
  stop_on_other_channels(s, queue, number, wr);
}

}  // namespace

void give_up(CoreState& s, uint32_t queue, uint32_t number, CrStatus status) {
  SendQueue& q = s.queues[queue];
  WrState& wr = q.work[number & q.work_mask];
  if (wr.done) return;
  s.note(Stage::kRequestGivenUp, queue, number, static_cast<uint32_t>(status));
  wr.done = true;
  fail_request(s, q, wr, status);
  if (wr.refused != 0) unlink_refused(q, wr);
  if (q.waiting != 0) stop_waiting(q, number);
  q.no_retry_before = Instant{};
  if (wr.blocks_target) q.retry_next = true;
  if (wr.asks) ask_no_more(s, q, wr);
  note_given_up(s, q, wr);
  if (q.unreliable) return give_up_held_datagram(s, queue);
  give_up_segments(s, queue, number, wr);
  on_ended(s, queue, number);
}

namespace {

// Until when the request may wait because its message stands behind older ones, and the peer has acknowledged something
// of those; an Instant that has passed: it does not wait so, or for too long.
Instant waits_in_line_until(CoreState& s, uint32_t queue, uint32_t number, const WrState& wr) {
  const Duration patience = s.queues[queue].request_timeout;
  Instant until{};
  for (const uint32_t channel : lane_of(s, s.channels[wr.channel]).channels) {
    tp::Channel& ch = s.channels[channel];
    if (channel == 0 || ch.compact || (wr.places & ch.place_bit) == 0) continue;
    Instant progress{};
    const bool in_line = ch.in_flight.find(s.messages, [&](const tp::TxMessage& m) {
      const WrState* const other = m.kind == tp::MessageKind::kRequest ? request_of(s, m) : nullptr;
      if (other == nullptr) return false;
      if (m.source == queue && m.work_request == number) return true;
      if (!other->deadline.is_never()) {
        progress = later(progress, other->deadline - s.queues[m.source].request_timeout);
      }
      return false;
    });
    if (in_line) until = later(until, progress + patience);
  }
  return until;
}

// Ends the requests whose deadline has passed, and finds the next deadline.
void end_overdue(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  q.deadline = Instant::never();
  uint32_t timed_out_on = 0;  // the channel of the last request that timed out; other channels die by their own timers
  for (uint32_t n = q.started_head; n != q.started_tail; ++n) {
    WrState& wr = q.work[n & q.work_mask];
    if (wr.done) continue;
    if (wr.deadline <= s.now) wr.deadline = later(wr.deadline, waits_in_line_until(s, queue, n, wr));
    if (wr.deadline <= s.now) {
      s.count(Counter::kTaTimeout);
      timed_out_on = wr.channel;
      give_up(s, queue, n, CrStatus::kAckTimeout);
      continue;
    }
    q.deadline = earlier(q.deadline, wr.deadline);
  }
  q.deadline = earlier(q.deadline, end_overdue_context(s, queue));
  if (timed_out_on != 0) setup::end_if_silent(s, timed_out_on);
}

}  // namespace

void on_queue_timer(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  if (!q.in_use) return;
  // Mostly the timer fires for a retry, or to continue work in a long ring that was interrupted.
  if (!q.unreliable) {
    if (q.deadline <= s.now) end_overdue(s, queue);
    s.timers.arm(s.timer_of_queue(queue), q.deadline);
    if (q.silent != 0) ask_for_silent(s, queue);
  }
  retire_requests(s, queue);
  schedule_queue(s, queue);
}

namespace {

// Would the channel `ch`, which died, have been the one to carry the request, which was posted and not started?
bool was_for(const CoreState& s, const SendQueue& q, const Wqe& wqe, const tp::Channel& ch) {
  return lane_of_request(s, q, wqe) == ch.lane && place_of(s, q, ch.lane) == ch.place() &&
         (ch.repeats == 0 || has_place(s.repeats[ch.repeats], q));
}

// Marks requests that were posted and not started, and that need the channel `ch`, which died.
void mark_dead(CoreState& s, SendQueue& q, const tp::Channel& ch) {
  fetch_all(q);
  for (uint32_t at = q.next_slot; at != q.produced;) {
    Wqe& wqe = q.slots[at & q.slot_mask];
    if (!fits_ring(q, at, wqe)) return;
    if (wqe.op != WrOp::kSkip && wqe.op != WrOp::kNop && wqe.target != 0 && wqe.target <= s.targets.high_water() &&
        s.targets[wqe.target].peer == ch.peer) {
      if (was_for(s, q, wqe, ch) || !setup::has_channels(s.peers[ch.peer])) wqe.flags |= kWrDead;
    }
    at += wqe.slots;
  }
}

}  // namespace

namespace {

// Did this channel carry segments of the request?
bool carried(const CoreState& s, const WrState& wr, uint32_t channel) {
  if (wr.channel == channel) return true;
  const tp::Channel &began = s.channels[wr.channel], &ch = s.channels[channel];
  return began.peer == ch.peer && began.lane == ch.lane && (wr.places & ch.place_bit) != 0;
}

}  // namespace

void fail_channel_requests(CoreState& s, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  while (!ch.queues.empty()) take_first(s, ch.queues);
  for (uint32_t queue = 1; queue <= s.queues.high_water(); ++queue) {
    SendQueue& q = s.queues[queue];
    if (!q.in_use) continue;
    for (uint32_t n = q.started_head; n != q.started_tail; ++n) {
      const WrState& wr = q.work[n & q.work_mask];
      if (carried(s, wr, channel)) give_up(s, queue, n, CrStatus::kAckTimeout);
    }
    if (q.context != 0) lose_context(s, queue, ch.peer);
    if (!q.unreliable) mark_dead(s, q, ch);
  }
}

void go_on_without_channel(CoreState& s) {
  for (uint32_t queue = 1; queue <= s.queues.high_water(); ++queue) {
    if (!s.queues[queue].in_use) continue;
    retire_requests(s, queue);
    schedule_queue(s, queue);
  }
}

namespace {

// The queue has another state, in which nothing is sent: all that was started ends.
void end_started(CoreState& s, uint32_t queue, QueueState state) {
  SendQueue& q = s.queues[queue];
  set_held_back(s, &q.held_back, false);
  q.state = state;
  s.note(Stage::kQueueState, queue, static_cast<uint32_t>(state));
  for (uint32_t n = q.started_head; n != q.started_tail; ++n) give_up(s, queue, n, CrStatus::kWrFlush);
  leave_context(s, q);
  q.deadline = Instant::never();
}

}  // namespace

void flush_queue(CoreState& s, uint32_t queue) {
  end_started(s, queue, QueueState::kError);
  s.queues[queue].marker_pending = true;
  retire_requests(s, queue);
}

void reset_queue(CoreState& s, uint32_t queue) {
  end_started(s, queue, QueueState::kReset);
  leave_list(s, queue);
  retire_requests(s, queue);
  schedule_queue(s, queue);
}

uint32_t take_unhandled(CoreState& s, uint32_t queue, Cqe* out, uint32_t room) {
  SendQueue& q = s.queues[queue];
  if (!hands_back(q.state) || q.marker_pending) return 0;
  fetch_all(q);
  const Jetty& jetty = s.jettys[q.jetty];
  uint32_t n = 0;
  while (q.next_slot != q.produced && n < room) {
    const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
    if (!fits_ring(q, q.next_slot, wqe)) break;
    q.next_slot += wqe.slots;
    if (wqe.op != WrOp::kSkip) {
      Cqe& cqe = out[n++];
      cqe = Cqe{};
      cqe.user_ctx = wqe.user_ctx;
      cqe.status = CrStatus::kWrUnhandled;
      cqe.opcode = CrOpcode::kNone;
      cqe.flags = jetty.kind == ObjectKind::kJetty ? kCqeJetty : 0;
      cqe.local_id = q.rcid;
      cqe.length = wqe.length;
      cqe.user_data = jetty.user_data;
    }
    retire(*q.indices, q.next_slot, wqe.op == WrOp::kSkip ? 0 : 1);
  }
  return n;
}

}  // namespace ub::ta
