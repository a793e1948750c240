// SPDX-License-Identifier: Apache-2.0
//
// Single packets lost, doubled, swapped or late: how the channel repairs it, and how fast.
#include <algorithm>

#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr CrStatus kSuccess = CrStatus::kSuccess;

TEST(Loss, lost_tail__is_found_by_a_probe) {
  Stage s;
  s.warm_up();
  s.world.network.tamper.add(drop(1, from(0, [](const PacketInfo& p) { return p.request() && p.rtp.last; })));
  const Wr& w = s.write(3000);
  double took = s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTxProbe), 1u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTimeout), 0u);
  EXPECT_LT(took, 0.0005) << "of a round trip of 20 us, and an acknowledgement that may be delayed by 100 us";
  s.check_memory();
}

// The first one goes again by time and halves the window, which the lost tail fills.
TEST(Loss, lost_first_and_tail__are_repaired_by_a_probe_although_the_window_is_shut) {
  Stage s;
  s.warm_up();
  auto first_and_tail = [n = 0](const PacketInfo& p) mutable {
    const int place = p.request() ? n++ : 1;
    return place == 0 || (place >= 10 && place < 32);
  };
  s.world.network.tamper.add(drop(kAlways, from(0, first_and_tail)));
  const Wr &v = s.write(16 * 1024), &w = s.write(16 * 1024);
  const double took = s.finish();
  EXPECT_EQ(v.status, kSuccess);
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_GE(s.count(s.a(), Counter::kTpTxProbe), 1u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTimeout), 0u);
  EXPECT_LT(took, 0.002);
  s.check_memory();
}

TEST(Loss, lost_middle__is_repaired_by_sack) {
  Stage s;
  s.warm_up();
  s.world.network.tamper.add(drop(1, from(0, is_request), 20));
  const Wr& w = s.write(65536);
  double took = s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTxRetransmitTimeout), 0u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTxRetransmitFast), 1u);
  EXPECT_LT(took, 0.004);
  s.check_memory();
}

TEST(Loss, many_lost_middles__are_repaired_without_timeout) {
  Stage s;
  s.warm_up();
  s.world.network.tamper.add(
      drop(7, from(0, [n = 0](const PacketInfo& p) mutable { return p.request() && ++n % 8 == 3; })));
  const Wr& w = s.write(65536);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTxRetransmitTimeout), 0u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTimeout), 0u);
  EXPECT_GE(s.count(s.a(), Counter::kTpTxRetransmitFast), 6u) << "a probe may repeat one of them";
  s.check_memory();
}

TEST(Loss, lost_retransmission__is_sent_again) {
  Stage s;
  s.warm_up();
  uint32_t psn = UINT32_MAX;
  auto tenth = [&psn, n = 0](const PacketInfo& p) mutable {
    if (!p.request() || p.from != 0) return false;
    if (psn == UINT32_MAX && ++n == 10) psn = p.rtp.psn.value();
    return p.rtp.psn.value() == psn;
  };
  s.world.network.tamper.add(drop(3, tenth));
  const Wr& w = s.write(65536);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  s.check_memory();
}

TEST(Loss, swapped_packets__cost_nothing) {
  Stage s;
  s.warm_up();
  s.world.network.tamper.add(
      swap_with_next(5, from(0, [](const PacketInfo& p) { return p.request() && !p.rtp.last; })));
  const Wr& w = s.write(16384);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTxRetransmitTimeout), 0u);
  s.check_memory();
}

TEST(Loss, duplicate_send__is_delivered_once) {
  Stage s;
  s.b().give_receives(4);
  s.warm_up();
  s.world.network.tamper.add(duplicate(1, microseconds(50), from(0, is_request)));
  const Wr& w = s.send(100);
  s.finish();
  s.quiet();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.b().jfr->posted.size(), 3u);
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxDuplicate), 1u);
  s.check_memory();
}

TEST(Loss, lost_taack__is_sent_again) {
  Stage s;
  s.warm_up();
  auto& rule = s.world.network.tamper.add(drop(1, from(1, is_taack)));
  const Wr& w = s.write(100);
  s.finish();
  EXPECT_EQ(rule.hits, 1u);
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTxRetransmitTimeout), 0u);  // the request itself was acknowledged
  EXPECT_GE(s.count(s.b(), Counter::kTpTxProbe), 1u);
}

