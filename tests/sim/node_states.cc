// SPDX-License-Identifier: Apache-2.0
//
// What an application changes while requests are under way: the states of its queues (8.2.2.3), from READY to ERROR or
// RESET and back, and the tokens of its regions and receive queues.
#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace ub::sim {
namespace {

constexpr uint64_t kPauseNs = 50'000;  // until a queue tries again to leave RESET

bool fresh(const Queue& q) { return q.unfinished() == 0 && q.indices->produced.load() == q.indices->consumed.load(); }

}  // namespace

void Node::change_state(uint32_t id, QueueState state) {
  const Status s = core_->set_state(turn(), id, state);
  if (s != Status::kOk)
    world_.model.fail("node %u: id %u does not get to state %u: status %u", index_, id, static_cast<unsigned>(state),
                      static_cast<unsigned>(s));
}

// From now on messages to it vanish.
void Node::stop_taking(Queue* q) {
  if (q->jfr == nullptr) return;
  world_.model.receiver_dropping({q, q->jfr});
  q->silent_since = world_.model.tick();
  q->dropped_before = counter(Counter::kRxTargetNotReady);
}

void Node::stop_taking(Jfr* r) {
  world_.model.receiver_dropping({nullptr, r});
  for (const auto& app : apps_)
    for (Queue* q : app->queues)
      if (q->jfr == r) world_.model.receiver_dropping({q, r});
  r->silent_since = world_.model.tick();
  r->dropped_before = counter(Counter::kRxTargetNotReady);
}

void Node::flush(Queue* q, bool comes_back) {
  if (!q->takes_requests()) return;
  world_.trace("node %u: queue %u is set to ERROR", index_, q->uid);
  world_.model.queue_flushing(q);
  stop_taking(q);
  q->state = Queue::State::kFlushing;
  q->comes_back = comes_back && !q->qp;
  if (q->qp) {
    world_.model.broken(q);
    if (core_->roce()->modify_qp(turn(), q->id, {.qp_state = roce::QpState::kError}, 0) != Status::kOk)
      world_.model.fail("node %u: queue pair %u does not get to ERROR", index_, q->uid);
    watch_broken(q);
    return drive();
  }
  change_state(q->id, QueueState::kError);
  drive();
}

void Node::flush(Jfr* r, bool for_a_time) {
  if (!r->alive || r->in_error || r->in_reset) return;
  world_.trace("node %u: receive queue %u is set to ERROR", index_, r->uid);
  stop_taking(r);
  r->in_error = true;
  r->will_revive = for_a_time;
  for (Receive& receive : r->posted) receive.may_flush = true;
  change_state(r->id, QueueState::kError);
  drive();
}

void Node::revive(Jfr* r) {
  if (!up() || r->epoch != epoch_ || !r->alive || !(r->in_error || r->in_reset)) return;
  if (r->in_reset) poll_before_ready(r->jfc);
  world_.trace("node %u: receive queue %u is set to READY", index_, r->uid);
  if (r->in_reset && world_.reached)
    world_.reached->reach(ReachedState::kResetDrops, counter(Counter::kRxTargetNotReady) != r->dropped_before);
  change_state(r->id, QueueState::kReady);
  r->in_error = r->in_reset = false;
  r->silent_since = UINT64_MAX;
  refill(r, true);
  drive();
}

void Node::finish_flush(Queue* q) {
  take_back(q);
  world_.model.flush_finished(q);
  if (world_.failed()) return;
  if (!q->comes_back) return destroy(q);
  q->comes_back = false;
  world_.trace("node %u: queue %u comes back from ERROR", index_, q->uid);
  change_state(q->id, QueueState::kReset);
  q->state = Queue::State::kReset;
  leave_reset_later(q, 1 + world_.rng.below(kPauseNs));
}

// A queue that a failure has suspended must have been taken back first.
void Node::reset(Queue* q) {
  if (q->qp || q->state != Queue::State::kReady || core_->state(q->id) != QueueState::kReady) return;
  world_.trace("node %u: queue %u is set to RESET, %u requests under way", index_, q->uid, q->unfinished());
  if (world_.reached) world_.reached->before_reset(core_->state(), *q);
  world_.model.queue_resetting(q);
  stop_taking(q);
  q->state = Queue::State::kReset;
  change_state(q->id, QueueState::kReset);
  drive();
}

