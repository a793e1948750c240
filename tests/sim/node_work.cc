// SPDX-License-Identifier: Apache-2.0
//
// The moving parts of an instance: doorbells, polling, receives, and driving the Core until it is quiet.
#include <algorithm>
#include <utility>

#include "tests/sim/apertures.h"
#include "tests/sim/held_back.h"
#include "tests/sim/node.h"
#include "tests/sim/woken.h"
#include "tests/sim/world.h"

namespace ub::sim {

void Node::hold(Duration d) {
  world_.trace("node %u is held", index_);
  held_since_ = world_.now();
  held_until_ = world_.now() + d;
}

// A node that is not held sleeps between its turns.
Instant Node::turn() {
  const Instant real = world_.now(), slept = earlier(real, std::exchange(held_since_, Instant::never()));
  if (!clock_.is_steady(real)) core_->count_away(clock_.turn_after_gap(real, core_->next_deadline(), slept));
  return clock_.turn(real);
}

void Node::ring(Queue* q) {
  if (config_.straight && world_.options.core.bells_send) {
    through([&, now = turn()](auto& core) { core.send_posted(now, q->id, 32, Acks::kMayWait); });
  } else {
    core_->on_posted(turn(), q->id);
  }
  drive();
}

void Node::deliver(const Frame& f) {
  if (world_.apertures) world_.apertures->frame_arrives(*this, f.span());
  through([&, now = turn()](auto& core) { core.on_packet(now, link_, f.span()); });
  if (world_.apertures) world_.apertures->model.arrives(nullptr);
  look();
  attend();
}

void Node::on_lane_frame(uint32_t link, std::span<const std::byte> frame) {
  through([&, now = turn()](auto& core) { core.on_lane_frame(now, link, frame); });
  look();
  attend();
}

void Node::copy_done(uint64_t copy) {
  CopyTag tag = 0;
  bool ok = host_->finish(copy, &tag);
  core_->on_copy_done(turn(), tag, ok);
  attend();
}

void Node::look() {
  if (!world_.reached) return;
  world_.reached->look(index_, epoch_, core_->state(), core_->roce_state());
  const auto& bypass = core_->engine<bypass::Engine<SimHost>>().state();
  world_.reached->look_at_bypass(bypass.asked, bypass.owed);
}

bool Node::take_events() {
  Event events[16];
  bool any = false;
  while (size_t n = through([&](auto& core) { return core.poll_events(events); })) {
    for (size_t i = 0; i < n; ++i) on_event(events[i]);
    any = true;
  }
  return any;
}

void Node::attend() {
  constexpr uint32_t kBurst = 32;  // frames that a worker takes at most before it sends
  const uint64_t pause = world_.options.host.burst_ns;
  if (pause == 0 || ++unattended_ == kBurst) return drive();
  take_events();
  plan_polls();
  plan_drive(pause);
}

void Node::plan_drive(uint64_t within_ns) {
  if (drive_planned_) return;
  world_.plan_drive(*this, 1 + world_.host_rng.below(within_ns));
  drive_planned_ = true;
}

void Node::drive_as_planned() {
  drive_planned_ = false;
  drive();
}

void Node::drive() {
  if (driving_) return;
  driving_ = true;
  unattended_ = 0;
  for (uint32_t round = 0;; ++round) {
    const Instant now = turn();
    const size_t sent = through([=](auto& core) {
      if (core.next_deadline() <= now) core.on_timer(now);
      return core.poll_packets(now, 32, Acks::kMayWait);
    });
    look();
    const bool told = take_events();  // whoever was told may have done something
    if ((sent == 0 && !told) || world_.failed()) break;
    if (round > 100'000) {
      world_.model.fail("node %u sends without end", index_);
      break;
    }
  }
  if (host_->take_refused()) plan_drive(world_.options.host.tx_room_ns);
  const std::string fault = held_back_fault(core_->state()) + unwoken_queue(*core_, core_->state().now);
  if (!fault.empty()) world_.model.fail("node %u: %s", index_, fault.c_str());
  plan_polls();
  driving_ = false;
}

void Node::on_event(const Event& e) {
  world_.mix(static_cast<uint64_t>(e.kind) << 56 ^ e.object);
  if (e.owner >= kFirstHostileOwner) return;
  auto jfc = [&]() -> Jfc* {
    for (auto& c : world_.jfcs)
      if (c->uid == e.object && c->node == index_ && c->owner == e.owner)
        return c->alive ? c.get() : nullptr;  // destroyed meanwhile
    world_.model.fail("node %u: event %u for JFC %llu, which it does not have", index_, static_cast<unsigned>(e.kind),
                      static_cast<unsigned long long>(e.object));
    return nullptr;
  };
  switch (e.kind) {
    case EventKind::kCompletion:
      if (Jfc* c = jfc(); c != nullptr) {
        if (c->waiting() == 0) world_.model.fail("node %u: completion event of an empty JFC", index_);
        if (!c->armed) world_.model.fail("node %u: completion event of a JFC that was not armed", index_);
        const bool full = core_->state().jfcs[c->handle].full;  // and places are promised: it gets no more
        if (!full && !c->must_tell() && world_.now() - c->armed_since < c->told_period)
          world_.model.fail("node %u: an event tells of too few completions too early", index_);
        c->armed = false;
      }
      break;
    case EventKind::kJfcError:
      if (Jfc* c = jfc(); c != nullptr) c->full_reported = true;
      break;
    case EventKind::kJettyError:
    case EventKind::kJfsError:
      world_.model.fail("node %u: queue %llu is said to hold a bad element", index_,
                        static_cast<unsigned long long>(e.object));
      break;
    case EventKind::kQpError:
      for (auto& q : world_.queues) {
        if (q->uid != e.object || q->state == Queue::State::kGone) continue;
        world_.trace("node %u: queue pair %u fails", index_, q->uid);
        world_.model.broken(q.get());
        watch_broken(q.get());
      }
      break;
    case EventKind::kConnection:
      for (roce::ConnectionEvent one; core_->roce()->poll_connection_events({&one, 1}) != 0;)
        if (world_.on_connection) world_.on_connection(*this, one);
      break;
    case EventKind::kChannelUp:
    case EventKind::kChannelDead:
      world_.trace("node %u: channel %llx %s", index_, static_cast<unsigned long long>(e.object),
                   e.kind == EventKind::kChannelUp ? "up" : "dead");
      break;
    default:
      break;
  }
}

bool Jfc::must_tell() const {
  if (told_count == 0 && told_period.ns == 0) return true;
  const uint32_t produced = indices->produced.load();
  if (told_count != 0 && produced - indices->armed_at.load() >= std::min<uint32_t>(told_count, depth)) return true;
  for (uint32_t at = indices->consumed.load(); at != produced; ++at) {
    const Cqe& c = slots[at % slot_count];
    if ((c.flags & kCqeSolicited) != 0 || c.status != CrStatus::kSuccess) return true;
  }
  return false;
}

void Node::plan_polls() {
  for (auto& app : apps_) {
    if (!app->alive) continue;
    for (Jfc* c : app->jfcs) {
      if (!c->alive || c->waiting() == 0) continue;
      if (c->waiting() > c->depth)
        world_.model.fail("node %u: JFC of depth %u holds %u", index_, c->depth, c->waiting());
      if (c->armed && c->must_tell())
        world_.model.fail("node %u: an armed JFC got a completion and no event came", index_);
      world_.plan_poll(*this, c);
    }
  }
}

void Node::poll(Jfc* jfc, uint32_t budget) {
  uint32_t from = jfc->indices->consumed.load();
  uint32_t waiting = jfc->waiting();
  bool was_full = waiting >= jfc->depth || std::exchange(jfc->full_reported, false);
  uint32_t n = std::min(waiting, budget);
  for (uint32_t i = 0; i < n && jfc->alive; ++i) {
    Cqe c = jfc->slots[(from + i) % jfc->slot_count];
    jfc->indices->consumed.store(from + i + 1, std::memory_order_release);
    world_.mix(c.user_ctx << 8 | static_cast<uint64_t>(c.status));
    take_completion(jfc, c);
  }
  if (world_.failed() || !up()) return;
  if (was_full && n != 0) core_->on_completions_read(turn(), jfc->handle);
  for (auto& app : apps_) {
    if (app->uid != jfc->app || !app->alive) continue;
    for (Jfr* r : app->jfrs) refill(r, world_.eager);
  }
  if (jfc->alive && jfc->waiting() == 0 && !jfc->armed && world_.rng.chance(0.2)) {
    jfc->armed = true;
    jfc->armed_since = world_.now();
    arm(*jfc->indices, Armed::kAny);
    core_->on_armed(turn(), jfc->handle);
  }
  drive();
}

void Node::take_completion(Jfc* jfc, const Cqe& c) {
  bool jetty = (c.flags & kCqeJetty) != 0;
  if ((c.flags & kCqeReceive) == 0) {
    Queue* q = find_queue(c.local_id);
    if (q == nullptr || q->jfc != jfc)
      return world_.model.fail("node %u: completion %s for queue id %u, which does not complete here", index_,
                               status_name(c.status), c.local_id);
    world_.trace("node %u: queue %u completes wr %llu %s", index_, q->uid, static_cast<unsigned long long>(c.user_ctx),
                 status_name(c.status));
    const bool was_broken = q->broken;
    world_.model.completed(q, c);
    if (q->ud() && q->broken && !was_broken) watch_send_error(q);
    if (c.status == CrStatus::kWrFlushDone) finish_flush(q);
    if (c.status == CrStatus::kWrSuspendDone) resume(q);
    return;
  }
  world_.trace("node %u: receive %llu completes %s, %u bytes from id %u", index_,
               static_cast<unsigned long long>(c.user_ctx), status_name(c.status), c.length, c.remote_id);
  Receiver who;  // perhaps destroyed since
  for (auto& q : world_.queues)
    if ((jetty || q->qp) && q->uid == c.user_data) who = {q.get(), q->jfr};
  for (auto& r : world_.jfrs)
    if (!jetty && who.jfr == nullptr && r->uid == c.user_data) who = {nullptr, r.get()};
  if (who.jfr == nullptr || who.id() != c.local_id || who.node() != index_)
    return world_.model.fail("node %u: receive completion for id %u, user data %llu", index_, c.local_id,
                             static_cast<unsigned long long>(c.user_data));
  Jfc* expected = who.jetty != nullptr && who.jetty->recv_jfc != nullptr ? who.jetty->recv_jfc : who.jfr->jfc;
  if (jfc != expected) world_.model.fail("node %u: receive completion of id %u in the wrong JFC", index_, c.local_id);
  if (who.jetty != nullptr && who.jetty->ud()) return take_datagram(who, c);
  if (who.jetty != nullptr && who.jetty->qp) {
    const Queue* peer = who.jetty->peer;
    if (peer == nullptr) return world_.model.fail("node %u: a message, but no connection", index_);
    return world_.model.received(who, c, peer->node, peer->epoch, false);
  }
  Eid eid;
  std::copy(std::begin(c.remote_eid), std::end(c.remote_eid), eid.bytes.begin());
  uint32_t node = UINT32_MAX, epoch = 0;
  bool known = world_.find_instance(eid, c.remote_uasid, &node, &epoch);
  if (!known && c.status == CrStatus::kSuccess)
    return world_.model.fail("node %u: message from an unknown instance, uasid %08x", index_, c.remote_uasid);
  world_.model.received(who, c, node, epoch, counter(Counter::kTaTxRnr) != 0);
}

void Node::take_back(Queue* q) {
  Cqe out[8];
  while (uint32_t n = core_->take_unhandled(q->id, out, 8))
    for (uint32_t i = 0; i < n; ++i) world_.model.unhandled(q, out[i]);
}

void Node::resume(Queue* q) {
  if (q->state != Queue::State::kReady) return;  // flushed meanwhile
  take_back(q);
  world_.model.resumed(q);
  if (world_.failed()) return;
  if (core_->set_state(turn(), q->id, QueueState::kReady) != Status::kOk)
    world_.model.fail("node %u: queue %u was taken back and does not leave SUSPENDED", index_, q->uid);
}

bool Node::post_receive(Jfr* jfr, uint32_t bytes, uint32_t sges) {
  auto app = std::find_if(apps_.begin(), apps_.end(), [&](const auto& a) { return a->uid == jfr->app; });
  Receive r;
  r.id = world_.model.next_id();
  r.length = bytes;
  auto give_back = [&] {
    for (const LocalRange& l : r.ranges) l.region->free.add(l.offset, std::max<uint64_t>(l.bytes, 1));
    return false;
  };
  uint32_t left = bytes;
  for (uint32_t i = 0; i < sges; ++i) {
    uint32_t n = i + 1 == sges ? left : static_cast<uint32_t>(world_.rng.below(left + 1));
    auto at = (*app)->inbox->free.take(n, world_.rng);
    if (!at) return give_back();
    r.ranges.push_back({(*app)->inbox, *at, n});
    left -= n;
  }
  if (!jfr->push(r)) return give_back();
  world_.model.posted_receive(jfr, r);
  if (jfr->of_qp && jfr->indices->armed.load() != 0) {
    (void)core_->set_state(turn(), jfr->id, QueueState::kError);
  }
  return true;
}

void Node::refill(Jfr* jfr, bool all) {
  if (!jfr->alive || jfr->in_error) return;
  while (jfr->posted.size() < jfr->depth) {
    if (!all && !jfr->generous && world_.rng.chance(world_.options.work.starve)) return;
    uint32_t bytes = jfr->buffer_bytes + (world_.rng.chance(0.3) ? static_cast<uint32_t>(world_.rng.below(64)) : 0);
    if (!post_receive(jfr, bytes, static_cast<uint32_t>(world_.rng.between(1, world_.options.work.sges)))) return;
  }
}

}  // namespace ub::sim