TEST(Loss, lost_acks__do_not_matter_when_later_ones_come) {
  Stage s;
  s.warm_up();
  s.world.network.tamper.add(drop(10, from(1, [](const PacketInfo& p) { return p.ack(); })));
  const Wr& w = s.write(200'000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  s.check_memory();
}

TEST(Loss, damaged_packet__is_dropped_and_sent_again) {
  Stage s;
  s.warm_up();
  s.world.network.tamper.add(corrupt(3, from(0, is_request)));
  const Wr& w = s.write(3000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  s.check_memory();
}

TEST(Loss, read_with_lost_response_packets__is_repaired) {
  Stage s;
  s.warm_up();
  const auto is_answer = [](const PacketInfo& p) { return p.ta_is(wire::TaOpcode::kReadResponse); };
  s.world.network.tamper.add(drop(5, from(1, each(9, is_answer))));
  const Wr& w = s.read(65536);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  s.check_memory();
}

TEST(Loss, psn_wrap__in_the_middle_of_a_lossy_message) {
  Options o = directed_options();
  o.core.first_psn = 0xfffff0;
  Stage s(o);
  s.warm_up();
  s.world.network.tamper.add(drop(12, from(0, each(5, is_request))));
  const Wr& w = s.write(65536);
  const Wr& r = s.read(65536);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(r.status, kSuccess);
  uint32_t wrapped = 0;
  for (const ChannelInfo& c : s.channels(s.a())) wrapped += c.next_psn < 0x1000;
  EXPECT_GE(wrapped, 1u);
  s.check_memory();
}

TEST(Loss, packet_beyond_its_lifetime__changes_nothing) {
  Stage s;
  s.warm_up();
  uint64_t at = s.b().target->shared_at;
  s.world.network.tamper.add(delay(1, seconds(3), from(0, is_request)));
  RequestSpec spec;
  spec.offset = at;
  s.write(1000, spec);
  s.finish();
  const Wr& second = s.write(1000, spec);
  s.finish();
  EXPECT_EQ(second.status, kSuccess);
  s.world.run_for(seconds(4));
  s.check_memory();  // the oracle accepts the bytes of the second WRITE only
}

TEST(Loss, window__of_the_peer_is_respected_while_a_packet_is_missing) {
  Options o = directed_options();
  o.core.window_packets = 128;
  Stage s(o);
  for (int i = 0; i < 3; ++i) {  // opens the congestion window
    s.write(1 << 20);
    s.finish();
  }
  s.quiet();
  uint32_t missing = UINT32_MAX, farthest = 0;
  auto first = [&](const PacketInfo& p) {
    if (!p.request() || p.from != 0) return false;
    if (missing == UINT32_MAX) missing = p.rtp.psn.value();
    farthest = std::max(farthest, p.rtp.psn.distance(Psn(missing)));
    return p.rtp.psn.value() == missing;
  };
  s.world.network.tamper.add(drop(6, first));
  const Wr& w = s.write(1 << 20);
  EXPECT_TRUE(s.world.run_for(milliseconds(2)));
  EXPECT_GE(farthest, 100u);
  EXPECT_LT(farthest, 128u);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxBeyondWindow), 0u);
}

TEST(Loss, final_word__becomes_visible_last) {
  Stage s;
  s.warm_up();
  s.world.network.tamper.add(drop(2, from(0, is_request), 3));
  s.write(20'000);
  s.finish();  // the oracle looks at every placement of a last word
  s.check_memory();
}

TEST(Loss, small_messages__overtake_a_bulk_one) {
  Options o = directed_options();
  o.net.ns_per_byte = 1;
  Stage s(o);
  s.b().give_receives(100, 64);
  s.warm_up();
  End big = s.equip(*s.a().node, usual_queue(), usual_jfr(), 40 << 20);
  End sink = s.equip(*s.b().node, usual_queue(), usual_jfr(), 40 << 20);
  RequestSpec spec;
  const Wr& bulk = s.request(big, sink, WrOp::kWrite, 16 << 20, spec);
  s.world.run_for(milliseconds(2));
  for (int i = 0; i < 100; ++i) s.send(32);
  Instant start = s.world.now();
  EXPECT_TRUE(s.world.run_until([&] { return s.world.model.outstanding() == 1; }, seconds(5)));
  EXPECT_EQ(bulk.state, Wr::State::kOutstanding);
  EXPECT_LT(s.seconds_since(start), 0.010);
  s.finish();
  EXPECT_EQ(bulk.status, kSuccess);
  s.check_memory();
}

// ---- congestion ------------------------------------------------------------------------------------------------

TEST(Congestion, slows_a_channel_down_and_is_forgotten) {
  Options o = directed_options();
  o.work.control = cc::Control::kDcqcn;
  o.work.line_rate = 1'250'000'000;
  o.net.mark = 1;
  Stage s(o);
  std::vector<const Wr*> writes;
  for (int i = 0; i < 10; ++i) writes.push_back(&s.write(200'000));
  const double took = s.finish();
  for (const Wr* w : writes) EXPECT_EQ(w->status, kSuccess);
  EXPECT_GT(s.count(s.b(), Counter::kTpTxCnp), 1u);
  EXPECT_EQ(s.count(s.b(), Counter::kTpTxCnp), s.count(s.a(), Counter::kTpRxCnp));
  EXPECT_LE(static_cast<double>(s.count(s.b(), Counter::kTpTxCnp)), took / 50e-6 + 2);  // not one for each packet
  EXPECT_GT(took, 1e-3);
  s.world.network.heal();
  const auto limited = [&s] {
    const CoreState& core = s.a().node->core().state();
    for (uint32_t i = 1; i <= core.channels.high_water(); ++i)
      if (core.channels[i].is_up() && core.channels[i].flow.dcqcn.rate_kbytes_per_second != 0) return true;
    return false;
  };
  EXPECT_TRUE(limited());
  EXPECT_TRUE(s.world.run_until([&] { return !limited(); }, seconds(1)));
  s.check_memory();
}

}  // namespace
}  // namespace ub::sim
