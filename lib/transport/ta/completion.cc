// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/completion.h"

#include <algorithm>

#include "lib/base/flatten.h"
#include "lib/transport/ta/send_completion.h"
#include "lib/transport/ta/waiting_list.h"

namespace ub::ta {

namespace {

bool solicited(const Cqe& cqe) { return (cqe.flags & kCqeSolicited) != 0 || cqe.status != CrStatus::kSuccess; }

uint32_t consumed_of(const Jfc& j) {
  uint32_t consumed = j.indices->consumed.load(std::memory_order_acquire);
  // An impossible index counts as "nothing was consumed".
  return j.produced - consumed > j.mask + 1 ? j.produced - j.depth : consumed;
}

const WaiterKind& kind_of(const CoreState& s, uint32_t waiter) {
  const WaiterKind* kind = s.waiter_kinds;
  while (!kind->numbers.contains(waiter)) ++kind;
  return *kind;
}

// All waiters by number, in the form of a table that an IndexList can work on.
struct Waiters {
  const CoreState& s;
  Waiter& operator[](uint32_t waiter) const {
    const WaiterKind& kind = kind_of(s, waiter);
    return kind.waiter(kind.table, kind.numbers.index_of(waiter));
  }
};

void append_blocked(CoreState& s, uint32_t jfc) { s.blocked_jfcs.push_back<&Jfc::on_blocked_list>(s.jfcs, jfc); }

Cqe queue_completion(const CoreState& s, const SendQueue& q) {
  const Jetty& jetty = s.jettys[q.jetty];
  Cqe cqe{};
  cqe.opcode = CrOpcode::kNone;
  cqe.flags = jetty.kind == ObjectKind::kJetty ? kCqeJetty : 0;
  cqe.local_id = q.rcid;
  cqe.user_data = jetty.user_data;
  return cqe;
}

Armed armed(const Jfc& j) { return static_cast<Armed>(j.indices->armed.load(std::memory_order_relaxed)); }

// An event tells of what waits in an armed JFC, which is `j`.
void tell(CoreState& s, uint32_t jfc, const Jfc& j) {
  j.indices->armed.store(static_cast<uint32_t>(Armed::kNo), std::memory_order_relaxed);
  push_jfc_event(s, jfc, true);
}

// Completions of the kind that a moderated JFC was armed for wait in it. Tells of them if one of them must be told at
// once, or if they are enough; else their period begins, unless it has begun already. It is a function of its own, so
// that other JFCs pay only for the question whether they are moderated.
[[gnu::noinline, gnu::cold]] void tell_or_wait(CoreState& s, uint32_t jfc, bool at_once) {
  const Jfc& j = s.jfcs[jfc];
  const JfcModeration& m = s.moderations[jfc];
  const bool number_matters = m.count != 0 || m.period.ns == 0;
  // A JFC that is full gets no more, so no more than its depth are awaited, and none beside promised places.
  const uint32_t enough = std::clamp<uint32_t>(m.count, 1, j.depth);
  const uint32_t came = j.produced - j.indices->armed_at.load(std::memory_order_relaxed);
  const uint32_t timer = s.jfc_timers.of(jfc);
  if (at_once || j.full || (number_matters && came >= enough)) {
    s.timers.cancel(timer);
    tell(s, jfc, j);
  } else if (m.period.ns != 0) {
    s.timers.arm(timer, s.now + m.period);
  }
}

[[gnu::noinline, gnu::cold]] void say_full(CoreState& s, uint32_t jfc) {
  s.jfcs[jfc].full = true;
  s.note(Stage::kJfcFull, jfc);
  s.count(Counter::kJfcFull);
  push_jfc_event(s, jfc, false);
  const Jfc& j = s.jfcs[jfc];
  if (j.moderated && armed(j) == Armed::kAny && j.produced != consumed_of(j)) tell_or_wait(s, jfc, false);
}

}  // namespace

Cqe send_completion(const CoreState& s, const SendQueue& q, const WrState& wr) {
  Cqe cqe = queue_completion(s, q);
  cqe.tpn = wr.channel == 0 ? 0 : s.channels[wr.channel].tpn;
  return cqe;
}

bool jfc_has_room(CoreState& s, uint32_t jfc) {
  Jfc& j = s.jfcs[jfc];
  if (j.produced - consumed_of(j) + j.reserved < j.depth) {
    j.full = false;
    return true;
  }
  if (!j.full) say_full(s, jfc);
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
  const Armed wanted = armed(j);
  if (wanted != Armed::kNo && (wanted == Armed::kAny || j.solicited == 1)) {
    if (j.moderated) [[unlikely]]
      return tell_or_wait(s, jfc, j.solicited == 1);
    tell(s, jfc, j);
  }
}

namespace {

// Notes the requests that retire_requests() will retire. It is a function of its own because notes in that loop would
// cost more than one branch.
[[gnu::noinline, gnu::cold]] void note_ended(const CoreState& s, uint32_t queue) {
  const SendQueue& q = s.queues[queue];
  for (uint32_t n = q.started_head; n != q.started_tail; ++n) {
    const WrState& wr = q.work[n & q.work_mask];
    if (!wr.done || wr.copies != 0) return;
    if (wr.reported) continue;
    s.note(Stage::kRequestEnded, queue, n, static_cast<uint32_t>(wr.status));
  }
}

}  // namespace

UB_FLATTEN void retire_requests(CoreState& s, uint32_t queue) {
  if (s.looker.looks()) [[unlikely]]
    note_ended(s, queue);
  SendQueue& q = s.queues[queue];
  if (q.completes_early && q.waiter) [[unlikely]]
    return;  // report_all_ended() comes first
  while (q.started_head != q.started_tail) {
    const WrState& wr = q.work[q.started_head & q.work_mask];
    if (!wr.done || wr.copies != 0) return;
    UB_DCHECK(!wr.reported);
    const Wqe& wqe = q.slots[wr.slot & q.slot_mask];
    const auto describe = [&] { return send_completion(s, q, wr); };
    if (!complete_send(s, q, q.jfc, s.queue_waiters, queue, wqe, wr.slot + wqe.slots, wr.status, describe)) return;
    ++q.started_head;
  }
  if (q.marker_pending) {
    if (!jfc_has_room(s, q.jfc)) return wait_for_room(s, q.jfc, s.queue_waiters.of(queue));
    q.marker_pending = false;
    leave_list(s, queue);  // nothing of it is to be sent
    s.note(Stage::kQueueFlushed, queue);
    Cqe cqe = queue_completion(s, q);
    cqe.status = q.state == QueueState::kSuspended ? CrStatus::kWrSuspendDone : CrStatus::kWrFlushDone;
    push_completion(s, q.jfc, cqe);
  }
}

void wait_for_room(CoreState& s, uint32_t jfc, uint32_t waiter) {
  const Waiters all{s};
  if (all[waiter]) return;
  s.note(Stage::kCompletionWaits, jfc);
  s.jfcs[jfc].waiting.push_back<&Waiter::in_line>(all, waiter);
  if (!s.jfcs[jfc].on_blocked_list) append_blocked(s, jfc);
}

void stop_waiting(CoreState& s, uint32_t jfc, uint32_t waiter) {
  const Waiters all{s};
  if (all[waiter]) s.jfcs[jfc].waiting.remove<&Waiter::in_line>(all, waiter);
}

void resume_jfc(CoreState& s, uint32_t jfc) {
  Jfc& j = s.jfcs[jfc];
  if (j.waiting.empty() && !j.full) return;
  const uint32_t last = j.waiting.back();  // each waiter tries once, even if the application keeps making room
  for (uint32_t waiter = 0; jfc_has_room(s, jfc) && waiter != last;) {
    const Waiters all{s};
    waiter = j.waiting.pop_front<&Waiter::in_line>(all);
    const WaiterKind& kind = kind_of(s, waiter);
    kind.try_again(s, kind.engine, kind.numbers.index_of(waiter));
  }
}

void resume_next_jfc(CoreState& s) {
  const uint32_t jfc = s.blocked_jfcs.pop_front<&Jfc::on_blocked_list>(s.jfcs);
  if (s.jfcs[jfc].waiting.empty()) return;
  append_blocked(s, jfc);
  resume_jfc(s, jfc);
}

void check_armed(CoreState& s, uint32_t jfc) {
  Jfc& j = s.jfcs[jfc];
  const Armed wanted = armed(j);
  if (wanted == Armed::kNo) return;
  // The solicited completion is found by counting, not by a search in the ring: an application may arm very often.
  const uint32_t waiting = j.produced - consumed_of(j);
  const bool solicited_waits = j.solicited != 0 && j.solicited <= waiting;
  if (j.moderated && waiting == 0) s.timers.cancel(s.jfc_timers.of(jfc));  // the next one begins a period of its own
  if (wanted == Armed::kAny ? waiting == 0 : !solicited_waits) return;
  if (j.moderated) return tell_or_wait(s, jfc, solicited_waits);
  tell(s, jfc, j);
}

void end_period(CoreState& s, uint32_t jfc) {
  const Jfc& j = s.jfcs[jfc];
  if (armed(j) == Armed::kAny && j.produced != consumed_of(j)) tell(s, jfc, j);
}

}  // namespace ub::ta
