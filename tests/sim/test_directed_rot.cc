// SPDX-License-Identifier: Apache-2.0
//
// ROT (UB Base Specification Rev 2.0, 7.3.3): queues of RC whose targets keep their order, over both lanes. A strong
// request costs no round trip, whichever channel carries those before it.
#include <algorithm>
#include <cstdio>

#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr uint8_t kRelaxed = 1, kStrong = 2;
constexpr uint32_t kBulk = 20'000;  // of one segment, on the bulk lane

Options with_two_lanes() {
  Options o = directed_options();
  o.core.lanes = 2;
  o.core.lane_bulk_bytes = 16 * 1024;
  return o;
}

struct RotStage : Stage {
  explicit RotStage(const Options& o = with_two_lanes()) : Stage(o) {
    QueueSpec q = usual_queue();
    q.rot = true;
    x = equip_rc(*a().node, q);
    y = equip_rc(*b().node, q);
    x.node->bind(x.queue, y.queue);
    y.node->bind(y.queue, x.queue);
    ask(WrOp::kWrite, 8, kStrong);
    ask(WrOp::kWrite, kBulk);  // so that there is a bulk channel, too
    finish();
    quiet();
  }
  const Wr& ask(WrOp op, uint32_t length, uint8_t order = 0) {
    RequestSpec s;
    s.order = order;
    s.alone = true;
    all.push_back(&request(x, y, op, length, s));
    return *all.back();
  }
  void all_succeed() {
    finish();
    for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kSuccess) << op_name(w->op);
    check_memory();
  }
  // How many requests the target holds now.
  uint32_t held() const {
    const CoreState& s = y.node->core().state();
    uint32_t n = 0;
    for (uint32_t i = 1; i <= s.contexts.high_water(); ++i) n += s.contexts[i].in_use ? s.contexts[i].early_count : 0;
    return n;
  }

  End x, y;
  std::vector<const Wr*> all;
};

// A request of this length by its queue.
Matcher request_of(uint32_t length) {
  return [=](const PacketInfo& p) { return p.request() && p.ta.has_ma && p.ta.ma.length == length; };
}

TEST(Rot, strong_writes__leave_without_waiting_for_each_other) {
  RotStage s;
  const Instant start = s.world.now();
  for (int i = 0; i < 128; ++i) s.ask(WrOp::kWrite, 64, kStrong);
  s.all_succeed();
  EXPECT_LT(s.seconds_since(start), 300e-6) << "128 round trips of 20 us would not be";
  EXPECT_EQ(s.count(s.y, Counter::kTaRxEarly), 0u) << "on one channel each comes in its turn";
}

TEST(Rot, a_strong_write_that_overtakes_a_bulk_one__waits_at_the_target) {
  RotStage s;
  s.world.network.tamper.add(delay(kAlways, milliseconds(2), request_of(kBulk)));
  s.ask(WrOp::kWrite, kBulk, kRelaxed);
  for (int i = 0; i < 10; ++i) s.ask(WrOp::kWrite, 64, kStrong);
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(s.held(), 10u);
  EXPECT_EQ(s.all.back()->state, Wr::State::kOutstanding);
  s.all_succeed();
  EXPECT_EQ(s.held(), 0u);
}

TEST(Rot, so_does_a_read__and_an_atomic_comes_again) {
  RotStage s;
  s.world.network.tamper.add(delay(kAlways, milliseconds(2), request_of(kBulk)));
  s.ask(WrOp::kWrite, kBulk, kRelaxed);
  s.ask(WrOp::kFetchAdd, 8, kStrong);
  s.ask(WrOp::kRead, 3000, kStrong);
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(s.held(), 1u);
  EXPECT_GT(s.count(s.y, Counter::kTaTxRnr), 0u) << "where memory may answer later an atomic is not held";
  s.all_succeed();
}

TEST(Rot, requests_without_an_order__pass_those_that_wait) {
  RotStage s;
  s.world.network.tamper.add(delay(kAlways, milliseconds(2), request_of(kBulk)));
  s.ask(WrOp::kWrite, kBulk, kRelaxed);
  s.ask(WrOp::kWrite, 64, kStrong);
  const uint64_t before = s.count(s.y, Counter::kTpRxData);
  s.ask(WrOp::kWrite, 64);
  s.ask(WrOp::kWrite, 64, kRelaxed);
  s.world.run_for(milliseconds(1));
  EXPECT_GE(s.count(s.y, Counter::kTpRxData), before + 3);
  EXPECT_EQ(s.held(), 1u);
  s.all_succeed();
}

