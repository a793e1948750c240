// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scenario.h"

#include "lib/transport/tp/paths.h"
#include "tests/sim/apertures.h"
#include "tests/sim/at_rest.h"
#include "tests/sim/mappings.h"
#include "tests/sim/workload.h"

namespace ub::sim {
namespace {

// After the last fault: dead channels are noticed within 4 s, deadlines are below 5 s. Requests of strong order may
// time out one after the other, so the limit is on the time in which none ends.
constexpr Duration kStandstillLimit = seconds(20);
constexpr Duration kApertureLimit = seconds(10);  // their deadline is 4 s
constexpr Duration kProbeLimit = seconds(5);
constexpr Duration kQuietLimit = seconds(8);
// Over several paths packets come out of order all the time. Where a node can keep few of them, a channel gets on by
// timeouts, each of which brings the next packets in their order.
constexpr Duration kSlowQuietLimit = seconds(40);
constexpr Duration kConnectLimit = seconds(10);  // what was lost comes again within 4.3 s
constexpr Duration kRateLimit = seconds(2);
constexpr Duration kPathLimit = seconds(12);  // each is asked every 64 ms, or 10 s after somebody else answered
constexpr Duration kEndLimit = seconds(10);  // a channel closes within a second, connections rest for longer

// Receives that half messages hold, whose senders died and whose channels have not noticed yet.
size_t held_receives(const CoreState& s, uint32_t jfr_id) {
  size_t held = 0;
  const auto holds = [&](uint32_t receive) { return receive != 0 && s.jfrs[s.receives[receive].jfr].id == jfr_id; };
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    held += s.channels[i].is_up() && holds(s.channels[i].open.receive);
  }
  for (uint32_t i = 1; i <= s.parked.high_water(); ++i) held += holds(s.parked[i].receive);
  return held;
}

// Receive queues in ERROR have given back all others.
void check_flushed(World& world) {
  for (const auto& r : world.jfrs) {
    Node& node = world.node(r->node);
    if (!r->alive || !r->in_error || !node.up() || r->epoch != node.epoch() || !node.app_alive(r->app)) continue;
    node.poll(r->jfc, UINT32_MAX);
    world.model.flushed(*r, held_receives(node.core().state(), r->id));
  }
}

// Connections by RDMA-CM: everybody knows what became of them.
bool settle(World& world, Workload& load) {
  std::string why;
  if (world.run_until([&] { return load.connections().settled(&why); }, kConnectLimit)) return true;
  world.model.fail("liveness: %s", why.c_str());
  return false;
}

// And they end.
bool end_connections(World& world, Workload& load) {
  if (!settle(world, load)) return false;
  load.connections().part_all();
  if (world.run_until([&] { return load.connections().at_rest(); }, kConnectLimit)) return true;
  world.model.fail("liveness: connections do not come to rest");
  return false;
}

// Loads and stores that are under way end.
bool end_apertures(World& world) {
  if (!world.apertures || world.run_until([&] { return world.apertures->at_rest(); }, kApertureLimit)) return true;
  world.model.fail("liveness: %u loads and stores neither complete nor fail", world.apertures->model.outstanding());
  return false;
}

// And everybody can load and store again.
bool probe_apertures(World& world) {
  if (!world.apertures) return true;
  world.apertures->probe();
  if (world.run_until([&] { return world.apertures->probes_done(); }, kProbeLimit)) return true;
  world.model.fail("liveness: after all faults, loads and stores hang");
  return false;
}

bool slowed_down(World& world) {
  for (uint32_t i = 0; i < world.node_count(); ++i) {
    const roce::State* r = world.node(i).up() ? world.node(i).core().roce_state() : nullptr;
    for (uint32_t n = 1; r != nullptr && n <= r->qps.high_water(); ++n)
      if (r->qps[n].in_use && roce::receives(r->qps[n].state) && !r->qps[n].flow.timer_at.is_never()) return true;
  }
  return false;
}

bool waits_for_path(World& world) {
  for (uint32_t i = 0; i < world.node_count(); ++i) {
    if (!world.node(i).up()) continue;
    const CoreState& core = world.node(i).core().state();
    for (uint32_t n = 1; n <= core.channels.high_water(); ++n) {
      const tp::Channel& ch = core.channels[n];
      if (!ch.is_up() || !ch.several_paths) continue;
      for (const tp::Path& p : tp::paths_of(core, ch))
        if (!p.live && !p.ask_at.is_never()) return true;
    }
  }
  return false;
}

// All paths work again: each channel uses all that it has.
bool check_paths(World& world) {
  if (!world.run_until([&] { return !waits_for_path(world); }, kPathLimit))
    world.model.fail("liveness: a channel does without a path that works again");
  return !world.failed();
}

// Nobody says congestion any more: every queue pair is as fast as it can be again. Before, only what was marked slowed
// one down, or a bit that was flipped there: no sum covers the traffic class.
bool check_rates(World& world) {
  const bool unmarked = world.network.marked() == 0 && world.options.net.corrupt == 0;
  for (uint32_t i = 0; i < world.node_count(); ++i)
    if (unmarked && world.node(i).up() && world.node(i).counter(Counter::kRoceTxCnp) != 0)
      world.model.fail("node %u told of congestion that there was none of", i);
  if (!world.run_until([&] { return !slowed_down(world); }, kRateLimit))
    world.model.fail("liveness: a queue pair stays slow after congestion is over");
  return !world.failed();
}

bool quiet(World& world) {
  const bool keeps_few = world.options.net.paths > 1 && world.options.core.kept_packets < 256;
  if (world.run_until_quiet(keeps_few ? kSlowQuietLimit : kQuietLimit)) return true;
  std::string why;
  for (uint32_t i = 0; i < world.node_count(); ++i)
    if (world.node(i).up()) world.node(i).idle(&why);
  world.model.fail("liveness: not quiet: %zu frames under way\n%s", world.network.under_way(), why.c_str());
  return false;
}

bool over(Node& node) {
  ChannelInfo channel;
  for (uint32_t i = 1; i <= node.core().channel_table_size(); ++i)
    if (node.core().channel_info(i, &channel)) return false;
  return node.connections() == 0 && !node.core().has_packets() && node.copies_pending() == 0;
}

// No channel and no connection is left, and nothing is under way.
bool end_all(World& world) {
  const auto at_end = [&] {
    bool done = world.network.under_way() == 0;
    for (uint32_t i = 0; i < world.node_count(); ++i) done = done && (!world.node(i).up() || over(world.node(i)));
    return done;
  };
  if (world.run_until(at_end, kEndLimit)) return true;
  world.model.fail("liveness: after all was closed, a channel or a connection lives on");
  return false;
}

// All requests end, however many wait for one another; false if for kStandstillLimit none does.
bool resolve(World& world) {
  uint32_t left = UINT32_MAX;
  while (world.model.outstanding() < left) {
    left = world.model.outstanding();
    if (world.run_until([&] { return world.all_resolved(); }, kStandstillLimit)) return true;
    if (world.failed()) return false;
  }
  world.model.fail("liveness: %u requests neither complete nor fail:\n%s", world.model.outstanding(),
                   world.model.unresolved().c_str());
  return false;
}

void run_phases(World& world, Workload& load) {
  load.build();
  load.start();
  if (world.apertures) world.apertures->start();
  Instant faults_over = world.now() + nanoseconds(static_cast<int64_t>(world.options.fault.span_ns));
  world.run_until([&] { return load.posted_all() && world.now() >= faults_over; },
                  nanoseconds(static_cast<int64_t>(world.options.fault.span_ns)) + seconds(3));
  if (world.failed()) return;

  world.trace("---- faults are over");
  load.stop();
  if (world.apertures) world.apertures->stop();
  if (!resolve(world) || !end_apertures(world)) return;
  // Instances that are down come back, the packets of the past die out.
  if (!world.run_for(seconds(3))) return;
  for (const auto& q : world.queues)
    if (q->state == Queue::State::kReset) world.model.fail("liveness: queue %u does not leave RESET", q->uid);
  if (world.failed()) return;

  if (!end_connections(world, load)) return;
  load.build_probes();
  if (!settle(world, load)) return;
  load.use_probes_connected();
  for (bool strict : {false, true}) {
    world.trace("---- probes");
    load.post_probes(strict);
    if (!world.run_until([&] { return world.all_resolved() && world.model.all_arrived(); }, kProbeLimit)) {
      world.model.fail("liveness: after all faults, new requests hang:\n%s", world.model.unresolved().c_str());
      return;
    }
  }
  if (!probe_apertures(world)) return;
  if (!quiet(world) || !check_rates(world) || !check_paths(world)) return;
  if (!end_connections(world, load) || !quiet(world)) return;
  check_flushed(world);
  world.model.final_check();
  if (world.failed()) return;
  check_quiet_state(world);
  if (world.failed()) return;
  world.trace("---- tear-down");
  if (world.apertures) world.apertures->tear_down();
  load.tear_down();
  if (end_all(world)) check_empty_state(world);
}

}  // namespace

