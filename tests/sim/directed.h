// SPDX-License-Identifier: Apache-2.0
//
// Stage for directed tests: two nodes (or more) with one application each, a fault-free network until the
// test arms tamper rules, and the same oracle as in the swarm: whatever a test does not check, the oracle
// does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/sim/equipment.h"
#include "tests/sim/requests.h"
#include "tests/sim/world.h"

namespace ub::sim {

inline Options directed_options() {
  Options o;
  o.net.delay_ns = 10'000;
  o.work.poll_ns = 500;
  o.work.poll_batch = 1000;
  o.work.sges = 1;
  o.work.starve = 1;  // tests post the receives
  o.core.keepalive_ns = 10'000'000'000;
  return o;
}

class Stage {
 public:
  explicit Stage(Options o = directed_options(), uint32_t nodes = 2)
      : world(o, std::getenv("UB_SIM_VERBOSE") != nullptr) {
    for (uint32_t i = 0; i < nodes; ++i) {
      wire::Endpoint at{wire::IpAddress::from_v4(0x0a000001 + i), wire::kUbUdpPort};
      world.add_node(at).boot();
    }
    for (uint32_t i = 0; i < nodes; ++i) ends.push_back(equip(world.node(i)));
  }

  ~Stage() {
    EXPECT_EQ(world.model.failure(), "");
    if (testing::Test::HasFailure()) std::fputs(world.last_events.text(LastEvents::told).c_str(), stdout);
  }

  End equip(Node& node, QueueSpec q = usual_queue(), JfrSpec r = usual_jfr(), uint64_t memory = 4 << 20) {
    return sim::equip(node, q, r, memory);
  }

  // With a queue of RC, which the test binds.
  End equip_rc(Node& node, QueueSpec q = usual_queue()) {
    q.mode = Mode::kRc;
    JfrSpec r = usual_jfr();
    r.mode = Mode::kRc;
    return equip(node, q, r);
  }

  End& a() { return ends[0]; }
  End& b() { return ends[1]; }

  // Posts and rings.
  const Wr& request(const End& from, const End& to, WrOp op, uint32_t length, RequestSpec s = {}) {
    s.op = op;
    s.length = length;
    s.to = to.receiver();
    if (s.remote == nullptr) s.remote = to.target;
    s.extra_allowed |= extra_allowed;
    const Wr* w = post(world, from.queue, s);
    UB_ASSERT(w != nullptr);
    from.node->ring(from.queue);
    return *w;
  }
  const Wr& write(uint32_t length, RequestSpec s = {}) { return request(a(), b(), WrOp::kWrite, length, s); }
  const Wr& read(uint32_t length, RequestSpec s = {}) { return request(a(), b(), WrOp::kRead, length, s); }
  const Wr& send(uint32_t length, RequestSpec s = {}) { return request(a(), b(), WrOp::kSend, length, s); }

  // Until everything is answered. Seconds that it took.
  double finish(Duration limit = seconds(30)) {
    Instant start = world.now();
    EXPECT_TRUE(world.run_until([&] { return world.all_resolved(); }, limit)) << world.model.unresolved();
    return seconds_since(start);
  }
  // Virtual seconds until each of `from` has written so often to its partner in `to`.
  double seconds_to_write(const std::vector<End>& from, const std::vector<End>& to, int times, uint32_t bytes) {
    std::vector<const Wr*> all;
    const Instant start = world.now();
    for (int n = 0; n < times; ++n) {
      for (size_t i = 0; i < from.size(); ++i) all.push_back(&request(from[i], to[i], WrOp::kWrite, bytes));
    }
    const auto done = [&] {
      return std::all_of(all.begin(), all.end(), [](const Wr* w) { return w->state != Wr::State::kOutstanding; });
    };
    EXPECT_TRUE(world.run_until(done, seconds(10)));
    const double took = seconds_since(start);
    for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kSuccess);
    return took;
  }
  double seconds_since(Instant start) const { return static_cast<double>((world.now() - start).ns) / 1e9; }
  // The channel stands, nothing is under way.
  void warm_up() {
    const Wr& w = write(8);
    finish();
    EXPECT_EQ(w.status, CrStatus::kSuccess);
    quiet();
  }
  void quiet() { EXPECT_TRUE(world.run_until_quiet(seconds(10))) << world.model.failure(); }
  void check_memory() {
    quiet();
    world.model.final_check();
  }

  std::vector<ChannelInfo> channels(const End& e) {
    std::vector<ChannelInfo> all;
    ChannelInfo c;
    for (uint32_t i = 0; i <= e.node->core().channel_table_size(); ++i)
      if (e.node->core().channel_info(i, &c)) all.push_back(c);
    return all;
  }
  static uint64_t count(const End& e, Counter c) { return e.node->counter(c); }

  World world;
  std::vector<End> ends;
  uint32_t extra_allowed = 0;
};

// ---- what to match --------------------------------------------------------------------------------------------

inline Matcher from(uint32_t node, std::function<bool(const PacketInfo&)> m) {
  return [=](const PacketInfo& p) { return p.from == node && m(p); };
}
// Each n-th of those that match.
inline Matcher each(uint32_t n, std::function<bool(const PacketInfo&)> m) {
  return [=, seen = 0u](const PacketInfo& p) mutable { return m(p) && ++seen % n == 0; };
}
inline Matcher record(uint32_t from_node, wire::RecordType type) {
  return [=](const PacketInfo& p) { return p.from == from_node && p.is_record(type); };
}
inline bool is_request(const PacketInfo& p) { return p.request(); }
inline bool is_taack(const PacketInfo& p) { return p.taack(); }
inline bool is_data(const PacketInfo& p) { return p.data(); }
inline bool is_any(const PacketInfo&) { return true; }

// A control record as a peer would send it.
std::vector<std::byte> control_frame(const wire::ControlRecord&, const wire::Endpoint& src, const wire::Endpoint& dst);

}  // namespace ub::sim
