// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "lib/transport/wire/pretty_print.h"
#include "tests/sim/apertures.h"
#include "tests/sim/mappings.h"
#include "tests/sim/packet_info.h"

namespace ub::sim {

World::World(const Options& o, bool verbose_)
    : options(o),
      rng(o.seed * 4 + 1),
      host_rng(o.seed * 4 + 2),
      network(*this, o.seed * 4 + 3),
      verbose(verbose_),
      now_{1'000'000'000 + o.seed % 1000} {
  model.set_time(&now_.ns);
  model.most_deliveries = options.net.duplicate == 0 ? 1 : 2;
}

World::~World() = default;

Node& World::add_node(const wire::Endpoint& at) {
  uint32_t index = node_count();
  UB_ASSERT(index < kMaxNodes);
  nodes_.push_back(std::make_unique<Node>(*this, index, at));
  network.add_node(index, at);
  return *nodes_.back();
}

bool World::find_instance(const Eid& eid, uint32_t uasid, uint32_t* node, uint32_t* epoch) const {
  for (const Instance& i : instances_) {
    if (i.id.eid != eid || i.id.uasid != uasid) continue;
    *node = i.node;
    *epoch = i.epoch;
    return true;
  }
  return false;
}

const InstanceId& World::instance_id(uint32_t node, uint32_t epoch) const {
  auto it = std::find_if(instances_.begin(), instances_.end(),
                         [&](const Instance& i) { return i.node == node && i.epoch == epoch; });
  UB_ASSERT(it != instances_.end());
  return it->id;
}

void World::plan(uint64_t at, Kind kind, uint32_t node, uint32_t epoch, uint64_t what) {
  planned_.push({std::max(at, now_.ns), order_++, kind, node, epoch, what});
}
void World::plan_delivery(uint64_t when_ns, uint32_t slot) { plan(when_ns, Kind::kDelivery, 0, 0, slot); }
void World::plan_link(uint64_t when_ns, uint32_t path) { plan(when_ns, Kind::kLink, 0, 0, path); }
void World::plan_copy(const Node& n, uint64_t copy, uint64_t delay_ns) {
  plan(now_.ns + delay_ns, Kind::kCopy, n.index(), n.epoch(), copy);
}
void World::plan_drive(const Node& n, uint64_t delay_ns) {
  plan(now_.ns + delay_ns, Kind::kDrive, n.index(), n.epoch(), 0);
}

void World::plan_poll(const Node& n, Jfc* jfc) {
  if (jfc->poll_planned) return;
  jfc->poll_planned = true;
  uint64_t delay = eager ? 100 : 1 + rng.below(2 * options.work.poll_ns);
  auto index = static_cast<uint64_t>(
      std::find_if(jfcs.begin(), jfcs.end(), [&](const auto& j) { return j.get() == jfc; }) - jfcs.begin());
  plan(now_.ns + delay, Kind::kPoll, n.index(), n.epoch(), index);
}

void World::at(Instant when, Action a) {
  actions_.push_back(std::move(a));
  plan(when.ns, Kind::kAction, 0, 0, actions_.size() - 1);
}

void World::happen(const Planned& p) {
  if (p.kind != Kind::kAction && p.kind != Kind::kLink) {
    const uint32_t node = p.kind == Kind::kDelivery ? network.destination(static_cast<uint32_t>(p.what)) : p.node;
    const Instant later = nodes_[node]->held_until();
    if (later > now_) return plan(later.ns, p.kind, p.node, p.epoch, p.what);
  }
  mix(p.at);
  mix(static_cast<uint64_t>(p.kind) << 32 | p.node);
  switch (p.kind) {
    case Kind::kDelivery: {
      uint32_t to = 0;
      Frame f = network.take(static_cast<uint32_t>(p.what), &to);
      if (nodes_[to]->up()) nodes_[to]->deliver(f);
      return;
    }
    case Kind::kLink:
      return network.leave_link(static_cast<uint32_t>(p.what));
    case Kind::kAction: {
      Action a = std::move(actions_[p.what]);
      a();
      return;
    }
    default:
      break;
  }
  Node& n = *nodes_[p.node];
  if (!n.up() || n.epoch() != p.epoch) return;
  if (p.kind == Kind::kCopy) n.copy_done(p.what);
  if (p.kind == Kind::kDrive) n.drive_as_planned();
  if (p.kind == Kind::kPoll) {
    Jfc* jfc = jfcs[p.what].get();
    jfc->poll_planned = false;
    if (jfc->alive && n.app_alive(jfc->app)) n.poll(jfc, eager ? UINT32_MAX : options.work.poll_batch);
  }
}

bool World::step(uint64_t limit_ns) {
  uint64_t next = planned_.empty() ? UINT64_MAX : planned_.top().at;
  Node* timer = nullptr;
  for (auto& n : nodes_) {
    Instant d = n->deadline();
    if (d.is_never() || d.ns >= next) continue;
    next = std::max(d.ns, now_.ns);
    timer = n.get();
  }
  if (next == UINT64_MAX || next > limit_ns) {
    now_.ns = std::max(now_.ns, limit_ns);
    return false;
  }
  same_instant_ = next == now_.ns ? same_instant_ + 1 : 0;
  now_.ns = next;
  if (same_instant_ > 1'000'000) model.fail("a million events in one instant");
  if (++event_count_ > 50'000'000) model.fail("too many events");
  if (timer != nullptr) {
    mix(next);
    Instant before = timer->deadline();
    trace("timer of node %u", timer->index());
    timer->drive();
    if (timer->up() && timer->deadline() == before && before <= now_)
      model.fail("node %u: its deadline stays in the past", timer->index());
    return true;
  }
  Planned p = planned_.top();
  planned_.pop();
  happen(p);
  return true;
}

bool World::run_for(Duration d) {
  uint64_t limit = (now_ + d).ns;
  while (!failed() && step(limit)) {
  }
  return !failed();
}

bool World::run_until(const std::function<bool()>& done, Duration limit) {
  uint64_t end = (now_ + limit).ns;
  while (!failed() && !done())
    if (!step(end)) return !failed() && done();
  return !failed();
}

bool World::all_resolved() {
  if (model.outstanding() == 0) return true;
  for (auto& q : queues)
    if ((q->takes_requests() || (q->qp && q->state != Queue::State::kGone)) && q->unfinished() == 0 &&
        q->jfc->waiting() == 0)
      model.all_retired(q.get());
  return model.outstanding() == 0;
}

bool World::run_until_quiet(Duration limit) {
  uint64_t end = (now_ + limit).ns;
  std::string why;
  while (!failed()) {
    bool quiet = all_resolved() && network.under_way() == 0;
    for (auto& n : nodes_) quiet = quiet && (!n->up() || n->idle(&why));
    if (quiet && !step(now_.ns)) return true;  // what is due at this instant happens before anybody looks
    if (!quiet && !step(end)) return false;
  }
  return false;
}

void World::trace_frame(const char* what, uint32_t from, uint32_t to, std::span<const std::byte> frame) {
  // The ICRC sums up the payload where there is one; headers suffice elsewhere.
  uint64_t word = 0;
  size_t hashed = std::min<size_t>(frame.size(), 128);
  for (size_t i = 0; i + 8 <= hashed; i += 8) {
    std::memcpy(&word, frame.data() + i, 8);
    mix(word);
  }
  std::memcpy(&word, frame.data() + frame.size() - 4, 4);
  mix(word);
  mix(uint64_t{frame.size()} << 32 | from << 8 | to);
  if (!verbose) return;
  char text[512];
  if (const PacketInfo p = inspect(from, to, frame); p.roce) {
    const roce::Packet& r = p.roce_packet;
    int n = std::snprintf(text, sizeof text, "%s qp %u psn %06x%s", roce::opcode_name(r.bth.opcode), r.bth.dest_qp,
                          r.bth.psn.value(), r.bth.ack_req ? " ack_req" : "");
    if (r.has(roce::kShapeAeth))
      std::snprintf(text + n, sizeof text - static_cast<size_t>(n), " syndrome %02x msn %u", r.aeth.syndrome.code,
                    r.aeth.msn.value());
  } else {
    wire::format_packet(frame, text, sizeof text);
  }
  std::printf("%.9f %s %u>%u %s\n", static_cast<double>(now_.ns) / 1e9, what, from, to, text);
}

void World::trace(const char* format, ...) {
  if (!verbose) return;
  std::printf("%.9f ", static_cast<double>(now_.ns) / 1e9);
  va_list args;
  va_start(args, format);
  std::vprintf(format, args);
  va_end(args);
  std::printf("\n");
}

}  // namespace ub::sim
