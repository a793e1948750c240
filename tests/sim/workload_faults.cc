// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong besides the network, and what must be right again when nothing does.
#include <algorithm>

#include "tests/sim/path_fault.h"
#include "tests/sim/workload.h"

namespace ub::sim {

void Workload::plan_fault(Fault fault) {
  uint64_t when = rng_.below(world_.options.fault.span_ns);
  world_.after(nanoseconds(static_cast<int64_t>(when)), [this, fault] {
    if (!stopped_) (this->*fault)();
  });
}

void Workload::plan_fault_midway(Fault fault) {
  if (rng_.chance(0.3)) return plan_fault(fault);
  const auto when = static_cast<uint32_t>(rng_.below(world_.options.work.requests));
  const auto later = [](uint32_t left, const auto& f) { return left < f.first; };
  midway_.insert(std::upper_bound(midway_.begin(), midway_.end(), when, later), {when, fault});
}

void Workload::begin_faults_midway() {
  for (; !midway_.empty() && left_ <= midway_.back().first; midway_.pop_back()) {
    const Fault fault = midway_.back().second;
    world_.after(nanoseconds(static_cast<int64_t>(1 + rng_.below(20'000))), [this, fault] {
      if (!stopped_) (this->*fault)();
    });
  }
}

void Workload::plan_faults() {
  const FaultOptions& f = world_.options.fault;
  for (uint32_t i = 0; i < f.partitions; ++i) plan_fault(&Workload::fault_partition);
  for (uint32_t i = 0; i < f.path_faults; ++i) plan_fault(&Workload::fault_path);
  for (uint32_t i = 0; i < f.app_kills; ++i) plan_fault(&Workload::fault_app);
  for (uint32_t i = 0; i < f.crashes; ++i) plan_fault(&Workload::fault_crash);
  for (uint32_t i = 0; i < f.closes; ++i) plan_fault(&Workload::fault_close);
  for (uint32_t i = 0; i < f.flushes; ++i) plan_fault(&Workload::fault_flush);
  for (uint32_t i = 0; i < f.jfr_flushes; ++i) plan_fault(&Workload::fault_jfr_flush);
  for (uint32_t i = 0; i < f.resets; ++i) plan_fault_midway(&Workload::fault_reset);
  for (uint32_t i = 0; i < f.rotations; ++i) plan_fault_midway(&Workload::fault_rotate);
  for (uint32_t i = 0; i < f.unregisters; ++i) plan_fault(&Workload::fault_unregister);
}

void Workload::fault_partition() {
  auto a = static_cast<uint32_t>(rng_.below(world_.node_count()));
  auto b = static_cast<uint32_t>(rng_.below(world_.node_count()));
  if (a == b) b = (b + 1) % world_.node_count();
  auto length = nanoseconds(static_cast<int64_t>(1 + rng_.below(world_.options.fault.partition_ns)));
  world_.trace("path %u-%u is cut for %lld us", a, b, static_cast<long long>(length.us()));
  world_.network.cut(a, b, true);
  world_.after(length, [this, a, b] { world_.network.cut(a, b, false); });
}

void Workload::fault_path() { fault_path_of(world_, rng_); }

App* Workload::random_app() {
  std::vector<App*> live;
  for (uint32_t i = 0; i < world_.node_count(); ++i)
    for (auto& app : world_.node(i).apps())
      if (app->alive) live.push_back(app.get());
  return live.empty() ? nullptr : live[rng_.below(live.size())];
}

void Workload::fault_app() {
  App* app = random_app();
  if (app == nullptr) return;
  Node& node = world_.node(app->local->node);
  uint32_t epoch = node.epoch();
  node.kill_app(*app);
  auto notice = nanoseconds(static_cast<int64_t>(1 + rng_.below(3'000'000)));
  world_.after(notice, [&node, app, epoch] {
    if (node.up() && node.epoch() == epoch) node.bury_app(*app);
  });
}

void Workload::replace(Node& node, bool goodbye) {
  if (!node.up()) return;
  if (goodbye)
    node.shut_down();
  else
    node.crash();
  auto pause = nanoseconds(static_cast<int64_t>(rng_.chance(0.5) ? rng_.below(1'000'000) : rng_.below(3'000'000'000)));
  world_.after(pause, [this, &node] {
    node.boot();
    build_apps(node);
    if (stopped_) return;
    for (auto& q : world_.queues)
      if (q->node == node.index() && q->epoch == node.epoch()) plan_step(q.get());
  });
}

void Workload::fault_crash() { replace(world_.node(static_cast<uint32_t>(rng_.below(world_.node_count()))), false); }
void Workload::fault_close() { replace(world_.node(static_cast<uint32_t>(rng_.below(world_.node_count()))), true); }

void Workload::fault_flush() {
  App* app = random_app();
  if (app == nullptr || app->queues.empty()) return;
  world_.node(app->local->node).flush(app->queues[rng_.below(app->queues.size())], rng_.chance(0.5));
}

void Workload::fault_jfr_flush() {
  App* app = random_app();
  if (app == nullptr || app->jfrs.empty()) return;
  Node& node = world_.node(app->local->node);
  Jfr* r = app->jfrs[rng_.below(app->jfrs.size())];
  if (r->in_error || r->of_qp) return;
  bool for_a_time = rng_.chance(0.5);
  node.flush(r, for_a_time);
  if (!for_a_time) return;
  auto pause = nanoseconds(static_cast<int64_t>(1 + rng_.below(world_.options.fault.span_ns)));
  world_.after(pause, [&node, r] { node.revive(r); });
}

// Mostly of a queue that has requests under way, and for so short a time that others notice little of it.
void Workload::fault_reset() {
  const uint64_t most =
      rng_.chance(0.8) ? std::min<uint64_t>(world_.options.fault.span_ns, 200'000) : world_.options.fault.span_ns;
  const auto pause = nanoseconds(static_cast<int64_t>(1 + rng_.below(most)));
  if (rng_.chance(0.2)) {
    App* app = random_app();
    if (app == nullptr || app->jfrs.empty()) return;
    Node& node = world_.node(app->local->node);
    Jfr* r = app->jfrs[rng_.below(app->jfrs.size())];
    if (r->in_error || r->in_reset || r->of_qp) return;
    node.reset(r);
    world_.after(pause, [&node, r] { node.revive(r); });
    return;
  }
  std::vector<Queue*> all, busy;
  for (const auto& q : world_.queues) {
    const Node& node = world_.node(q->node);
    if (q->qp || !node.up() || q->epoch != node.epoch() || !node.app_alive(q->app)) continue;
    all.push_back(q.get());
    if (q->state == Queue::State::kReady && q->unfinished() != 0) busy.push_back(q.get());
  }
  const std::vector<Queue*>& some = busy.empty() || rng_.chance(0.3) ? all : busy;  // those of UM are seldom busy
  if (some.empty()) return;
  Queue* q = some[rng_.below(some.size())];
  Node& node = world_.node(q->node);
  node.reset(q);
  world_.after(pause, [&node, q] { node.leave_reset(q); });
}

// Replaces the token of a region or a JFR, and withdraws the former one after some time, or at once.
template <class Holder>
void Workload::rotate(Node& node, Holder* of) {
  const RotatingToken& t = of->token;
  if (!t.required || t.state == RotatingToken::Former::kGood) return;
  uint32_t by = t.value;
  while ((by & ~0x10101u) == (t.value & ~0x10101u)) by = draw_token();  // no request with a wrong token hits it
  node.replace_token(of, by);
  if (rng_.chance(0.2)) return node.withdraw_token(of);
  const uint64_t most = rng_.chance(0.5) ? 100'000 : world_.options.fault.span_ns;
  const auto pause = nanoseconds(static_cast<int64_t>(1 + rng_.below(most)));
  world_.after(pause, [&node, of] { node.withdraw_token(of); });
}

void Workload::fault_rotate() {
  App* app = random_app();
  if (app == nullptr) return;
  Node& node = world_.node(app->local->node);
  if (!app->jfrs.empty() && rng_.chance(0.4)) {
    Jfr* r = app->jfrs[rng_.below(app->jfrs.size())];
    if (r->alive && !r->of_qp) rotate(node, r);
  } else if (!app->targets.empty()) {
    Region* r = app->targets[rng_.below(app->targets.size())];
    if (r->state == Region::State::kLive) rotate(node, r);
  }
}

void Workload::fault_unregister() {
  App* app = random_app();
  if (app == nullptr || app->targets.empty()) return;
  Region* r = app->targets[rng_.below(app->targets.size())];
  Node& node = world_.node(r->node);
  node.unregister(r);
  node.drive();
}

void Workload::stop() {
  stopped_ = true;
  left_ = 0;
  world_.meddler = nullptr;
  for (auto& h : hostile_) h->end();
  world_.network.heal();
  world_.eager = true;
  for (uint32_t i = 0; i < world_.node_count(); ++i) {
    Node& node = world_.node(i);
    if (!node.up()) continue;
    for (auto& app : node.apps()) {
      if (!app->alive) continue;
      for (Jfr* r : app->jfrs) {
        if (r->in_reset) node.revive(r);
        node.refill(r, true);
      }
      for (Jfc* c : app->jfcs)
        if (c->alive) node.poll(c, UINT32_MAX);
      for (Queue* q : app->queues) node.leave_reset(q);
    }
  }
  connections_.settle();
  tell_of_dead_peers();
}

void Workload::build_probes() {
  for (uint32_t i = 0; i < world_.node_count(); ++i) {
    Node& node = world_.node(i);
    if (!node.up()) node.boot();
    App& app = *node.add_app(1 << 17, (1 << 20) + receive_bytes_of_services());
    Jfc* jfc = node.add_jfc(app, 64);
    Jfr* jfr =
        node.add_jfr(app, jfc, {.mode = Mode::kRm, .depth = 32, .buffer_bytes = 4096, .token = {}, .min_rnr_timer = 6});
    Queue* q = node.add_queue(app, jfc, jfr,
                              {.kind = ObjectKind::kJetty,
                               .mode = Mode::kRm,
                               .depth = 64,
                               .slots = 256,
                               .rnr_retry = 7,
                               .err_timeout = 17,
                               .own_recv_jfc = false,
                               .wanted_id = 0,
                               .fetched = world_.options.work.fetched > 0});
    Region* target = node.add_target(app, {.length = 65536,
                                           .access = kAccessRead | kAccessWrite | kAccessAtomic,
                                           .token = {},
                                           .odd_address = false,
                                           .token_id = 0});
    Jfr* um_jfr =
        node.add_jfr(app, jfc, {.mode = Mode::kUm, .depth = 32, .buffer_bytes = 4096, .token = {}, .min_rnr_timer = 6});
    QueueSpec um;
    um.mode = Mode::kUm;
    node.refill(jfr, true);
    node.refill(um_jfr, true);
    probes_.push_back({&node, q, target, node.add_queue(app, jfc, um_jfr, um)});
  }
  if (world_.options.work.qp_pairs == 0) return;
  build_probe_qps();
  ask_probes();
}

void Workload::post_probes(bool strict) {
  world_.strict = strict;
  for (Probe& from : probes_) {
    for (Probe& to : probes_) {
      if (&from == &to) continue;
      for (WrOp op : {WrOp::kWrite, WrOp::kRead, WrOp::kSend, WrOp::kFetchAdd}) {
        RequestSpec s;
        s.op = op;
        s.length = op == WrOp::kSend ? 100 : 3000;
        s.to = {to.queue, to.queue->jfr};
        s.remote = to.target;
        s.plain_add = true;
        if (post(world_, from.queue, s) == nullptr) world_.model.fail("a probe could not be posted");
      }
      RequestSpec s;
      s.op = WrOp::kSend;
      s.length = 100;
      s.to = {to.um, to.um->jfr};
      s.must_arrive = true;
      if (post(world_, from.um, s) == nullptr) world_.model.fail("a probe of UM could not be posted");
    }
    from.node->ring(from.queue);
    from.node->ring(from.um);
  }
  post_probe_qps();
}

void Workload::tear_down() {
  for (uint32_t i = 0; i < world_.node_count(); ++i) {
    Node& node = world_.node(i);
    if (!node.up()) continue;
    for (auto& app : node.apps()) {
      if (!app->alive) continue;
      for (Queue* q : app->queues) {
        uint32_t unread = q->indices->produced.load() - q->indices->consumed.load();
        if (q->state == Queue::State::kReady && (q->unfinished() != 0 || unread != 0))
          world_.model.fail("node %u queue %u: all is done, but %u requests are not retired and %u slots not consumed",
                            q->node, q->uid, q->unfinished(), unread);
        if (q->qp && q->state == Queue::State::kFlushing && !q->srq && !q->jfr->posted.empty())
          world_.model.fail("node %u queue pair %u: in ERROR, and %zu receives did not come back", q->node, q->uid,
                            q->jfr->posted.size());
      }
      node.bury_app(*app);
      app->alive = false;
    }
    node.say_goodbye();
  }
}

}  // namespace ub::sim
