// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/scheduler.h"

#include "lib/base/flatten.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/setup/handshake.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/ta/begin_segment.h"
#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/datagram_queue.h"
#include "lib/transport/ta/gates.h"
#include "lib/transport/ta/queue_front.h"
#include "lib/transport/ta/refused_requests.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/routes.h"
#include "lib/transport/ta/set_up_ahead.h"
#include "lib/transport/ta/spread_segments.h"
#include "lib/transport/ta/target_order.h"
#include "lib/transport/ta/turns_by_priority.h"
#include "lib/transport/ta/waiting_list.h"
#include "lib/transport/ta/waiting_requests.h"

namespace ub::ta {

namespace {

enum class Step : uint8_t { kNone, kRetry, kContinue, kStart };

struct Choice {
  Step step = Step::kNone;
  uint32_t channel = 0;
  uint32_t number = 0;  // of the request, and of its segment: for kRetry and kContinue
  uint32_t segment = 0;
};

// Is a message that takes a receive unanswered? Until the answer comes, it may have been refused.
bool receive_under_way(const SendQueue& q) { return q.receives_in_flight != q.receives_refused; }

// Chooses the oldest refused request whose RNR time is over. Where receives keep their order, only the oldest request
// that takes a receive may be sent again, and only when no other one is under way; their answers lead back here.
Choice choose_retry(CoreState& s, SendQueue& q) {
  if (q.no_retry_before <= s.now) {
    bool ordered = keeps_receive_order(s, q);
    bool receive_waits = receive_under_way(q);  // asked for where they keep their order
    Instant next = Instant::never();
    uint32_t index = q.oldest_refused;
    for (uint32_t left = q.retries; left != 0; --left, index = q.work[index].newer_refused) {
      const WrState& wr = q.work[index];
      bool ordered_receive = ordered && takes_receive(wqe_of(q, wr).op);
      if (ordered_receive && receive_waits) continue;
      if (wr.retry_at <= s.now) {
        uint32_t first = wr.base;
        while ((wr.refused & segment_bit(first)) == 0) ++first;
        return {Step::kRetry, wr.channel, q.started_head + age_of(q, index), first};
      }
      next = earlier(next, wr.retry_at);
      receive_waits |= ordered_receive;
    }
    q.no_retry_before = next;  // until then a doorbell need not search again
  }
  s.timers.arm(timer_of(s, q), q.no_retry_before);
  return {};
}

// Where packets may be lost, the target keeps the results of so many TASSNs, and no more.
bool room_on_record(const SendQueue& q, const tp::Channel& ch, Tassn tassn) {
  return ch.repeats == 0 || target_remembers(q, tassn);
}

// ---- requests that were admitted -------------------------------------------------------------------------------

// What the next segment of an admitted request needs. There is one: not all were sent.
enum class NextSegment : uint8_t {
  kNone,   // nothing, because the request has failed
  kFull,   // answers to some of those in flight
  kWaits,  // a gate to open
  kReady,
};

[[gnu::noinline]] NextSegment next_segment(CoreState& s, SendQueue& q, uint32_t number, Choice* choice) {
  const WrState& wr = q.work[number & q.work_mask];
  if (wr.status != CrStatus::kSuccess) return NextSegment::kNone;
  if (!room_for_segment(q)) return NextSegment::kFull;
  const Wqe& wqe = wqe_of(q, wr);
  const tp::Channel& ch = s.channels[wr.channel];
  if (!room_on_record(q, ch, wr.first_tassn + wr.cut)) return NextSegment::kFull;
  const bool spread = spreads(s, q, wqe) && !ch.compact;
  const bool overtaken = spread || ch.repeats != 0;  // may the last segment be executed before another?
  const bool last_apart = (ends_apart(wqe.op) || (overtaken && wqe.op == WrOp::kWrite)) && wr.cut + 1 == wr.segments;
  if (last_apart && wr.base != wr.cut) return NextSegment::kWaits;
  if (wr.cut - wr.base >= static_cast<int>(kSegmentsInFlight)) return NextSegment::kFull;
  if (has_gate(wqe) && !gates_allow(s, q, wqe, number, wr.cut, wr.segments, ch)) {
    return NextSegment::kWaits;
  }
  if (!pacer_allows(s, q)) return NextSegment::kFull;
  *choice = {Step::kContinue, spread ? channel_of_next_segment(s, wr) : wr.channel, number, wr.cut};
  return NextSegment::kReady;
}

// Chooses the oldest waiting request whose gate has opened. What is full or shut for one of them may not be for the
// next. The two gates at which most wait are shut behind a request that waits there itself, so that those behind it
// need not ask.
bool choose_waiting(CoreState& s, SendQueue& q, Choice* choice) {
  bool ordered_waits = false, receive_waits = false;
  return find_waiting(q, [&](uint32_t number) {
    const WrState& wr = q.work[number & q.work_mask];
    const Wqe& wqe = wqe_of(q, wr);
    const bool shut = (ordered_waits && wqe.place_order >= 2) ||
                      (receive_waits && takes_receive(op_of_segment(wqe.op, wr.cut, wr.segments)));
    if (!shut && next_segment(s, q, number, choice) == NextSegment::kReady) return true;
    ordered_waits |= wqe.place_order != 0;
    receive_waits |= takes_receive(wqe.op);
    return false;
  });
}

// Looks at the newest admitted request. True: it is chosen, or those behind it have to wait until it goes on.
bool continue_newest(CoreState& s, SendQueue& q, Choice* choice) {
  const uint32_t newest = q.started_tail - 1;
  if (!newest_goes_on(q) || waits(q, newest)) return false;
  const NextSegment next = next_segment(s, q, newest, choice);
  if (next == NextSegment::kWaits) let_wait(q, newest);
  return next == NextSegment::kReady || next == NextSegment::kFull;
}

// Looks at them. True: one is chosen, or the newest one has to go on before those behind it.
[[gnu::noinline]] bool choose_admitted(CoreState& s, SendQueue& q, Choice* choice) {
  if (has_earlier(q)) {
    if (q.retries != 0) *choice = choose_retry(s, q);
    if (choice->step != Step::kNone || choose_waiting(s, q, choice)) return true;
  }
  return continue_newest(s, q, choice);
}

// ---- requests that were posted ---------------------------------------------------------------------------------

// The answer of receive_allows() where nothing of the queue waits or was refused, without a call.
bool receive_is_free(SendQueue& q, const Wqe& wqe, uint8_t lane) {
  if (has_earlier(q) || q.retry_next || (wqe.flags & kWrCompOrder) != 0) return false;
  if (q.receives_in_flight != 0 && lane != q.receive_lane) return false;
  q.receive_lane = lane;
  return true;
}

// Is a gate of this new request shut? Before its channel is up nobody asks, since its MTU is not agreed.
[[gnu::noinline]] bool has_to_wait(CoreState& s, SendQueue& q, const Wqe& wqe, uint32_t number, uint32_t channel) {
  const tp::Channel& ch = s.channels[channel];
  if (!ch.is_up()) return false;
  const uint32_t segments = segment_count(wqe.op, wqe.length, ch.mtu, ch.segment_bytes);
  return !gates_allow(s, q, wqe, number, 0, segments, ch);
}

// The element at the front of the ring becomes a request that waits; there is room for one.
[[gnu::noinline]] void admit_waiting(CoreState& s, SendQueue& q, const Wqe& wqe, uint32_t channel) {
  const uint32_t number = q.started_tail;
  let_wait(q, number);
  WrState& wr = admit(s, q, wqe, channel);
  if (q.rot) enter_order(s, q, wr, number, wqe, s.channels[channel]);
}

// Has the target room for what it has to remember of this request? Then the request has a place there. Only CTP and ROT
// ask.
[[gnu::noinline]] bool target_has_room(CoreState& s, const SendQueue& q, const Wqe& wqe, const tp::Channel& ch) {
  const bool has = room_on_record(q, ch, q.next_tassn) && (q.context == 0 || context_has_room(s, q, wqe, ch));
  if (has && ch.repeats != 0) hold_place(s, ch, q);
  return has || held_by(s, q, RequestWaits::kAnswers);
}

[[gnu::always_inline]] inline Choice choose_new(CoreState& s, SendQueue& q, bool* may_look) {
  while (const Wqe* front = front_element(s, q, may_look)) {
    const Wqe& wqe = *front;
    const uint32_t number = q.started_tail;
    if ((wqe.flags & kWrFence) != 0 && fence_holds(q)) {
      held_by(s, q, RequestWaits::kFence);
      return {};
    }
    if (!may_wait(q) || !room_for_segment(q) ||
        !room_for_tassns(q, most_segments(wqe.length, s.config.segment_bytes))) {
      held_by(s, q, RequestWaits::kAnswers);
      return {};
    }
    if (!pacer_allows(s, q)) return {};
    if (!result_fits(s, q)) {
      if (!start_finished(s, q, wqe, CrStatus::kLocAccess)) return {};  // now: an atomic must not run without a result
      continue;
    }
    if (wqe.op == WrOp::kNop) {
      if (!order_allows(s, q, wqe, number, nullptr) || !start_finished(s, q, wqe, CrStatus::kSuccess)) return {};
      continue;
    }
    if (!names_target(s, q, wqe)) {
      if (!start_finished(s, q, wqe, CrStatus::kLocOperation)) return {};
      continue;
    }
    const uint32_t peer = s.targets[wqe.target].peer;
    const LaneKind lane = lane_of_request(s, q, wqe);
    const uint32_t channel = setup::channel_to(s, peer, lane, place_of(s, q, lane));
    if (channel == 0) {
      if (is_compact(lane)) {
        setup::leave_compact(s, peer, lane);
        continue;
      }
      if (!start_finished(s, q, wqe, CrStatus::kAckTimeout)) return {};
      continue;
    }
    if (leaves_channel(q, channel)) {
      if (!is_compact(lane)) q.long_messages = true;  // it does not go back, or each change would cost a round trip
      held_by(s, q, RequestWaits::kLane);
      return {};
    }
    if (q.pinned) q.pinned_bulk = is_bulk(lane);  // and it stays so
    if ((is_compact(lane) || q.context != 0) && !target_has_room(s, q, wqe, s.channels[channel])) {
      if (lane_of_request(s, q, wqe) != lane) continue;  // the channel of CTP has just begun, and is not for this one
      return {};
    }
    if (takes_receive(wqe.op)) note_long_message(s.peers[peer], q, lane);
    const bool may_go = wqe.place_order < 2 && (!takes_receive(wqe.op) || receive_is_free(q, wqe, lane));
    if (!may_go && has_to_wait(s, q, wqe, number, channel)) {
      admit_waiting(s, q, wqe, channel);
      continue;
    }
    if (is_straight(wqe)) note_route(s, q, wqe, channel);
    return {Step::kStart, channel};
  }
  return {};
}

// choose() for a queue that starts no requests, but may have admitted some.
[[gnu::noinline, gnu::cold]] Choice choose_unready(CoreState& s, SendQueue& q, bool* may_look) {
  Choice choice;
  if (q.state == QueueState::kReset) end_posted(s, q, may_look);
  if (sends_admitted(q.state)) choose_admitted(s, q, &choice);
  return choice;
}

Choice choose(CoreState& s, SendQueue& q, bool* may_look) {
  if (q.state != QueueState::kReady) [[unlikely]]
    return choose_unready(s, q, may_look);
  if (has_admitted(q)) {
    Choice choice;
    if (choose_admitted(s, q, &choice)) return choice;
  }
  return choose_new(s, q, may_look);
}

void wait_for_channel(CoreState& s, uint32_t queue, uint32_t channel) {
  join_list(s, queue, channel);
  if (s.channels[channel].is_up()) activate(s, channel);
}

// A segment was sent for the first time.
void count_sent(SendQueue& q, WrState& wr, WrOp op, tp::TxMessage* m) {
  ++wr.cut;
  count_segment(q, op, 1);
  if (!takes_receive(op)) return;
  m->retry = q.retry_next;
  q.retry_next = false;
}

// The element at the front of the ring becomes a request, and its first segment a message of the channel.
const Wqe& commit_new(CoreState& s, uint32_t queue, uint32_t channel, tp::TxMessage* m) {
  SendQueue& q = s.queues[queue];
  tp::Channel& ch = s.channels[channel];
  const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
  const uint32_t number = q.started_tail;
  WrState& wr = admit(s, q, wqe, channel);
  describe_message(q, queue, number, 0, wr, ch, m);
  if (q.rot) [[unlikely]] {
    enter_order(s, q, wr, number, wqe, ch);
    describe_order(s, q, wr, m);
  }
  if (q.limits != nullptr) charge_segment(s, q, wqe, ch, 0);
  count_sent(q, wr, op_of_segment(wqe.op, 0, wr.segments), m);
  begin_deadline(s, q, wr);
  return wqe;
}

// The chosen segment of an admitted request becomes a message of its channel.
const Wqe& commit_admitted(CoreState& s, uint32_t queue, const Choice& choice, tp::TxMessage* m) {
  SendQueue& q = s.queues[queue];
  WrState& wr = q.work[choice.number & q.work_mask];
  const Wqe& wqe = wqe_of(q, wr);
  const WrOp op = op_of_segment(wqe.op, choice.segment, wr.segments);
  describe_message(q, queue, choice.number, choice.segment, wr, s.channels[choice.channel], m);
  if (q.rot) describe_order(s, q, wr, m);
  if (choice.step == Step::kRetry) {
    wr.refused &= ~segment_bit(choice.segment);
    if (wr.refused == 0) unlink_refused(q, wr);
    m->retry = !takes_receive(op) || q.retry_next || !keeps_receive_order(s, q);
    if (takes_receive(op)) {
      --q.receives_refused;
      q.retry_next = false;
    }
  } else {
    if (q.limits != nullptr) charge_segment(s, q, wqe, s.channels[choice.channel], choice.segment);
    count_sent(q, wr, op, m);
    if (wr.cut == wr.segments) stop_waiting(q, choice.number);
  }
  if (wr.deadline.is_never()) begin_deadline(s, q, wr);
  return wqe;
}

// Turns the choice into a message of its channel and updates the state of the request. Returns the request's element.
const Wqe& commit(CoreState& s, uint32_t queue, const Choice& choice, tp::TxMessage* m) {
  return choice.step == Step::kStart ? commit_new(s, queue, choice.channel, m) : commit_admitted(s, queue, choice, m);
}

// enlist() where the general path has to say what is next.
[[gnu::noinline]] void enlist_generally(CoreState& s, uint32_t queue, bool may_look) {
  SendQueue& q = s.queues[queue];
  for (;;) {
    uint32_t started = q.started_tail;
    Choice choice = choose(s, q, &may_look);
    bool finished_some = q.started_tail != started;
    if (finished_some) retire_requests(s, queue);
    if (choice.step != Step::kNone) {
      wait_for_channel(s, queue, choice.channel);
      if (!s.channels[choice.channel].is_up()) set_up_ahead(s, q);
      return;
    }
    if (!finished_some) return set_held_back(s, &q.held_back, waits_for_answers(q));
  }
}

// schedule_queue() for a queue that is on no list. Not inlined, because at most doorbells the queue is on a list.
[[gnu::noinline]] void enlist(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  set_held_back(s, &q.held_back, false);
  const bool looks = q.next_slot == q.posted;
  if (looks && see_posted(q)) fetch(q);
  const uint32_t channel = straight_channel(s, q, queue);
  if (channel == 0) return enlist_generally(s, queue, !looks);
  join_list(s, queue, channel);
  activate(s, channel);
}

// next_goes_along() on a channel of CTP, and where queues have priorities.
[[gnu::noinline]] bool stays_in_line(const CoreState& s, const SendQueue& q, const Wqe& next, const tp::Channel& ch) {
  if (outranks_last(s, ch.queues, q)) return false;
  return !ch.compact || fits_compact(s, q, next);
}

// Does the next posted request go to the same target and lane as this one? Whether it may start is decided at its turn.
// A filler says nothing of that: all but its first word is what was there before.
bool next_goes_along(const CoreState& s, const SendQueue& q, const Wqe& wqe, const tp::Channel& ch) {
  if (q.next_slot == q.produced || has_earlier(q)) return false;
  const Wqe& next = q.slots[q.next_slot & q.slot_mask];
  if (next.op == WrOp::kSkip) return false;
  const uint32_t small = s.config.lane_bulk_bytes;
  if (next.target != wqe.target || (next.length <= small) != (wqe.length <= small)) return false;
  return !ch.mixed_line || stays_in_line(s, q, next, ch);
}

// schedule_queue() for a queue of RM or RC; it goes to the end of the line.
[[gnu::always_inline]] inline void schedule_requests(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  // What may be sent now, of what waits or was refused, may need another channel than the one that the queue stands at.
  if (has_earlier(q)) leave_list(s, queue);
  if (q.waits_for == 0) return enlist(s, queue);
  if (!s.channels[q.waits_for].is_up()) set_up_ahead(s, q);
}

// The queue has had its turn at the channel with this request.
void stay_or_leave(CoreState& s, uint32_t queue, const Wqe& wqe, uint32_t channel) {
  tp::Channel& ch = s.channels[channel];
  if (next_goes_along(s, s.queues[queue], wqe, ch)) {
    line_up(s, ch.queues, queue, channel);
  } else {
    schedule_queue(s, queue);
  }
}

[[gnu::noinline]] void schedule_urgent(CoreState& s, uint32_t queue) {
  const SendQueue& q = s.queues[queue];
  const bool stays = q.waits_for != 0 && !has_earlier(q);
  schedule_requests(s, queue);
  if (!stays && q.waits_for != 0) move_up(s, queue);
}

}  // namespace

void schedule_queue(CoreState& s, uint32_t queue) {
  const SendQueue& q = s.queues[queue];
  if (q.takes_other_turns) [[unlikely]] {
    return q.unreliable ? schedule_datagrams(s, queue) : schedule_urgent(s, queue);
  }
  schedule_requests(s, queue);
}

namespace {

// start_next_segment() where the general path has to say what is next.
// Flattened, like on_answer(): a call costs as much as the work of most functions that are called here.
[[gnu::noinline]] UB_FLATTEN bool start_generally(CoreState& s, Lane& lane, uint32_t channel, tp::TxMessage* message) {
  tp::Channel& ch = s.channels[channel];
  while (!ch.queues.empty()) {
    const uint32_t queue = take_first(s, ch.queues);
    SendQueue& q = s.queues[queue];
    uint32_t started = q.started_tail;
    bool may_look = true;
    Choice choice = choose(s, q, &may_look);
    if (q.started_tail != started) retire_requests(s, queue);
    if (choice.channel != channel) {  // there is none, or it needs another one
      schedule_queue(s, queue);
      continue;
    }
    const Wqe& wqe = commit(s, queue, choice, message);
    ++lane.unanswered;
    stay_or_leave(s, queue, wqe, channel);
    return true;
  }
  return false;
}

}  // namespace

bool start_next_segment(CoreState& s, Lane& lane, uint32_t channel, tp::TxMessage* message) {
  tp::Channel& ch = s.channels[channel];
  if (lane.unanswered >= ch.most_unanswered || ch.queues.empty()) return false;
  return start_straight(s, lane, channel, message) || start_generally(s, lane, channel, message);
}

bool start_straight(CoreState& s, Lane& lane, uint32_t channel, tp::TxMessage* message) {
  tp::Channel& ch = s.channels[channel];
  const uint32_t queue = ch.queues.front<&SendQueue::in_line>(s.queues);
  SendQueue& q = s.queues[queue];
  if (straight_channel(s, q, queue) != channel || !result_fits(s, q)) return false;
  take_first(s, ch.queues);
  const Wqe& wqe = begin_straight(s, lane, queue, channel, message);
  // The index is read again, because a doorbell for a queue that stands in line leaves no trace.
  if (q.next_slot != q.indices->produced.load(std::memory_order_relaxed)) stay_or_leave(s, queue, wqe, channel);
  return true;
}

}  // namespace ub::ta
