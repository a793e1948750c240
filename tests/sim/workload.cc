// SPDX-License-Identifier: Apache-2.0
//
// Building and posting. Faults and the end of a run are in workload_faults.cc.
#include "tests/sim/workload.h"

#include <algorithm>

namespace ub::sim {

Workload::Workload(World& world)
    : world_(world),
      rng_(world.rng),
      meddle_rng_(world.options.seed * 4 + 4),
      connections_(world, {.make_qp = [this](Node& node, App& app) { return add_connectable(node, app); },
                           .established = [this](Queue* q) { use_connected(q); }}) {}

void Workload::build() {
  const Options& o = world_.options;
  for (uint32_t i = 0; i < o.nodes; ++i) {
    wire::Endpoint at;
    uint32_t host = o.shared_port_ip && i == 1 ? 0 : i;
    if (o.ipv6) {
      at.ip.bytes = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(host + 1)};
    } else {
      at.ip = wire::IpAddress::from_v4(0x0a000001 + host);
    }
    at.port = host != i ? 50001 : wire::kUbUdpPort;
    world_.add_node(at).boot();
  }
  for (uint32_t i = 0; i < o.nodes; ++i) build_apps(world_.node(i));
  world_.meddler = [this](const Node& node) {
    for (auto& h : hostile_)
      if (h->on(node) && meddle_rng_.chance(world_.options.fault.meddle)) h->scribble();
  };
}

void Workload::build_apps(Node& node) {
  const WorkloadOptions& o = world_.options.work;
  for (uint32_t a = 0; a < o.apps_per_node; ++a) build_app(node);
  // RC pairs with every node that stands already, itself included.
  for (uint32_t i = 0; i < world_.node_count(); ++i) {
    Node& peer = world_.node(i);
    if (!peer.up() || peer.apps().empty()) continue;
    if (i != node.index() ? rng_.chance(o.rc) : rng_.chance(o.rc / 8)) pair_up(node, peer);
    const uint32_t pairs = i != node.index() ? o.qp_pairs : o.qp_pairs / 2;
    for (uint32_t n = 0; n < pairs && node.has_roce() && peer.has_roce(); ++n) pair_qps(node, peer);
  }
  if (o.connects != 0 && node.has_roce() && rng_.chance(0.8))
    connections_.listen(node, *node.apps()[node.apps().size() - 1 - rng_.below(o.apps_per_node)]);
  if (!stopped_) build_hostile(node);
}

void Workload::build_hostile(Node& node) {
  for (uint32_t i = 0; i < world_.options.fault.hostile; ++i) {
    hostile_.push_back(std::make_unique<Hostile>(world_, node, i, hostile_));
    plan_act(hostile_.back().get(), world_.options.fault.hostile_acts);
  }
}

// Some acts fall into the time of the others' requests, some into that of the faults.
void Workload::plan_act(Hostile* h, uint32_t left) {
  if (left == 0) return;
  const Options& o = world_.options;
  uint64_t gap = rng_.chance(0.5) ? o.work.gap_ns : o.fault.span_ns / o.fault.hostile_acts;
  world_.after(nanoseconds(static_cast<int64_t>(1 + rng_.below(2 * gap))), [this, h, left] {
    if (stopped_ || !h->alive()) return;
    h->act();
    plan_act(h, left - 1);
  });
}

