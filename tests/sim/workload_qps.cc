// SPDX-License-Identifier: Apache-2.0
//
// Queue pairs of RoCE among the applications: pairs that are there from the start, those of UD, those that RDMA-CM
// connects, and the probes of all three.
#include <algorithm>

#include "tests/sim/workload.h"

namespace ub::sim {
namespace {

constexpr uint32_t kConnectedDepth = 4;  // receives of a queue pair that RDMA-CM connects
constexpr uint32_t kConnectedBytes = 8192;
constexpr uint16_t kProbePort = Connections::kPort + 1;

uint32_t datagram_receive(const Options& o) { return roce::kGrhBytes + longest_datagram(o); }

}  // namespace

uint32_t Workload::receives_of(uint32_t buffer_bytes) const {
  return std::min<uint32_t>(world_.options.work.rq_depth, 2 + (1 << 18) / buffer_bytes);
}

// So much of an application's inbox is for UD, and for what RDMA-CM connects.
uint64_t Workload::receive_bytes_of_services() const {
  const WorkloadOptions& o = world_.options.work;
  const uint64_t datagrams = datagram_receive(world_.options) + 512;
  return o.ud_queues * receives_of(datagram_receive(world_.options)) * datagrams +
         uint64_t{o.connects} * kConnectedDepth * (std::min(o.send_cap, kConnectedBytes) + 512);
}

App* Workload::app_on(Node& node) {
  std::vector<App*> live;
  for (auto& app : node.apps())
    if (app->alive && !app->jfcs.empty()) live.push_back(app.get());
  return live.empty() ? nullptr : live[rng_.below(live.size())];
}

Queue* Workload::add_qp(Node& node, App& app, roce::QpType type, uint32_t receives, uint32_t buffer_bytes) {
  const WorkloadOptions& o = world_.options.work;
  const Mode mode = type == roce::QpType::kUd ? Mode::kUm : Mode::kRc;
  Jfc* jfc = app.jfcs[rng_.below(app.jfcs.size())];
  const bool srq = rng_.chance(o.srq);
  Jfr* jfr = nullptr;
  for (Jfr* r : app.jfrs)
    if (srq && r->of_qp && r->generous && r->alive && r->mode == mode) jfr = r;
  if (jfr == nullptr) {
    jfr = node.add_jfr(
        app, jfc,
        {.mode = mode, .depth = receives, .buffer_bytes = buffer_bytes, .token = {}, .min_rnr_timer = o.min_rnr_timer});
    jfr->generous = srq;
  }
  Queue* q = node.add_qp(app, jfc, jfr,
                         {.type = type,
                          .depth = o.sq_depth,
                          .slots = std::max<uint32_t>(16, o.sq_depth * 8),
                          .srq = srq,
                          .own_recv_jfc = rng_.chance(0.3),
                          .fetched = rng_.chance(o.fetched),
                          .rnr_retry = o.rnr_retry,
                          .qkey = 0x11110000 | static_cast<uint32_t>(rng_.below(2))});
  node.refill(jfr, true);
  return q;
}

Queue* Workload::add_rc(Node& node, App& app) {
  const uint32_t bytes = world_.options.work.send_cap;
  return add_qp(node, app, roce::QpType::kRc, receives_of(bytes), bytes);
}

Queue* Workload::add_ud(Node& node, App& app) {
  const uint32_t bytes = datagram_receive(world_.options);
  Queue* q = add_qp(node, app, roce::QpType::kUd, receives_of(bytes), rng_.chance(0.2) ? bytes / 2 : bytes);
  node.get_ready(q);
  return q;
}

Queue* Workload::add_connectable(Node& node, App& app) {
  const WorkloadOptions& o = world_.options.work;
  Queue* q = nullptr;
  for (const Probe& p : probes_)
    if (p.node == &node) q = add_probe_qp(p, roce::QpType::kRc);
  if (q == nullptr) {
    q = add_qp(node, app, roce::QpType::kRc, std::min(o.rq_depth, kConnectedDepth),
               std::min(o.send_cap, kConnectedBytes));
  }
  node.get_ready(q);
  return q;
}

void Workload::pair_qps(Node& a, Node& b) {
  App *x = app_on(a), *y = app_on(b);
  if (x == nullptr || y == nullptr) return;
  connect_qps(add_rc(a, *x), add_rc(b, *y));
}

void Workload::connect_qps(Queue* qa, Queue* qb) {
  qa->peer = qb;
  qb->peer = qa;
  // What is left at the peer of a former life of an instance may name the same queue pair: let its numbers differ.
  const bool first_life = qa->epoch == 1 && qb->epoch == 1;
  auto psn = [&] {
    return first_life && rng_.chance(0.5) ? 0xFFFFFF - static_cast<uint32_t>(rng_.below(100)) : rng_.next_u32() >> 8;
  };
  const uint32_t from_a = psn(), from_b = psn();
  const auto timer = static_cast<uint8_t>(std::max<uint32_t>(1, world_.options.work.min_rnr_timer));
  world_.node(qa->node).connect(qa, from_a, from_b, timer);
  world_.node(qb->node).connect(qb, from_b, from_a, timer);
}

// Nobody else tells a queue pair that its peer is gone, and half a message of that holds a receive that others of the
// same queue may need.
void Workload::tell_of_dead_peers() {
  const auto alive = [&](const Queue* q) {
    Node& node = world_.node(q->node);
    return node.up() && node.epoch() == q->epoch && node.app_alive(q->app) && q->state == Queue::State::kReady;
  };
  for (size_t i = 0; i < world_.queues.size(); ++i) {
    Queue* q = world_.queues[i].get();
    if (q->srq && q->peer != nullptr && alive(q) && !alive(q->peer)) world_.node(q->node).flush(q);
  }
}

// ---- RDMA-CM ---------------------------------------------------------------------------------------------------

void Workload::plan_connects() {
  for (uint32_t i = 0; i < world_.options.work.connects; ++i) plan_fault(&Workload::ask_somebody);
}

void Workload::ask_somebody() {
  std::vector<Node*> nodes;
  for (uint32_t i = 0; i < world_.node_count(); ++i)
    if (world_.node(i).has_roce()) nodes.push_back(&world_.node(i));
  Node& from = *nodes[rng_.below(nodes.size())];
  const Node& to = *nodes[rng_.below(nodes.size())];
  if (!from.up() || (&from == &to && rng_.chance(0.8))) return;
  if (App* app = app_on(from)) connections_.ask(from, *app, to.index());
}

// What has just been connected has something to say.
void Workload::use_connected(Queue* q) {
  if (stopped_) return;
  left_ += static_cast<uint32_t>(rng_.below(8));
  plan_step(q);
}

// Every instance with its neighbour, on a network without faults.
void Workload::ask_probes() {
  std::vector<Probe*> with_roce;
  for (Probe& p : probes_)
    if (p.node->has_roce()) with_roce.push_back(&p);
  if (world_.options.work.connects == 0 || with_roce.size() < 2) return;
  for (Probe* p : with_roce) connections_.listen(*p->node, *p->node->apps().back(), kProbePort);
  for (size_t i = 0; i < with_roce.size(); ++i) {
    const Probe& to = *with_roce[(i + 1) % with_roce.size()];
    connections_.ask(*with_roce[i]->node, *with_roce[i]->node->apps().back(), to.node->index(), kProbePort, true);
  }
}

void Workload::use_probes_connected() {
  for (const auto& s : connections_.sides())
    if (s->strict && s->state == Connections::Side::State::kEstablished) probe_qps_.push_back(s->qp);
}

// ---- probes ----------------------------------------------------------------------------------------------------

Queue* Workload::add_probe_qp(const Probe& p, roce::QpType type) {
  App& app = *p.node->apps().back();
  Jfr* jfr = p.node->add_jfr(app, app.jfcs.front(),
                             {.mode = type == roce::QpType::kUd ? Mode::kUm : Mode::kRc,
                              .depth = 8,
                              .buffer_bytes = 4096,
                              .token = {},
                              .min_rnr_timer = 6});
  Queue* q = p.node->add_qp(app, app.jfcs.front(), jfr, {.type = type, .fetched = world_.options.work.fetched > 0});
  p.node->refill(jfr, true);
  return q;
}

void Workload::build_probe_qps() {
  world_.strict = true;  // as many retries as there can be
  for (Probe& x : probes_) {
    for (Probe& y : probes_) {
      if (&x >= &y || !x.node->has_roce() || !y.node->has_roce()) continue;
      Queue* ends[] = {add_probe_qp(x, roce::QpType::kRc), add_probe_qp(y, roce::QpType::kRc)};
      probe_qps_.insert(probe_qps_.end(), {ends[0], ends[1]});
      connect_qps(ends[0], ends[1]);
      if (world_.options.work.ud_queues == 0) continue;
      Queue* from = add_probe_qp(x, roce::QpType::kUd);
      Queue* to = add_probe_qp(y, roce::QpType::kUd);
      x.node->get_ready(from);
      y.node->get_ready(to);
      ud_probes_.insert(ud_probes_.end(), {{from, to}, {to, from}});
    }
  }
}

void Workload::post_probe_qps() {
  for (Queue* q : probe_qps_) {
    Region* target = nullptr;
    for (const Probe& p : probes_)
      if (p.node->index() == q->peer->node) target = p.target;
    for (WrOp op : {WrOp::kWrite, WrOp::kRead, WrOp::kSend, WrOp::kFetchAdd}) {
      RequestSpec s;
      s.op = op;
      s.length = op == WrOp::kSend ? 100 : 3000;
      s.to = {q->peer, q->peer->jfr};
      s.remote = target;
      s.plain_add = true;
      if (post(world_, q, s) == nullptr) world_.model.fail("a probe of RoCE could not be posted");
    }
    world_.node(q->node).ring(q);
  }
  for (auto [from, to] : ud_probes_) {
    RequestSpec s;
    s.op = WrOp::kSend;
    s.length = 100;
    s.to = {to, to->jfr};
    s.must_arrive = true;
    if (post(world_, from, s) == nullptr) world_.model.fail("a probe of UD could not be posted");
    world_.node(from->node).ring(from);
  }
}

}  // namespace ub::sim