RunResult result_of(const World& world) {
  RunResult r;
  r.failure = world.model.failure();
  if (world.failed()) r.last_events = world.last_events.text(LastEvents::told);
  r.trace_hash = world.trace_hash();
  r.events = world.events();
  r.succeeded = world.model.count(Wr::State::kSuccess);
  r.failed = world.model.count(Wr::State::kFailed);
  r.lost = world.model.count(Wr::State::kLost);
  if (world.apertures) {
    const ApertureModel& m = world.apertures->model;
    r.accesses = m.count(Access::State::kOk);
    r.refused_accesses = m.count(Access::State::kRefused);
    r.lost_accesses = m.count(Access::State::kGivenUp);
  }
  if (world.reached) r.states = world.reached->states();
  r.virtual_seconds = static_cast<double>(world.now().ns) / 1e9;
  return r;
}

RunResult run_scenario(const Options& options, RunWishes wishes) {
  World world(options, wishes.verbose);
  world.record_to = wishes.record;
  if (wishes.states) {
    world.reached = std::make_unique<Reached>();
    world.model.on_last_word = [&world](const Wr& w) { world.reached->judged_last_byte(world.options, w); };
  }
  if (options.aperture.handles != 0) world.apertures = std::make_unique<Apertures>(world);
  if (options.core.mapped != 0 && wishes.record.empty()) world.mappings = std::make_unique<Mappings>(world);
  Workload load(world);
  run_phases(world, load);
  return result_of(world);
}

}  // namespace ub::sim
