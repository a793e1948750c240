// SPDX-License-Identifier: Apache-2.0
//
// The front of a send queue: finds the oldest element that is not started, passes or completes elements that need no
// packet, and moves an element to the started requests. The initiator and the datagram queues use it.
#pragma once

#include <utility>

#include "lib/transport/core_state.h"
#include "lib/transport/resource/owner_limits.h"
#include "lib/transport/ta/early_completion.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/send_ring.h"
#include "lib/transport/ta/waiting_requests.h"

namespace ub::ta {

// Elements that need no packet are not limited by the window. So at most kPassedSlots slots of them are passed while
// the clock (CoreState::now) stands still, and in all as many as the allowance of their owner pays for
// (resource/owner_limits.h).
constexpr uint32_t kPassedSlots = 32;

inline uint32_t timer_of(const CoreState& s, const SendQueue& q) {
  return s.timer_of_queue(static_cast<uint32_t>(&q - &s.queues[0]));
}

// May the queue pass an element that needs no packet? If not, its timer is set.
inline bool may_pass(CoreState& s, SendQueue& q, const Wqe& wqe) {
  Allowance* allowance = q.limits == nullptr ? nullptr : &q.limits->passing;
  if (allowance != nullptr && !allowance->has_any(s.now)) {
    allowance->charge(s.now, OwnerLimits::kPassedSlot);
    s.timers.arm(timer_of(s, q), allowance->ready_at());
    return false;
  }
  if (q.passed_at != s.now) {
    q.passed_at = s.now;
    q.passed_slots = 0;
    if (allowance != nullptr) allowance->charge(s.now, OwnerLimits::kPassedFirst);
  }
  if (q.passed_slots >= kPassedSlots) {
    s.timers.arm(timer_of(s, q), s.now + nanoseconds(1));
    return false;
  }
  q.passed_slots += wqe.slots;
  if (allowance != nullptr) allowance->charge(s.now, OwnerLimits::kPassedSlot * wqe.slots);
  return true;
}

// Does the pacer of the owner let a request start now? If not, the queue's timer is set.
inline bool pacer_allows(CoreState& s, const SendQueue& q) {
  if (q.limits == nullptr) return true;
  const Instant ready = q.limits->pacer.ready_at();
  if (ready <= s.now) return true;
  s.note(Stage::kRequestWaits, static_cast<uint32_t>(&q - &s.queues[0]), static_cast<uint32_t>(RequestWaits::kRate));
  s.timers.arm(timer_of(s, q), ready);
  return false;
}

inline bool room_for_segment(const SendQueue& q) { return q.unanswered_segments < kQueueSegmentsInFlight; }

// Are its TASSNs far enough from the oldest unanswered one? Old and new can be told apart in half of the numbers.
inline bool room_for_tassns(const SendQueue& q, uint32_t segments) {
  const WrState& oldest = q.work[q.started_head & q.work_mask];
  const uint32_t wanted = q.next_tassn.distance(oldest.first_tassn) + segments;
  if (wanted <= Tassn::kHalf) return true;
  return q.started_head == q.started_tail || wanted <= oldest.base + Tassn::kHalf;
}

// For a queue that is on no channel's list: must something wait for answers before it can be sent, or sent again? What
// was refused waits for its time, and what has to come after it does, too; messages are the only ones often refused.
inline bool waits_for_answers(const SendQueue& q) {
  if (!sends_admitted(q.state) || q.unanswered_segments == q.receives_refused) return false;
  const WrState& newest = q.work[(q.started_tail - 1) & q.work_mask];
  const bool left = has_earlier(q) || (!newest.done && newest.cut != newest.segments);
  return left || (q.state == QueueState::kReady && q.next_slot != q.produced);
}

// A segment leaves for the first time, and the rate of its owner pays for it.
[[gnu::noinline]] inline void charge_segment(const CoreState& s, const SendQueue& q, const Wqe& wqe,
                                             const tp::Channel& ch, uint32_t segment) {
  const uint32_t bytes = shape_of(wqe.op, wqe.length, ch.mtu, ch.segment_bytes, segment).bytes;
  if (segment == 0) {
    q.limits->charge(s.now, bytes);
  } else {
    q.limits->pacer.charge(s.now, bytes);
  }
}

// Moves the element at next_slot to the started requests, and gives it its TASSNs.
inline WrState& start_request(SendQueue& q, const Wqe& wqe, uint32_t channel, uint32_t segments) {
  WrState& wr = q.work[q.started_tail & q.work_mask];
  wr = WrState{};
  wr.slot = q.next_slot;
  wr.channel = channel;
  wr.segments = static_cast<uint16_t>(segments);
  wr.first_tassn = q.next_tassn;
  q.next_tassn += segments;
  wr.rnr_left = q.rnr_retry;
  wr.deadline = Instant::never();  // until its first segment is sent
  ++q.started_tail;
  q.next_slot += wqe.slots;
  return wr;
}

// The element at the front of the ring becomes a request of the channel.
inline WrState& admit(CoreState& s, SendQueue& q, const Wqe& wqe, uint32_t channel) {
  const tp::Channel& ch = s.channels[channel];
  const uint32_t segments = segment_count(wqe.op, wqe.length, ch.mtu, ch.segment_bytes);
  WrState& wr = start_request(q, wqe, channel, segments);
  if (q.next_tassn.value() < segments) [[unlikely]]
    note_wrap(s, q.rcid);
  return wr;
}

// Starts and finishes a request that needs no packet. False: no further one starts, because the queue has passed enough
// of them for now and its timer is set, or because the failure of this one suspended the queue.
inline bool start_finished(CoreState& s, SendQueue& q, const Wqe& wqe, CrStatus status) {
  if (!may_pass(s, q, wqe)) return false;
  WrState& wr = start_request(q, wqe, 0, 0);
  wr.done = true;
  if (status != CrStatus::kSuccess) fail_request(s, q, wr, status);
  on_ended(s, static_cast<uint32_t>(&q - &s.queues[0]), q.started_tail - 1);
  return q.state != QueueState::kSuspended;
}

// Is an order of its requests kept that others see, by its channel or target?
inline bool keeps_order(const SendQueue& q) { return q.pinned || q.rol || q.rot || q.context != 0; }

// Does the element name a target of the queue's owner?
inline bool names_target(const CoreState& s, const SendQueue& q, const Wqe& wqe) {
  if (wqe.target == 0 || wqe.target > s.targets.high_water()) return false;
  const Target& target = s.targets[wqe.target];
  return target.in_use && target.owner == q.owner;
}

// Is the result of an earlier READ or atomic still awaited, or on its way into memory? Then a fence is shut.
inline bool fence_holds(const SendQueue& q) {
  if (q.unanswered_fenced != 0 || q.copies_pending != 0) return true;
  return find_waiting(q, [&q](uint32_t n) { return is_fenced(wqe_of(q, q.work[n & q.work_mask]).op); });
}

// The filler at the front is behind the queue. If a request was started before it, that one's end tells so.
inline void pass_filler(SendQueue& q, const Wqe& filler) {
  q.next_slot += filler.slots;
  if (q.started_head == q.started_tail) q.indices->consumed.store(q.next_slot, std::memory_order_release);
}

// The oldest element that is not started, read and checked; nullptr: there is none, or none that may start now.
// `*may_look` is set once by the caller and cleared here: the index of the ring is read only once for each doorbell,
// because otherwise an application that goes on posting would keep us here for ever. What it posts later comes with
// another doorbell.
inline const Wqe* front_element(CoreState& s, SendQueue& q, bool* may_look) {
  for (;;) {
    if (q.next_slot == q.produced) {
      if (q.produced == q.posted && (!std::exchange(*may_look, false) || !see_posted(q))) return nullptr;
      fetch(q);
      if (q.next_slot == q.produced) return nullptr;
    }
    const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
    bool fits = fits_ring(q, q.next_slot, wqe);
    if (!fits && q.produced != q.posted) {  // its end may not have been fetched yet
      fetch(q);
      fits = fits_ring(q, q.next_slot, wqe);
    }
    if (wqe.op == WrOp::kSkip && fits) {
      if (!may_pass(s, q, wqe)) return nullptr;
      pass_filler(q, wqe);
      continue;
    }
    if (q.started_tail - q.started_head > q.work_mask) return nullptr;
    if (!fits || !valid_element(wqe)) {  // the elements behind it cannot be found either
      q.state = QueueState::kError;
      s.count(Counter::kBadElement);
      s.note(Stage::kElementRefused, static_cast<uint32_t>(&q - &s.queues[0]));
      push_event(s, EventKind::kJettyError, s.jettys[q.jetty].user_data, q.owner);
      return nullptr;
    }
    if ((wqe.flags & kWrDead) == 0) return &wqe;
    if ((wqe.flags & kWrFence) != 0 && fence_holds(q)) return nullptr;  // those behind it wait, too
    if (!start_finished(s, q, wqe, CrStatus::kAckTimeout)) return nullptr;
  }
}

// 8.2.2.3: what is posted in RESET ends with an error, in its turn.
inline void end_posted(CoreState& s, SendQueue& q, bool* may_look) {
  while (const Wqe* wqe = front_element(s, q, may_look)) {
    if (!start_finished(s, q, *wqe, CrStatus::kWrFlush)) return;
  }
}

}  // namespace ub::ta