void Workload::build_app(Node& node) {
  const WorkloadOptions& o = world_.options.work;
  uint32_t rq_depth = std::min<uint32_t>(o.rq_depth, 2 + (1 << 18) / o.send_cap);
  // An application has two receive queues and one for each queue of UM; some room is lost to fragments.
  const uint64_t receive_queues = 5 + (o.um > 0 ? o.queues_per_app : 0) + 2 * o.qp_pairs * (world_.options.nodes + 1);
  const uint64_t at_once = world_.options.busy ? 40 : 4;  // of the longest requests
  App& app = *node.add_app(32768 + at_once * std::max(o.size_cap, o.send_cap),
                           16384 + receive_queues * rq_depth * (o.send_cap + 512) + receive_bytes_of_services());
  // A half message to a queue pair whose peer is gone holds a place for as long as nobody tells the queue pair.
  const uint32_t held = o.qp_pairs == 0 ? 0 : o.qp_pairs * (world_.options.nodes + 1) + o.connects + 2;
  const uint32_t depth = std::max(o.jfc_depth, held);
  Jfc* jfc = node.add_jfc(app, depth);
  Jfc* other = rng_.chance(0.5) ? node.add_jfc(app, depth) : jfc;
  auto token = [&] {
    const bool required = rng_.chance(o.required_token);
    return Token{required, draw_token()};
  };
  auto add_jfr = [&](Mode mode) {
    JfrSpec s{.mode = mode,
              .depth = rq_depth,
              .buffer_bytes = o.send_cap,
              .token = token(),
              .min_rnr_timer = o.min_rnr_timer};
    return node.add_jfr(app, rng_.chance(0.5) ? jfc : other, s);
  };
  Jfr* shared = add_jfr(Mode::kRm);
  auto queue = [&](Mode mode, ObjectKind kind, Jfr* jfr) {
    QueueSpec s{.kind = kind,
                .mode = mode,
                .depth = o.sq_depth,
                .slots = std::max<uint32_t>(16, o.sq_depth * 8),
                .rnr_retry = o.rnr_retry,
                .err_timeout = o.err_timeout,
                .own_recv_jfc = rng_.chance(0.3),
                .wanted_id = 0,
                .fetched = rng_.chance(o.fetched),
                .suspends = o.suspends > 0 && rng_.chance(o.suspends),
                .completes_early = o.completes_early > 0 && rng_.chance(o.completes_early),
                .rot = mode == Mode::kRc && o.rot > 0 && rng_.chance(o.rot)};
    const bool urgent = o.priorities > 0 && rng_.chance(o.priorities);
    if (urgent) s.priority = static_cast<uint8_t>(1 + rng_.below(kMostPriority));
    return node.add_queue(app, rng_.chance(0.5) ? jfc : other, jfr, s);
  };
  for (uint32_t i = 0; i < o.queues_per_app; ++i) {
    bool um = rng_.chance(o.um);
    bool jfs = rng_.chance(o.jfs);
    if (um)
      queue(Mode::kUm, jfs ? ObjectKind::kJfs : ObjectKind::kJetty, add_jfr(Mode::kUm));
    else
      queue(Mode::kRm, jfs ? ObjectKind::kJfs : ObjectKind::kJetty, shared);
  }
  if (o.rc > 0) {
    Jfr* jfr = add_jfr(Mode::kRc);
    for (uint32_t i = 0; i < world_.options.nodes; ++i) queue(Mode::kRc, ObjectKind::kJetty, jfr);
  }
  static constexpr uint8_t kFull = kAccessRead | kAccessWrite | kAccessAtomic;
  static constexpr uint8_t kOther[] = {kAccessRead, kAccessRead | kAccessWrite, 0, kFull};
  uint64_t length = 32768 + (at_once * 3 / 2) * o.size_cap;
  node.add_target(
      app,
      {.length = length, .access = kFull, .token = token(), .odd_address = rng_.chance(o.odd_address), .token_id = 0});
  if (rng_.chance(0.6))
    node.add_target(app, {.length = 8192 + uint64_t{8} * std::min(o.size_cap, 20000u),
                          .access = kOther[rng_.below(4)],
                          .token = token(),
                          .odd_address = rng_.chance(o.odd_address),
                          .token_id = 0});
  for (Jfr* r : app.jfrs) node.refill(r, true);
  for (uint32_t i = 0; i < o.ud_queues && node.has_roce(); ++i) add_ud(node, app);
}

void Workload::pair_up(Node& a, Node& b) {
  auto free_queue = [&](Node& n, const Queue* not_this) -> Queue* {
    for (auto& app : n.apps())
      for (Queue* q : app->queues)
        if (app->alive && q->mode == Mode::kRc && !q->qp && q->peer == nullptr && q != not_this &&
            q->state == Queue::State::kReady)
          return q;
    return nullptr;
  };
  Queue* qa = free_queue(a, nullptr);
  Queue* qb = free_queue(b, qa);
  if (qa == nullptr || qb == nullptr) return;
  a.bind(qa, qb);
  b.bind(qb, qa);
}

void Workload::start() {
  left_ = world_.options.work.requests;
  for (auto& q : world_.queues)
    if (!world_.options.busy || q->node == 0) plan_step(q.get());
  plan_connects();
  plan_faults();
}

void Workload::plan_step(Queue* q) {
  const uint32_t patience = world_.options.busy ? 0 : std::min(q->full_in_a_row, 12u);
  uint64_t gap = 1 + rng_.below(2 * world_.options.work.gap_ns << patience);
  world_.after(nanoseconds(static_cast<int64_t>(gap)), [this, q] { step(q); });
}

