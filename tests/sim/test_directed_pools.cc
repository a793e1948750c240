// SPDX-License-Identifier: Apache-2.0
//
// Pools of loss recovery that are used up: records of retransmissions, kept packets, places of queues on a channel of
// CTP. It costs packets that go again, or another way, and nothing else: all requests succeed, and when all is at rest
// every record is back. There is a bitmap of packets ahead of a gap for each channel. That a channel of CTP finds no
// record of repeats is in test_directed_compact.cc.
#include <map>

#include "tests/sim/at_rest.h"
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr CrStatus kSuccess = CrStatus::kSuccess;

void all_succeed(Stage& s, const std::vector<const Wr*>& all) {
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess) << op_name(w->op);
  s.check_memory();
  check_quiet_state(s.world);
}

// ---- several channels ------------------------------------------------------------------------------------------

constexpr uint32_t kChannels = 4;
constexpr uint32_t kWriteBytes = 4 << 20;

Options spread_options() {
  Options o = directed_options();
  o.core.channels_per_lane = kChannels;
  o.core.window_packets = 2048;
  o.core.loss_window = false;
  return o;
}

// One WRITE whose segments are spread over the channels of their lane: a thousand packets for each.
struct SpreadStage : Stage {
  SpreadStage() : Stage(spread_options()) {
    from = equip(*a().node, usual_queue(), usual_jfr(), 2 * kWriteBytes);
    to = equip(*b().node, usual_queue(), usual_jfr(), 2 * kWriteBytes);
    request(from, to, WrOp::kWrite, kWriteBytes);
    finish();  // makes the channels
    quiet();
  }
  const CoreState& state_of(const End& e) const { return e.node->core().state(); }
  // How often a packet was sent, this time included.
  uint32_t times_sent(const PacketInfo& p) { return ++sent[{p.rtp.dst_tpn, p.rtp.psn.value()}]; }

  End from, to;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> sent;
};

// Almost all packets of all channels are lost, and once more when they go again.
TEST(Pools, without_a_record_a_retransmission_that_is_lost_is_found_by_a_probe) {
  SpreadStage s;
  s.world.network.tamper.add(drop(kAlways, sim::from(0, [&s](const PacketInfo& p) {
                                    return p.request() && p.rtp.psn.value() % 16 != 0 && s.times_sent(p) <= 2;
                                  })));
  const Wr& w = s.request(s.from, s.to, WrOp::kWrite, kWriteBytes);
  all_succeed(s, {&w});
  EXPECT_GT(s.count(s.a(), Counter::kTpTxNoRecord), 0u);
  EXPECT_GT(s.count(s.a(), Counter::kTpTxProbe), 0u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTimeout), 0u);
}

TEST(Pools, every_channel_with_a_gap_has_a_bitmap) {
  SpreadStage s;
  std::map<uint32_t, Psn> missing;  // of each channel
  const auto is_first = [&missing](const PacketInfo& p) {
    return p.request() && missing.try_emplace(p.rtp.dst_tpn, p.rtp.psn).first->second == p.rtp.psn;
  };
  TamperRule& gap = s.world.network.tamper.add(drop(kAlways, sim::from(0, is_first)));
  const Wr& w = s.request(s.from, s.to, WrOp::kWrite, kWriteBytes);
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(missing.size(), kChannels);
  EXPECT_EQ(s.state_of(s.to).reorder.in_use(), kChannels);
  gap.count = gap.hits;
  all_succeed(s, {&w});
  EXPECT_EQ(s.state_of(s.to).reorder.in_use(), 0u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTimeout), 0u);
}

// ---- packets that are kept until the missing one comes ---------------------------------------------------------

struct KeptCase {
  uint32_t small, large;  // places
  WrOp op;
  uint32_t bytes;
};

// A hundred messages of a packet behind one that is lost. A channel has half of the places.
void lose_the_first_with(const KeptCase& c) {
  SCOPED_TRACE(testing::Message() << c.small << " small places, " << c.large << " large ones, " << op_name(c.op)
                                  << " of " << c.bytes << " B");
  Options o = directed_options();
  o.core.kept_small_packets = c.small;
  o.core.kept_packets = c.large;
  o.core.loss_window = false;
  Stage s(o);
  s.b().give_receives(100, 1024);
  s.warm_up();
  s.world.network.tamper.add(drop(1, from(0, is_request)));
  std::vector<const Wr*> all;
  for (int i = 0; i < 100; ++i) all.push_back(&s.request(s.a(), s.b(), c.op, c.bytes));
  const tp::KeptPackets& kept = s.b().node->core().state().kept;
  uint32_t most = 0;
  s.world.run_until([&] { return most = std::max(most, kept.in_use()), s.world.all_resolved(); }, seconds(10));
  all_succeed(s, all);
  EXPECT_EQ(most, (c.bytes < 200 ? c.small / 2 : 0) + c.large / 2);
  EXPECT_GE(s.count(s.b(), Counter::kRxNoReorderBuffer), 100 - 1 - most);
  EXPECT_GE(s.count(s.a(), Counter::kTpTxRetransmitFast) + s.count(s.a(), Counter::kTpTxAgainProbe), 100 - most);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTimeout), 0u);
}

TEST(Pools, without_a_place_a_packet_ahead_of_a_gap_is_dropped_and_comes_again) {
  for (WrOp op : {WrOp::kSend, WrOp::kWrite}) {
    lose_the_first_with({16, 16, op, 100});
    lose_the_first_with({0, 16, op, 100});
    lose_the_first_with({16, 16, op, 1000});
  }
}

// ---- queues on a channel of CTP --------------------------------------------------------------------------------

TEST(Pools, queues_that_find_no_place_on_a_channel_of_ctp_use_rtp) {
  constexpr uint32_t kQueues = 40, kPlaces = 32;
  Options o = directed_options();
  o.compact = true;
  o.net.loss = 0.03;
  o.net.duplicate = 0.1;
  Stage s(o);
  std::vector<End> ends;
  for (uint32_t i = 0; i < kQueues; ++i) {
    ends.push_back(s.a());
    ends.back().queue = s.a().node->add_queue(*s.a().app, s.a().jfc, s.a().jfr, usual_queue());
  }
  std::vector<const Wr*> all;
  for (int round = 0; round < 5; ++round) {
    for (const End& e : ends) {
      all.push_back(&s.request(e, s.b(), WrOp::kWrite, 64));
      all.push_back(&s.request(e, s.b(), WrOp::kFetchAdd, 8));
    }
    s.finish();
  }
  all_succeed(s, all);
  EXPECT_GE(s.count(s.a(), Counter::kCtpTx), 2 * 4 * kPlaces);
  EXPECT_GE(s.count(s.a(), Counter::kTpTxData), 2 * 4 * (kQueues - kPlaces));
  EXPECT_GE(s.count(s.a(), Counter::kCtpTxRepeat), 1u);
  EXPECT_EQ(s.count(s.b(), Counter::kCtpRxNoRecord), 0u);
}

}  // namespace
}  // namespace ub::sim
