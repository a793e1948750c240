// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs of an instance: made, connected, and let go when they are in ERROR.
#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace ub::sim {
namespace {

bool is_header(const std::vector<std::byte>& grh, const wire::IpAddress& from, const wire::IpAddress& to) {
  const size_t bytes = from.is_v4() ? 4 : 16;
  const size_t sources = roce::kGrhBytes - 2 * bytes;
  const auto holds = [&](size_t at, const wire::IpAddress& ip) {
    return std::memcmp(grh.data() + at, ip.bytes.data() + 16 - bytes, bytes) == 0;
  };
  const size_t first = from.is_v4() ? roce::kGrhBytes - wire::kIpv4Size : 0;
  const bool zeros = std::all_of(grh.begin(), grh.begin() + static_cast<ptrdiff_t>(first),
                                 [](std::byte b) { return b == std::byte{}; });
  return zeros && (grh[first] >> 4) == (from.is_v4() ? std::byte{4} : std::byte{6}) && holds(sources, from) &&
         holds(sources + bytes, to);
}

}  // namespace

Queue* Node::add_qp(App& app, Jfc* jfc, Jfr* jfr, const QpSpec& spec) {
  auto q = std::make_unique<Queue>();
  q->uid = world_.next_uid();
  q->node = index_;
  q->app = app.uid;
  q->owner = app.owner;
  q->epoch = epoch_;
  q->kind = ObjectKind::kQp;
  q->mode = spec.type == roce::QpType::kUd ? Mode::kUm : Mode::kRc;
  q->qp = true;
  q->qkey = spec.qkey;
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
  c.type = spec.type;
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
    if (core_->roce()->modify_qp(turn(), q->id, a, mask) != Status::kOk)
      world_.model.fail("node %u: queue pair %u did not get to %s", index_, q->uid, qp_state_name(state));
  }
}

void Node::get_ready(Queue* q) {
  using namespace roce;
  QpAttributes a;
  a.qkey = q->qkey;
  a.qp_access_flags = kAccessRead | kAccessWrite | kAccessAtomic;
  a.sq_psn = 0xFFFFFF - static_cast<uint32_t>(world_.rng.below(100));
  const auto step = [&](QpState state, uint32_t mask) {
    a.qp_state = state;
    if (core_->roce()->modify_qp(turn(), q->id, a, mask) != Status::kOk)
      world_.model.fail("node %u: queue pair %u did not get to %s", index_, q->uid, qp_state_name(state));
  };
  if (!q->ud()) return step(QpState::kInit, kQpPkey | kQpPort | kQpAccess);
  step(QpState::kInit, kQpPkey | kQpPort | kQpQkey);
  step(QpState::kRtr, 0);
  step(QpState::kRts, kQpSendPsn);
}

uint32_t Node::address_handle(Owner owner, uint32_t node) {
  uint32_t& ah = address_handles_[{owner, node}];
  const roce::AhAttributes path{link_, at_.ip, world_.node(node).at_.ip, 0};
  if (ah == 0 && core_->roce()->create_ah({path, owner}, &ah) != Status::kOk)
    world_.model.fail("node %u: create_ah was refused", index_);
  return ah;
}

void Node::drop_address_handles(Owner owner) {
  for (const auto& [key, ah] : address_handles_)
    if (key.first == owner && core_->roce()->destroy_ah(ah) != Status::kOk)
      world_.model.fail("node %u: destroy_ah was refused", index_);
  std::erase_if(address_handles_, [&](const auto& e) { return e.first.first == owner; });
}

uint32_t Node::connections() const {
  const roce::State* r = core_->roce_state();
  if (r == nullptr) return 0;
  uint32_t n = 0;
  for (uint32_t i = 1; i <= r->connections.high_water(); ++i) n += r->connections[i].in_use;
  return n;
}

uint32_t Node::listeners() const {
  const roce::State* r = core_->roce_state();
  if (r == nullptr) return 0;
  uint32_t n = 0;
  for (uint32_t i = 1; i <= r->listeners.high_water(); ++i) n += r->listeners[i].in_use;
  return n;
}

// The area in front of a datagram holds the IP header that it came with: at its end, behind zeros.
void Node::take_datagram(const Receiver& who, const Cqe& c) {
  uint32_t from = 0;
  while (from < world_.node_count() &&
         !(world_.node(from).has_roce() &&
           std::equal(std::begin(c.remote_eid), std::end(c.remote_eid), world_.node(from).at_.ip.bytes.begin())))
    ++from;
  if (c.status == CrStatus::kSuccess && from == world_.node_count())
    return world_.model.fail("node %u: datagram of an unknown address", index_);
  const auto& posted = who.jfr->posted;
  const auto receive = std::find_if(posted.begin(), posted.end(), [&](const Receive& r) { return r.id == c.user_ctx; });
  if (c.status == CrStatus::kSuccess && receive != posted.end()) {
    std::vector<std::byte> grh;
    for (const LocalRange& l : receive->ranges)
      for (uint32_t i = 0; i < l.bytes && grh.size() < roce::kGrhBytes; ++i) grh.push_back(l.data()[i]);
    if (grh.size() == roce::kGrhBytes && !is_header(grh, world_.node(from).at_.ip, at_.ip))
      world_.model.fail("node %u: the GRH area of receive %llu is not the header of its datagram", index_,
                        static_cast<unsigned long long>(c.user_ctx));
  }
  world_.model.received(who, c, from, 0, false);
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
    if (peer == nullptr) return;
    Node& other = world_.node(peer->node);
    if (other.up() && other.epoch() == peer->epoch && other.app_alive(peer->app) &&
        (world_.eager || world_.rng.chance(0.5))) {
      other.flush(peer);
    }
  });
}

void Node::watch_send_error(Queue* q) {
  const uint32_t epoch = epoch_;
  world_.after(nanoseconds(static_cast<int64_t>(1 + world_.rng.below(3'000'000))), [this, q, epoch] {
    if (!up() || epoch_ != epoch || q->state != Queue::State::kReady || !app_alive(q->app)) return;
    if (world_.model.outstanding_of(q) != 0) return watch_send_error(q);
    roce::QpAttributes to;
    to.qp_state = roce::QpState::kRts;
    if (core_->roce()->modify_qp(turn(), q->id, to, 0) != Status::kOk)
      world_.model.fail("node %u: queue pair %u may not send again", index_, q->uid);
    q->broken = false;
    q->explained &= ~bit(CrStatus::kWrFlush);
  });
}

}  // namespace ub::sim