void Workload::step(Queue* q) {
  Node& node = world_.node(q->node);
  if (stopped_ || left_ == 0 || !node.up() || q->epoch != node.epoch()) return;
  // In RESET, where all is in vain, it posts seldom.
  if (q->comes_back || (q->state == Queue::State::kReset && rng_.chance(0.9))) return plan_step(q);
  if (!q->takes_requests()) return;
  for (auto& app : node.apps())
    if (app->uid == q->app && !app->alive) return;
  ++q->full_in_a_row;
  if (q->mode != Mode::kRc || q->peer != nullptr) {
    uint64_t batch = rng_.between(1, world_.options.work.batch);
    bool any = false;  // has anything been posted?
    for (uint64_t i = 0; i < batch && left_ > 0; ++i) {
      if (!post_one(q)) break;
      any = true;
      --left_;
    }
    if (any) node.ring(q);
    if (any) q->full_in_a_row = 0;
    begin_faults_midway();
  }
  if (q->jfr != nullptr) node.refill(q->jfr, false);
  plan_step(q);
}

uint32_t Workload::draw_token() {
  return rng_.next_u32() & (world_.options.work.qp_pairs == 0 ? UINT32_MAX : roce::kKeyMask);
}

uint32_t Workload::draw_size(uint32_t cap) {
  uint32_t mtu = world_.options.mtu;
  uint64_t kind = rng_.below(10);
  if (rng_.chance(world_.options.work.large)) return static_cast<uint32_t>(rng_.between(cap / 2, cap));
  if (kind == 0) return 0;
  if (kind < 3) {  // around a whole number of packets
    uint64_t packets = rng_.between(1, std::max<uint32_t>(1, std::min<uint32_t>(cap / mtu, 6)));
    return static_cast<uint32_t>(std::min<uint64_t>(cap, packets * mtu + rng_.below(3) - 1));
  }
  if (kind == 3 && cap >= 65537) return static_cast<uint32_t>(65535 + rng_.below(3));
  uint64_t limit = uint64_t{1} << rng_.below(13);
  return static_cast<uint32_t>(std::min<uint64_t>(cap, rng_.below(limit) + 1));
}

WrOp Workload::draw_op() {
  const WorkloadOptions& o = world_.options.work;
  struct Weighted {
    WrOp op;
    uint32_t weight;
  };
  const Weighted all[] = {{WrOp::kWrite, o.weight_write},        {WrOp::kWriteImm, o.weight_write_imm},
                          {WrOp::kWriteNotify, o.weight_notify}, {WrOp::kRead, o.weight_read},
                          {WrOp::kSend, o.weight_send},          {WrOp::kSendImm, o.weight_send_imm},
                          {WrOp::kFetchAdd, o.weight_atomic},    {WrOp::kNop, o.weight_nop}};
  uint64_t sum = 0;
  for (const Weighted& w : all) sum += w.weight;
  uint64_t at = rng_.below(sum);
  for (const Weighted& w : all) {
    if (at < w.weight) return w.op;
    at -= w.weight;
  }
  return WrOp::kNop;
}

bool Workload::choose_peer(Queue* q, RequestSpec* s) {
  if (q->mode == Mode::kRc) {
    s->to = {q->peer, q->peer->jfr};
    return true;
  }
  std::vector<Receiver> all;
  bool stale = rng_.chance(0.05);
  for (auto& r : world_.jfrs) {
    if (r->of_qp != q->qp) continue;
    bool live = r->alive && r->epoch == world_.node(r->node).epoch();
    uint32_t jetty_count = 0;
    for (auto& j : world_.queues) jetty_count += j->jfr == r.get();
    if (!live && !stale) continue;
    if (world_.options.busy && r->node == q->node) continue;
    for (auto& j : world_.queues)
      if (j->jfr == r.get() && j->mode == q->mode && (stale || j->takes_requests())) all.push_back({j.get(), r.get()});
    // A JFR of the mode by itself; those of RC belong to their jettys.
    if (!q->qp && r->mode == q->mode && (jetty_count > 0 || q->mode == Mode::kUm)) all.push_back({nullptr, r.get()});
  }
  if (all.empty()) return false;
  s->to = all[rng_.below(all.size())];
  // Mostly to other nodes.
  if (s->to.node() == q->node && rng_.chance(0.8)) s->to = all[rng_.below(all.size())];
  return true;
}

Region* Workload::choose_region(const Receiver& to, bool must_have_atomics, uint32_t app) {
  std::vector<Region*> all;
  uint32_t epoch = to.jfr->epoch;
  for (auto& r : world_.regions) {
    if (r->local || r->node != to.node() || r->epoch != epoch || (app != 0 && r->app != app)) continue;
    if (r->state == Region::State::kGone && !rng_.chance(0.1)) continue;
    if (must_have_atomics && (r->access & kAccessAtomic) == 0 && !rng_.chance(0.1)) continue;
    if ((r->access & kAccessWrite) == 0 && (world_.options.busy || !rng_.chance(0.3))) continue;
    if ((r->access & kAccessRead) == 0 && world_.options.busy) continue;
    all.push_back(r.get());
  }
  return all.empty() ? nullptr : all[rng_.below(all.size())];
}

