// SPDX-License-Identifier: Apache-2.0
//
// Go-Back-N between two instances (UB Base Specification Rev 2.0, 6.4.1, 6.4.2): what a loss costs, and how it is
// repaired without a timeout.
#include "lib/transport/wire/response_status.h"
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr CrStatus kSuccess = CrStatus::kSuccess;

Options go_back_options() {
  Options o = directed_options();
  o.core.go_back_n = 1;
  return o;
}
bool is_nak(const PacketInfo& p) {
  return p.ack() && p.rtp.rspst == wire::kRspError && p.rtp.rspinfo == wire::kErrPsn;
}
bool is_sack(const PacketInfo& p) { return p.sack(); }
uint64_t repaired_slowly(const End& e) {
  return e.node->counter(Counter::kTpTxProbe) + e.node->counter(Counter::kTpTimeout);
}

// Without it silence is noticed by the timeout alone.
void know_the_round_trip(Stage& s) {
  s.write(65536);
  s.finish();
  s.quiet();
}

TEST(GoBackN, lost_middle__everything_behind_it_goes_again_after_one_nak) {
  Stage s(go_back_options());
  s.warm_up();
  s.world.network.tamper.add(drop(1, from(0, is_request), 20));
  auto& selective = s.world.network.tamper.add(watch(is_sack));
  const Wr& w = s.write(65536);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.b(), Counter::kTpTxNak), 1u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpRxNak), 1u);
  EXPECT_GE(s.count(s.b(), Counter::kTpRxDiscarded), 10u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTxRetransmitFast), s.count(s.b(), Counter::kTpRxDiscarded) + 1);
  EXPECT_EQ(repaired_slowly(s.a()), 0u);
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxOutOfOrder), 0u);
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxDuplicate), 0u);
  EXPECT_EQ(selective.hits, 0u);
  s.check_memory();
}

TEST(GoBackN, several_losses__each_has_its_nak) {
  Stage s(go_back_options());
  s.warm_up();
  s.world.network.tamper.add(drop(1, from(0, is_request), 10));
  s.world.network.tamper.add(drop(1, from(0, is_request), 60));  // one of those that go again
  const Wr& w = s.write(65536);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.b(), Counter::kTpTxNak), 2u);
  EXPECT_EQ(repaired_slowly(s.a()), 0u);
  s.check_memory();
}

TEST(GoBackN, lost_nak__is_repaired_by_a_probe) {
  Stage s(go_back_options());
  know_the_round_trip(s);
  s.world.network.tamper.add(drop(1, from(0, is_request), 20));
  s.world.network.tamper.add(drop(1, from(1, is_nak)));
  const Wr& w = s.write(65536);
  const double took = s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_GE(s.count(s.a(), Counter::kTpTxProbe), 1u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTimeout), 0u);
  EXPECT_LT(took, 0.002);
  s.check_memory();
}

TEST(GoBackN, lost_repetition__is_repaired_by_a_probe) {
  Stage s(go_back_options());
  know_the_round_trip(s);
  uint32_t psn = UINT32_MAX;
  auto tenth = [&psn, n = 0](const PacketInfo& p) mutable {
    if (!p.request() || p.from != 0) return false;
    if (psn == UINT32_MAX && ++n == 10) psn = p.rtp.psn.value();
    return p.rtp.psn.value() == psn;
  };
  s.world.network.tamper.add(drop(2, tenth));
  const Wr& w = s.write(65536);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTimeout), 0u);
  s.check_memory();
}

TEST(GoBackN, without_fast_retransmission__the_timeout_repairs) {
  Options o = go_back_options();
  o.core.fast_retransmit = false;
  Stage s(o);
  s.warm_up();
  s.world.network.tamper.add(drop(1, from(0, is_request), 5));
  const Wr& w = s.write(20'000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.count(s.b(), Counter::kTpTxNak), 0u);
  EXPECT_EQ(s.count(s.a(), Counter::kTpTimeout), 1u);
  s.check_memory();
}

TEST(GoBackN, swapped_packets__go_again_and_are_taken_once) {
  Stage s(go_back_options());
  s.warm_up();
  s.world.network.tamper.add(
      swap_with_next(3, from(0, [](const PacketInfo& p) { return p.request() && !p.rtp.last; })));
  const Wr& w = s.write(16384);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_GE(s.count(s.b(), Counter::kTpTxNak), 1u);
  s.check_memory();
}

TEST(GoBackN, duplicates__are_acknowledged_again) {
  Stage s(go_back_options());
  s.b().give_receives(4);
  s.warm_up();
  s.world.network.tamper.add(duplicate(1, microseconds(50), from(0, is_request)));
  const Wr& w = s.send(100);
  s.finish();
  s.quiet();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(s.b().jfr->posted.size(), 3u);
  EXPECT_EQ(s.count(s.b(), Counter::kTpRxDuplicate), 1u);
  EXPECT_EQ(s.count(s.b(), Counter::kTpTxNak), 0u);
}

TEST(GoBackN, psn_wrap__in_the_middle_of_a_lossy_message) {
  Options o = go_back_options();
  o.core.first_psn = 0xfffff0;
  Stage s(o);
  s.warm_up();
  s.world.network.tamper.add(drop(12, from(0, each(5, is_request))));
  const Wr& w = s.write(65536);
  const Wr& r = s.read(65536);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(r.status, kSuccess);
  s.check_memory();
}

TEST(GoBackN, slow_memory_and_rol__an_acknowledgement_says_only_what_was_executed) {
  Options o = go_back_options();
  o.core.rol = 1;
  o.host.pending = 1;
  o.host.pending_ns = 100'000;
  Stage s(o);
  s.warm_up();
  s.world.network.tamper.add(drop(6, from(0, each(7, is_request))));
  const End a = s.equip_rc(*s.a().node), b = s.equip_rc(*s.b().node);
  a.node->bind(a.queue, b.queue);
  b.node->bind(b.queue, a.queue);
  const Wr* w = &s.request(a, b, WrOp::kWrite, 30'000);
  for (int i = 0; i < 8; ++i) w = &s.request(a, b, WrOp::kWrite, 500);
  s.finish();  // the oracle looks at each completion: are the bytes there?
  EXPECT_EQ(w->status, kSuccess);
  s.check_memory();
}

}  // namespace
}  // namespace ub::sim