void Node::reset(Jfr* r) {
  if (!r->alive || r->in_error || r->in_reset) return;
  world_.trace("node %u: receive queue %u is set to RESET", index_, r->uid);
  stop_taking(r);
  r->in_reset = true;
  change_state(r->id, QueueState::kReset);
  drive();
}

// What has come in spite of RESET can be told from what comes afterwards only before it ends.
void Node::poll_before_ready(Jfc* jfc) {
  if (world_.rng.chance(0.5)) poll(jfc, UINT32_MAX);
}

// READY, unless a request that has ended finds no room for its completion: then somewhat later.
void Node::leave_reset(Queue* q) {
  if (!up() || q->epoch != epoch_ || q->state != Queue::State::kReset || !app_alive(q->app)) return;
  if (q->jfr != nullptr) poll_before_ready(q->recv_jfc != nullptr ? q->recv_jfc : q->jfr->jfc);
  const Status s = core_->set_state(turn(), q->id, QueueState::kReady);
  if (s != (fresh(*q) ? Status::kOk : Status::kBusy))
    return world_.model.fail(
        "node %u: queue %u in RESET has %u requests that did not end, and set_state(READY) says %u", index_, q->uid,
        q->unfinished(), static_cast<unsigned>(s));
  if (world_.reached) {
    world_.reached->reach(ReachedState::kResetIsFull, s == Status::kBusy);
    world_.reached->reach(ReachedState::kResetDrops,
                          q->jfr != nullptr && counter(Counter::kRxTargetNotReady) != q->dropped_before);
  }
  if (s == Status::kBusy) {
    leave_reset_later(q, kPauseNs);
    return drive();
  }
  world_.trace("node %u: queue %u is set to READY", index_, q->uid);
  q->state = Queue::State::kReady;
  q->silent_since = UINT64_MAX;
  drive();
}

void Node::leave_reset_later(Queue* q, uint64_t within_ns) {
  world_.after(nanoseconds(static_cast<int64_t>(within_ns)), [this, q] { leave_reset(q); });
}

// ---- tokens (9.4, 11.4) ----------------------------------------------------------------------------------------

void Node::replace_token(Region* r, uint32_t by) {
  world_.trace("node %u: region %u gets another token", index_, r->uid);
  r->token.replace(by);
  if (core_->set_segment_token(r->registered.handle, by, r->token.former) != Status::kOk)
    world_.model.fail("node %u: region %u gets no other token", index_, r->uid);
}

void Node::replace_token(Jfr* r, uint32_t by) {
  world_.trace("node %u: receive queue %u gets another token", index_, r->uid);
  r->token.replace(by);
  if (core_->set_queue_token(r->id, by, r->token.former) != Status::kOk)
    world_.model.fail("node %u: receive queue %u gets no other token", index_, r->uid);
}

void Node::withdraw_token(Region* r) {
  if (!up() || r->epoch != epoch_ || r->state != Region::State::kLive) return;
  world_.trace("node %u: the former token of region %u is withdrawn", index_, r->uid);
  r->token.state = RotatingToken::Former::kWithdrawn;
  world_.model.token_withdrawn(r);
  if (core_->set_segment_token(r->registered.handle, r->token.value, r->token.value) != Status::kOk)
    world_.model.fail("node %u: the former token of region %u is not withdrawn", index_, r->uid);
}

void Node::withdraw_token(Jfr* r) {
  if (!up() || r->epoch != epoch_ || !r->alive) return;
  world_.trace("node %u: the former token of receive queue %u is withdrawn", index_, r->uid);
  r->token.state = RotatingToken::Former::kWithdrawn;
  world_.model.token_withdrawn(r);
  if (core_->set_queue_token(r->id, r->token.value, r->token.value) != Status::kOk)
    world_.model.fail("node %u: the former token of receive queue %u is not withdrawn", index_, r->uid);
}

}  // namespace ub::sim