RequestSpec Workload::draw_request(Queue* q) {
  const WorkloadOptions& o = world_.options.work;
  RequestSpec s;
  s.op = draw_op();
  if (q->qp && (s.op == WrOp::kNop || s.op == WrOp::kWriteNotify)) s.op = WrOp::kWrite;
  if (q->mode == Mode::kUm && s.op != WrOp::kNop) s.op = rng_.chance(0.5) ? WrOp::kSend : WrOp::kSendImm;
  bool message = s.op == WrOp::kSend || s.op == WrOp::kSendImm;
  const uint32_t send_cap = q->qp && q->peer != nullptr ? q->peer->jfr->buffer_bytes : o.send_cap;
  s.length = draw_size(message ? send_cap : o.size_cap);
  if (s.op == WrOp::kWriteNotify) s.length = std::max(s.length, 1u);
  if (message && rng_.chance(o.too_long)) s.length = send_cap + 65 + static_cast<uint32_t>(rng_.below(3000));
  if (q->qp && s.op == WrOp::kRead) s.length = std::min(s.length, longest_roce_read(world_.options));
  if (q->ud())
    s.length = std::min(s.length, longest_datagram(world_.options) + rng_.chance(o.too_long / 4));
  else if (q->mode == Mode::kUm)
    s.length = std::min(s.length, world_.options.mtu);
  s.signaled = !rng_.chance(o.unsignaled);
  s.fence = rng_.chance(o.fence);
  s.solicited = rng_.chance(0.2);
  s.inlined = rng_.chance(o.inlined);
  s.comp_order = rng_.chance(o.comp_order);
  s.order = rng_.chance(o.strong) ? 2 : rng_.chance(o.relaxed) ? 1 : 0;
  s.sges = static_cast<uint32_t>(rng_.between(1, o.sges));
  if (q->rot && (q->posted == 0 || rng_.chance(0.7))) draw_ordered(q, &s);
  return s;
}

// What a sequence context takes, and what has to wait for such requests and they for it. The first one asks for it.
void Workload::draw_ordered(const Queue* q, RequestSpec* s) {
  if (q->posted == 0) {
    s->op = WrOp::kWrite;
    s->order = 2;
    s->length = 8;
    return;
  }
  s->order = rng_.chance(0.5) ? 2 : 1;
  s->fence = s->fence && rng_.chance(0.2);
  if (rng_.chance(0.8)) s->op = rng_.chance(0.8) ? WrOp::kWrite : WrOp::kFetchAdd;
  const uint64_t size = s->op == WrOp::kWrite ? rng_.below(10) : 9;
  if (size < 6) s->length = 1 + static_cast<uint32_t>(rng_.below(256));
  if (size == 6 || size == 7) s->length = 1 + static_cast<uint32_t>(rng_.below(16 * 1024));
}

bool Workload::post_one(Queue* q) {
  const WorkloadOptions& o = world_.options.work;
  RequestSpec s = draw_request(q);
  if (!choose_peer(q, &s)) return false;
  bool memory = writes_remote(s.op) || s.op == WrOp::kRead, atomic = is_atomic(s.op);
  if (memory || atomic) {
    // Mostly what its protection domain has.
    const uint32_t app = q->qp && !(o.wrong > 0 && rng_.chance(0.05)) ? q->peer->app : 0;
    s.remote = choose_region(s.to, atomic, app);
    if (s.remote == nullptr) return false;
    uint64_t shared = s.remote->owned_at - s.remote->shared_at;
    if (writes_remote(s.op) && rng_.chance(o.overlap) && s.length < shared)
      s.offset = s.remote->shared_at + rng_.below(shared - s.length);
  }
  bool wrong = rng_.chance(o.wrong), wrong_local = rng_.chance(o.wrong_local);
  uint64_t which = rng_.below(4);
  if (wrong && (memory || atomic) && s.length != 0) {
    if (which == 0 && s.remote->token.required) s.wrong = Wrong::kToken;
    if (which == 1) s.wrong = Wrong::kTokenId;
    if (which >= 2 && memory) s.wrong = Wrong::kRange;
  } else if (wrong && q->ud()) {
    s.wrong = which == 0 ? Wrong::kTokenId : Wrong::kReceiverToken;
  } else if (wrong && takes_receive(s.op) && q->mode != Mode::kRc && s.to.jfr->token.required) {
    s.wrong = Wrong::kReceiverToken;
  }
  if (wrong_local && s.wrong == Wrong::kNothing && s.op != WrOp::kNop && s.length > 1)
    s.wrong = which < 2 ? Wrong::kLocalRange : Wrong::kLocalHandle;
  return post(world_, q, s) != nullptr;
}

}  // namespace ub::sim
