// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/early_completion.h"

#include <atomic>

#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/request_state.h"
#include "lib/transport/ta/send_completion.h"

namespace ub::ta {

namespace {

bool has_ended(const WrState& wr) { return wr.done && wr.copies == 0; }
bool is_silent(const WrState& wr, const Wqe& wqe) {
  return wr.reported || (wr.status == CrStatus::kSuccess && (wqe.flags & kWrSignaled) == 0);
}

// Has the request nothing to do but to retire in its turn?
bool may_retire(const SendQueue& q, uint32_t number) {
  const WrState& wr = q.work[number & q.work_mask];
  return has_ended(wr) && is_silent(wr, wqe_of(q, wr));
}

// How many requests from the oldest on retire when the oldest one does.
uint32_t retiring_with_the_oldest(const SendQueue& q) {
  uint32_t n = q.started_head + 1;
  while (n != q.started_tail && may_retire(q, n)) ++n;
  return n - q.started_head;
}

void retire_from_the_oldest(SendQueue& q) {
  for (; q.started_head != q.started_tail && may_retire(q, q.started_head); ++q.started_head) {
    const WrState& wr = q.work[q.started_head & q.work_mask];
    retire(*q.indices, wr.slot + wqe_of(q, wr).slots, 1);
  }
}

// The element of a reported request is marked where the application can read it: if a daemon dies, the application's
// process completes what the daemon has not, and has nothing else to go by.
void mark_reported(const SendQueue& q, WrState& wr) {
  wr.reported = true;
  if (q.source == nullptr) return;
  std::atomic_ref(q.source[wr.slot & q.slot_mask].flags).fetch_or(kWrReported, std::memory_order_release);
}

}  // namespace

void report_ended(CoreState& s, uint32_t queue, uint32_t number) {
  SendQueue& q = s.queues[queue];
  WrState& wr = q.work[number & q.work_mask];
  if (!has_ended(wr)) return;
  const Wqe& wqe = wqe_of(q, wr);
  if (!is_silent(wr, wqe)) {
    if (q.waiter) return;  // report_all_ended() comes to it
    if (!jfc_has_room(s, q.jfc)) return wait_for_room(s, q.jfc, s.queue_waiters.of(queue));
    s.note(Stage::kRequestEnded, queue, number, static_cast<uint32_t>(wr.status));
    const uint32_t retired = q.indices->retired.load(std::memory_order_relaxed);
    Cqe cqe = send_completion(s, q, wr);
    say_how_it_ended(cqe, wqe, wr.status, retired + (number - q.started_head) + 1);
    // Whoever has polled all his completions finds all his places free.
    if (number == q.started_head) {
      q.indices->retiring.store(retired + retiring_with_the_oldest(q), std::memory_order_relaxed);
    }
    push_completion(s, q.jfc, cqe);
    mark_reported(q, wr);
  }
  if (number == q.started_head) retire_from_the_oldest(q);
}

void report_ended_before(CoreState& s, uint32_t queue, uint32_t end, uint32_t segments) {
  const SendQueue& q = s.queues[queue];
  uint32_t from = end;
  while (from != q.started_head && segments != 0) {
    --from;
    if (q.work[from & q.work_mask].segments != 0) --segments;  // a NOP has none
  }
  for (uint32_t n = from; n != end; ++n) report_ended(s, queue, n);
}

void report_all_ended(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  for (uint32_t n = q.started_head; n != q.started_tail; ++n) report_ended(s, queue, n);
}

}  // namespace ub::ta