TEST(Rot, lost_and_late_and_doubled_packets__keep_the_order) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Options o = with_two_lanes();
    o.seed = seed;
    o.net.loss = 0.02;
    o.net.duplicate = 0.1;
    o.net.reorder = 0.2;
    o.net.reorder_ns = 100'000;
    o.host.pending = seed % 2 == 0 ? 0.5 : 0;
    o.host.pending_ns = 20'000;
    RotStage s(o);
    static constexpr WrOp kOps[] = {WrOp::kWrite, WrOp::kWrite, WrOp::kFetchAdd, WrOp::kWriteNotify, WrOp::kRead};
    for (int i = 0; i < 60; ++i) {
      const WrOp op = kOps[i % std::size(kOps)];
      const uint32_t length = op == WrOp::kFetchAdd ? 8 : i % 7 == 0 ? kBulk : 200 + static_cast<uint32_t>(i * 31);
      s.ask(op, length, static_cast<uint8_t>(i % 3));
    }
    s.all_succeed();
  }
}

TEST(Rot, the_bulk_channel_dies__and_all_that_waits_for_it_ends) {
  RotStage s;
  s.world.network.tamper.add(drop(kAlways, request_of(kBulk)));
  s.extra_allowed = bit(CrStatus::kAckTimeout);
  s.ask(WrOp::kWrite, kBulk, kRelaxed);
  for (int i = 0; i < 3; ++i) s.ask(WrOp::kWrite, 64, kStrong);
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(s.held(), 3u);
  s.finish();
  for (size_t i = s.all.size() - 4; i < s.all.size(); ++i) EXPECT_EQ(s.all[i]->status, CrStatus::kAckTimeout);
  s.world.network.tamper.clear();
  s.extra_allowed = 0;
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(s.held(), 0u) << "the queue has said that it is done with the context";
  s.all = {&s.ask(WrOp::kWrite, 64, kStrong), &s.ask(WrOp::kWrite, 64, kStrong)};
  s.all_succeed();
}

// ---- who waits, waits alone ------------------------------------------------------------------------------------

constexpr int kQueues = 8, kRequests = 200;

// A queue whose strong requests wait at the target for good, and eight others on the same channel.
struct Crowd : RotStage {
  static Options fast_wire() {
    Options o = with_two_lanes();
    o.mtu = 4096;
    o.lossless = true;
    o.net.ns_per_byte = 0.08;  // 100 Gb/s
    o.work.poll_ns = 20;       // so that the end is seen when it comes
    return o;
  }
  Crowd() : RotStage(fast_wire()) {
    for (int i = 0; i < kQueues; ++i) {
      senders.push_back(equip(*a().node, usual_queue(), usual_jfr(), 16 << 20));
      targets.push_back(equip(*b().node, usual_queue(), usual_jfr(), 16 << 20));
    }
    for (int i = 0; i < kQueues; ++i) request(senders[i], targets[i], WrOp::kWrite, 8);
    finish();
    quiet();
  }
  void stall() {
    world.network.tamper.add(drop(kAlways, request_of(kBulk)));
    ask(WrOp::kWrite, kBulk, kRelaxed);
    for (int i = 0; i < 100; ++i) ask(WrOp::kWrite, 8, kStrong);
    world.run_for(milliseconds(1));
    EXPECT_EQ(held(), kEarlyOfContext);
  }
  double seconds_for_others(uint32_t bytes) { return seconds_to_write(senders, targets, kRequests, bytes); }

  std::vector<End> senders, targets;
};

TEST(RotIsolation, strong_requests_that_wait_at_the_target__leave_others_99_percent) {
  for (const uint32_t bytes : {64u, 4096u}) {
    Crowd alone;
    const double before = alone.seconds_for_others(bytes);
    Crowd beside;
    beside.stall();
    const double with = beside.seconds_for_others(bytes);
    EXPECT_EQ(beside.held(), kEarlyOfContext);
    EXPECT_GE(before / with, 0.99) << bytes << " B: " << before * 1e6 << " us alone, " << with * 1e6 << " us";
    std::printf("%u B: %.1f %% of the rate\n", bytes, 100 * before / with);
    beside.world.network.tamper.clear();
    beside.all_succeed();
  }
}

}  // namespace
}  // namespace ub::sim
