// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs of an instance: made, connected, and let go when they are in ERROR.
#include <bit>

#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace ub::sim {

Queue* Node::add_qp(App& app, Jfc* jfc, Jfr* jfr, const QpSpec& spec) {
  auto q = std::make_unique<Queue>();
  q->uid = world_.next_uid();
  q->node = index_;
  q->app = app.uid;
  q->owner = app.owner;
  q->epoch = epoch_;
  q->kind = ObjectKind::kQp;
  q->mode = Mode::kRc;
  q->qp = true;
  q->srq = spec.srq;
  q->jfc = jfc;
  q->jfr = jfr;
  q->recv_jfc = spec.own_recv_jfc ? jfc : nullptr;
  q->depth = spec.depth;
  q->rnr_retry = spec.rnr_retry;
  q->slot_count = std::bit_ceil(spec.slots);
  q->slots.reset(new Wqe[q->slot_count]());
  if (spec.fetched) q->source.reset(new Wqe[q->slot_count]());
  q->work = make_bytes(roce::Engine<SimHost>::work_bytes(spec.depth), true);
  roce::QpConfig c;
  c.sq = {.slots = q->slots.get(),
          .source = q->source.get(),
          .slot_count = q->slot_count,
          .depth = q->depth,
          .indices = q->indices.get(),
          .work = q->work.get(),
          .jfc = jfc->handle};
  c.jfr = jfr->id;
  c.srq = spec.srq;
  c.recv_jfc = q->recv_jfc != nullptr ? jfc->handle : 0;
  c.user_data = q->uid;
  c.owner = app.owner;
  if (core_->roce()->create_qp(c, &q->id) != Status::kOk) world_.model.fail("node %u: create_qp was refused", index_);
  jfr->of_qp = true;
  world_.model.add_queue(q.get(), epoch_);
  app.queues.push_back(q.get());
  world_.queues.push_back(std::move(q));
  return app.queues.back();
}

void Node::connect(Queue* q, uint32_t psn, uint32_t peer_psn, uint8_t rnr_timer) {
  using namespace roce;
  const WorkloadOptions& o = world_.options.work;
  const Node& peer = world_.node(q->peer->node);
  QpAttributes a;
  a.path_mtu = code_of_mtu(o.roce_mtu);
  a.dest_qp_num = q->peer->id;
  a.rq_psn = peer_psn;
  a.sq_psn = psn;
  a.qp_access_flags = kAccessRead | kAccessWrite | kAccessAtomic;
  a.ah_attr = {link_, at_.ip, peer.at_.ip, 0};
  a.max_rd_atomic = a.max_dest_rd_atomic = o.roce_reads;
  a.min_rnr_timer = rnr_timer;
  a.timeout = o.roce_timeout;
  a.retry_cnt = world_.options.mild() || world_.strict ? 7 : o.roce_retry_cnt;
  a.rnr_retry = q->rnr_retry;
  const std::pair<QpState, uint32_t> steps[] = {
      {QpState::kInit, kQpPkey | kQpPort | kQpAccess},
      {QpState::kRtr, kQpPath | kQpMtu | kQpDestination | kQpReceivePsn | kQpReadsServed | kQpRnrTimer},
      {QpState::kRts, kQpSendPsn | kQpTimeout | kQpRetries | kQpRnrRetries | kQpReadsInFlight}};
  for (auto [state, mask] : steps) {
    a.qp_state = state;
    if (core_->roce()->modify_qp(world_.now(), q->id, a, mask) != Status::kOk)
      world_.model.fail("node %u: queue pair %u did not get to %s", index_, q->uid, qp_state_name(state));
  }
}

// In ERROR: everything comes back, the peer learns of it by what it sends, or because somebody tells it.
void Node::watch_broken(Queue* q) {
  const uint32_t epoch = epoch_;
  world_.after(nanoseconds(static_cast<int64_t>(1 + world_.rng.below(3'000'000))), [this, q, epoch] {
    if (!up() || epoch_ != epoch || q->state == Queue::State::kGone || !app_alive(q->app)) return;
    if (q->unfinished() == 0 && q->jfc->waiting() == 0) world_.model.all_retired(q);
    if (world_.model.outstanding_of(q) != 0 || (!q->srq && !q->jfr->posted.empty())) return watch_broken(q);
    Queue* peer = q->peer;
    destroy(q);
    if (!q->srq) destroy(q->jfr);
    drive();
    Node& other = world_.node(peer->node);
    if (other.up() && other.epoch() == peer->epoch && other.app_alive(peer->app) && world_.rng.chance(0.5)) {
      other.flush(peer);
    }
  });
}

}  // namespace ub::sim
