// SPDX-License-Identifier: Apache-2.0
//
// Stretches of time in which little or nothing arrives: a link that flaps, partitions, a third of all packets lost,
// losses in bursts. By RTP, selective and Go-Back-N, and by CTP on a wire that may lose packets. While no silence is as
// long as a deadline (docs/wire.md, Failures), every request succeeds. After a longer one those that waited end with
// ACK_TIMEOUT, and the next ones succeed.
#include "tests/sim/at_rest.h"
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

enum class Way : uint8_t { kSelective, kGoBackN, kCompact };
constexpr Way kWays[] = {Way::kSelective, Way::kGoBackN, Way::kCompact};
constexpr const char* kNames[] = {"selective", "Go-Back-N", "CTP"};

Options options_of(Way way) {
  Options o = directed_options();
  o.core.go_back_n = way == Way::kGoBackN ? 1 : 0;
  o.compact = way == Way::kCompact;
  return o;
}

struct OutageStage : Stage {
  explicit OutageStage(const Options& o) : Stage(o) {
    b().give_receives(200, 2048);
    warm_up();
  }

  // Where CTP serves, it carries all but the SEND.
  void post_one_of_each() {
    for (const Wr* w : {&write(6000), &read(1000), &request(a(), b(), WrOp::kFetchAdd, 8), &send(1500)}) {
      posted.push_back(w);
    }
  }
  void cut(bool cut) { world.network.cut(0, 1, cut); }
  void silence(Duration time) {
    cut(true);
    post_one_of_each();
    world.run_for(time);
    cut(false);
  }
  void all_have(CrStatus status) const {
    for (const Wr* w : posted) EXPECT_EQ(w->status, status) << op_name(w->op);
  }
  void all_succeed() {
    finish();
    all_have(CrStatus::kSuccess);
    check_memory();
    check_quiet_state(world);
  }
  // How often something went again, by whichever cause.
  uint64_t sent_again() {
    uint64_t sum = 0;
    for (Counter c : {Counter::kTpTxRetransmitFast, Counter::kTpTxAgainProbe, Counter::kTpTxRetransmitTimeout,
                      Counter::kCtpTxRepeat}) {
      sum += count(a(), c);
    }
    return sum;
  }

  std::vector<const Wr*> posted;
};

TEST(Outages, a_link_that_is_up_for_1_ms_and_down_for_3__all_succeeds) {
  for (Way way : kWays) {
    SCOPED_TRACE(kNames[static_cast<size_t>(way)]);
    OutageStage s(options_of(way));
    for (int i = 0; i < 40; ++i) {
      s.post_one_of_each();
      s.world.run_for(milliseconds(1));
      s.silence(milliseconds(3));
    }
    EXPECT_GE(s.sent_again(), 40u);
    s.all_succeed();
    EXPECT_EQ(s.count(s.a(), Counter::kTpChannelDead), 0u);
    EXPECT_EQ(s.count(s.a(), Counter::kCtpTxRepeat) != 0, way == Way::kCompact);
  }
}

// It is up for longer than the longest pause of a sender (512 ms), and down for less than makes a peer dead (4 s).
TEST(Outages, a_link_that_is_up_for_1_s_and_down_for_3__all_succeeds) {
  for (Way way : kWays) {
    SCOPED_TRACE(kNames[static_cast<size_t>(way)]);
    OutageStage s(options_of(way));
    for (int i = 0; i < 3; ++i) {
      s.silence(seconds(3));
      s.world.run_for(seconds(1));
      s.all_have(CrStatus::kSuccess);
    }
    s.all_succeed();
    EXPECT_EQ(s.count(s.a(), Counter::kTpChannelDead), 0u);
  }
}

TEST(Outages, a_partition_of_10_s__what_waits_times_out_and_the_next_requests_succeed) {
  for (Way way : kWays) {
    SCOPED_TRACE(kNames[static_cast<size_t>(way)]);
    OutageStage s(options_of(way));
    s.extra_allowed = bit(CrStatus::kAckTimeout);
    s.silence(seconds(10));
    for (const Wr* w : s.posted) EXPECT_NE(w->state, Wr::State::kOutstanding);
    s.all_have(CrStatus::kAckTimeout);
    EXPECT_GE(s.count(s.a(), Counter::kTpChannelDead), 1u);
    s.extra_allowed = 0;
    s.posted.clear();
    for (int i = 0; i < 10; ++i) s.post_one_of_each();
    s.all_succeed();
  }
}

TEST(Outages, a_third_of_all_packets_lost__all_succeeds) {
  for (Way way : kWays) {
    SCOPED_TRACE(kNames[static_cast<size_t>(way)]);
    Options o = options_of(way);
    o.net.loss = 0.3;
    OutageStage s(o);
    for (int i = 0; i < 25; ++i) s.post_one_of_each();
    s.all_succeed();
    EXPECT_GE(s.sent_again(), 50u) << "of more than 200 packets";
  }
}

TEST(Outages, bursts_of_20_packets_lost__all_succeeds) {
  for (Way way : kWays) {
    SCOPED_TRACE(kNames[static_cast<size_t>(way)]);
    Options o = options_of(way);
    o.net.burst_start = 0.01;
    o.net.burst_packets = 20;
    OutageStage s(o);
    for (int i = 0; i < 25; ++i) s.post_one_of_each();
    s.all_succeed();
    EXPECT_GE(s.sent_again(), 20u);
  }
}

}  // namespace
}  // namespace ub::sim
