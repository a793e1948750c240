// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/datagram_queue.h"

#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/queue_front.h"
#include "lib/transport/ta/waiting_list.h"

namespace ub::ta {

namespace {

constexpr Duration kHoldingPause = microseconds(100);

// How a request of UM is carried out.
struct Way {
  uint32_t link;  // the link to send on; 0: no packet is sent, and the request ends with `status`
  CrStatus status;
  bool lost;  // its link is gone: it succeeds like a datagram that the network loses
};

Way way_of(const CoreState& s, const SendQueue& q, const Wqe& wqe) {
  if (wqe.op == WrOp::kNop) return {0, CrStatus::kSuccess, false};
  if (wqe.op != WrOp::kSend && wqe.op != WrOp::kSendImm) return {0, CrStatus::kUnsupportedOpcode, false};
  if (!names_target(s, q, wqe)) return {0, CrStatus::kLocOperation, false};
  const uint32_t link = s.peers[s.targets[wqe.target].peer].path.link;
  if (link == 0) return {0, CrStatus::kSuccess, true};
  if (wqe.length > s.links[link].config.mtu) return {0, CrStatus::kLocLen, false};
  return {link, CrStatus::kSuccess, false};
}

// May the queue hold a datagram, if that becomes necessary? If not, its timer is set, and the queue must not stand on
// the link's list meanwhile, where it would hold up others.
bool may_hold(CoreState& s, const SendQueue& q) {
  if (!s.config.slow_memory) return true;
  const uint32_t held = s.held_datagrams_of[q.owner];
  if (held < kHeldDatagramsOfOwner && has_share(s.held_datagrams.places, held)) return true;
  Instant at = s.now + kHoldingPause;
  if (q.limits != nullptr) {
    q.limits->passing.charge(s.now, OwnerLimits::kPassedSlot);
    at = later(at, q.limits->passing.ready_at());
  }
  s.timers.arm(timer_of(s, q), at);
  return false;
}

void drop_from_active_links(CoreState& s, uint32_t link) {
  if (!s.links[link].on_active_list) return;
  s.active_links.remove<&LinkRecord::on_active_list>(s.links, link);
}

}  // namespace

uint32_t next_datagram(CoreState& s, SendQueue& q) {
  bool may_look = true;
  if (q.state == QueueState::kReset) end_posted(s, q, &may_look);
  if (!sends_admitted(q.state)) return 0;
  // A queue holds at most one datagram, so that datagrams are sent in the order in which they were posted.
  if (q.held != 0) return s.held[q.held].pending == 0 ? s.held[q.held].link : 0;
  if (q.state == QueueState::kSuspended) return 0;
  while (const Wqe* wqe = front_element(s, q, &may_look)) {
    if (!pacer_allows(s, q)) return 0;
    const Way way = way_of(s, q, *wqe);
    if (way.link != 0) return may_hold(s, q) ? way.link : 0;
    if (!start_finished(s, q, *wqe, way.status)) return 0;
    if (way.lost) s.count(Counter::kUmTxNoPath);
  }
  return 0;
}

void schedule_datagrams(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  if (q.waits_for != 0) return;
  const uint32_t started = q.started_tail;
  const uint32_t link = next_datagram(s, q);
  if (q.started_tail != started) retire_requests(s, queue);
  if (link == 0) {
    q.deadline = Instant::never();
    return;
  }
  if (q.deadline.is_never()) q.deadline = s.now + q.request_timeout;
  join_list(s, queue, link | kWaitsForLink);
  activate_link(s, link);
}

WrState& start_datagram(CoreState& s, SendQueue& q) {
  const Wqe& wqe = q.slots[q.next_slot & q.slot_mask];
  if (q.limits != nullptr) q.limits->charge(s.now, wqe.length);
  return start_request(q, wqe, 0, 1);
}

void finish_datagram(CoreState& s, uint32_t queue, CrStatus status) {
  SendQueue& q = s.queues[queue];
  WrState& wr = q.work[(q.started_tail - 1) & q.work_mask];
  if (status != CrStatus::kSuccess) fail_request(s, q, wr, status);
  wr.done = true;
  retire_requests(s, queue);
}

HeldFrame& take_held_datagram(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  q.held = s.held_datagrams.take();
  ++s.held_datagrams_of[q.owner];
  HeldFrame& h = s.held.take_number(q.held, q.held);
  h.item = queue;
  return h;
}

void release_held_datagram(CoreState& s, uint32_t queue) {
  SendQueue& q = s.queues[queue];
  s.held.free(s.held[q.held]);
  s.held_datagrams.give_back(q.held);
  --s.held_datagrams_of[q.owner];
  q.held = 0;
}

void give_up_held_datagram(CoreState& s, uint32_t queue) {
  const SendQueue& q = s.queues[queue];
  UB_DCHECK(q.held != 0);  // a datagram that was started and has not ended is held
  s.held.orphan(s.held[q.held]);
  release_held_datagram(s, queue);
}

void leave_link(CoreState& s, uint32_t link) {
  drop_from_active_links(s, link);
  for (uint32_t i = 1; i <= s.held_datagrams.places.high_water(); ++i) {
    const uint32_t number = s.held_datagrams.numbers.of(i);
    if (!s.held.in_use(number) || s.held[number].link != link) continue;
    const uint32_t queue = s.held[number].item;
    give_up_held_datagram(s, queue);
    s.count(Counter::kUmTxNoPath);
    finish_datagram(s, queue, CrStatus::kSuccess);
    schedule_datagrams(s, queue);
  }
  while (!s.links[link].queues.empty()) {
    const uint32_t queue = take_first(s, s.links[link].queues);
    schedule_datagrams(s, queue);  // the peers' paths no longer name the link
  }
}

}  // namespace ub::ta
