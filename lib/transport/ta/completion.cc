// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/completion.h"

#include <utility>

#include "lib/transport/resource/receives.h"
#include "lib/transport/roce/completion.h"
#include "lib/transport/roce/state.h"

namespace ub::ta {

namespace {

bool solicited(const Cqe& cqe) { return (cqe.flags & kCqeSolicited) != 0 || cqe.status != CrStatus::kSuccess; }

uint32_t consumed_of(const Jfc& j) {
  uint32_t consumed = j.indices->consumed.load(std::memory_order_acquire);
  // An index that cannot be is read as "nothing consumed".
  return j.produced - consumed > j.mask + 1 ? j.produced - j.depth : consumed;
}

// How a send queue, JFR or queue pair is linked into the ring of those that wait for a JFC.
struct Link {
  uint32_t& next;
  bool& waits;
};

Link link_of(CoreState& s, uint32_t waiter) {
  if ((waiter & kWaitingJfr) != 0) {
    Jfr& r = s.jfrs[waiter & ~kWaitingJfr];
    return {r.next_waiting, r.waits};
  }
  if ((waiter & kWaitingQp) != 0) {
    roce::Qp& qp = s.roce->qps[waiter & ~kWaitingQp];
    return {qp.next_waiting, qp.waits};
  }
  SendQueue& q = s.queues[waiter];
  return {q.next_waiting, q.waits};
}

// Takes the one behind `before` out of the ring; it waits no more.
uint32_t take_next(CoreState& s, Jfc& j, uint32_t before) {
  uint32_t& next = link_of(s, before).next;
  const uint32_t waiter = next;
  Link link = link_of(s, waiter);
  link.waits = false;
  next = link.next;
  if (j.waiting == waiter) j.waiting = before == waiter ? 0 : before;
  return waiter;
}

void append_blocked(CoreState& s, uint32_t jfc) { s.blocked_jfcs.push_back<&Jfc::on_blocked_list>(s.jfcs, jfc); }

Cqe send_completion(const CoreState& s, const SendQueue& q) {
  const Jetty& jetty = s.jettys[q.jetty];
  Cqe cqe{};
  cqe.opcode = CrOpcode::kNone;
  cqe.flags = jetty.kind == ObjectKind::kJetty ? kCqeJetty : 0;
  cqe.local_id = q.rcid;
  cqe.user_data = jetty.user_data;
  return cqe;
}

}  // namespace

bool jfc_has_room(CoreState& s, uint32_t jfc) {
  Jfc& j = s.jfcs[jfc];
  if (j.produced - consumed_of(j) + j.reserved < j.depth) {
    j.full = false;
    return true;
  }
  if (!j.full) {
    j.full = true;
    s.count(Counter::kJfcFull);
    push_jfc_event(s, jfc, false);
  }
  return false;
}

void push_completion(CoreState& s, uint32_t jfc, const Cqe& cqe) {
  Jfc& j = s.jfcs[jfc];
  j.slots[j.produced & j.mask] = cqe;
  ++j.produced;
  j.indices->produced.store(j.produced, std::memory_order_release);
  if (solicited(cqe)) {
    j.solicited = 1;
  } else if (j.solicited != 0) {
    ++j.solicited;
  }
  auto armed = static_cast<Armed>(j.indices->armed.load(std::memory_order_relaxed));
  if (armed != Armed::kNo && (armed == Armed::kAny || j.solicited == 1)) {
    j.indices->armed.store(static_cast<uint32_t>(Armed::kNo), std::memory_order_relaxed);
    push_jfc_event(s, jfc, true);
  }
}

[[gnu::flatten]] void retire_requests(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  while (q.started_head != q.started_tail) {
    const WrState& wr = q.work[q.started_head & q.work_mask];
    if (!wr.done || wr.copies != 0) return;
    const Wqe& wqe = q.slots[wr.slot & q.slot_mask];
    if (wr.status != CrStatus::kSuccess || (wqe.flags & kWrSignaled) != 0) {
      if (!jfc_has_room(s, q.jfc)) return wait_for_room(s, q.jfc, queue);
      Cqe cqe = send_completion(s, q);
      cqe.user_ctx = wqe.user_ctx;
      cqe.status = wr.status;
      cqe.length = wqe.length;
      cqe.tpn = wr.channel == 0 ? 0 : s.channels[wr.channel].tpn;
      const uint32_t retiring = q.indices->retired.load(std::memory_order_relaxed) + 1;
      cqe.stamp = static_cast<uint8_t>(retiring);
      q.indices->retiring.store(retiring, std::memory_order_relaxed);
      push_completion(s, q.jfc, cqe);
    }
    uint32_t end = wr.slot + wqe.slots;
    ++q.started_head;
    // In this order: whoever finds the queue of a daemon that died in between does not complete the request again.
    q.indices->consumed.store(end, std::memory_order_release);
    q.indices->retired.store(q.indices->retired.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  if (q.flush_done_pending) {
    if (!jfc_has_room(s, q.jfc)) return wait_for_room(s, q.jfc, queue);
    q.flush_done_pending = false;
    Cqe cqe = send_completion(s, q);
    cqe.status = CrStatus::kWrFlushDone;
    push_completion(s, q.jfc, cqe);
  }
}

void wait_for_room(CoreState& s, uint32_t jfc, uint32_t waiter) {
  Link link = link_of(s, waiter);
  if (link.waits) return;
  link.waits = true;
  Jfc& j = s.jfcs[jfc];
  link.next = waiter;
  if (j.waiting != 0) std::swap(link.next, link_of(s, j.waiting).next);
  j.waiting = waiter;
  if (!j.on_blocked_list) append_blocked(s, jfc);
}

void stop_waiting(CoreState& s, uint32_t jfc, uint32_t waiter) {
  Link link = link_of(s, waiter);
  if (!link.waits) return;
  uint32_t before = link.next;
  while (link_of(s, before).next != waiter) before = link_of(s, before).next;
  take_next(s, s.jfcs[jfc], before);
}

void resume_jfc(CoreState& s, uint32_t jfc) {
  Jfc& j = s.jfcs[jfc];
  if (j.waiting == 0 && !j.full) return;
  const uint32_t last = j.waiting;  // each once, however fast the application makes room
  for (uint32_t waiter = 0; jfc_has_room(s, jfc) && j.waiting != 0 && waiter != last;) {
    waiter = take_next(s, j, j.waiting);
    if ((waiter & kWaitingJfr) != 0) {
      flush_receives(s, waiter & ~kWaitingJfr);
    } else if ((waiter & kWaitingQp) != 0) {
      roce::retire_requests(s, *s.roce, waiter & ~kWaitingQp);
    } else {
      retire_requests(s, waiter);
    }
  }
}

void resume_next_jfc(CoreState& s) {
  const uint32_t jfc = s.blocked_jfcs.pop_front<&Jfc::on_blocked_list>(s.jfcs);
  if (s.jfcs[jfc].waiting == 0) return;
  append_blocked(s, jfc);
  resume_jfc(s, jfc);
}

void check_armed(CoreState& s, uint32_t jfc) {
  Jfc& j = s.jfcs[jfc];
  auto armed = static_cast<Armed>(j.indices->armed.load(std::memory_order_relaxed));
  if (armed == Armed::kNo) return;
  // Counted, not looked for in the ring: an application may arm as often as it likes.
  const uint32_t waiting = j.produced - consumed_of(j);
  if (armed == Armed::kAny ? waiting == 0 : j.solicited == 0 || j.solicited > waiting) return;
  j.indices->armed.store(static_cast<uint32_t>(Armed::kNo), std::memory_order_relaxed);
  push_jfc_event(s, jfc, true);
}

}  // namespace ub::ta
