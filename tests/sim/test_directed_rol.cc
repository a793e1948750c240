// SPDX-License-Identifier: Apache-2.0
//
// ROL (UB Base Specification Rev 2.0, 6.8.2, 7.3.3): queues of RC whose order a channel keeps, and whose WRITEs and
// SENDs are answered by its acknowledgements. Two queues, one at each end, share the channel.
#include <algorithm>
#include <iterator>

#include "lib/transport/wire/response_status.h"
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

using wire::RecordType;

Options with_rol(double share = 1) {
  Options o = directed_options();
  o.core.rol = share;
  return o;
}

constexpr uint8_t kRelaxed = 1, kStrong = 2;

struct RolStage : Stage {
  explicit RolStage(const Options& o = with_rol(), uint8_t rnr_retry = 7) : Stage(o) {
    QueueSpec q = usual_queue();
    q.rnr_retry = rnr_retry;
    x = equip_rc(*a().node, q);
    y = equip_rc(*b().node, q);
    x.node->bind(x.queue, y.queue);
    y.node->bind(y.queue, x.queue);
    write_x(8);
    finish();
    quiet();
    taacks = &world.network.tamper.add(watch(is_taack));
  }
  const Wr& ask(const End& from, const End& to, WrOp op, uint32_t length, uint8_t order = 0, RequestSpec s = {}) {
    s.order = order;
    s.alone = true;
    all.push_back(&request(from, to, op, length, s));
    return *all.back();
  }
  const Wr& write_x(uint32_t length, uint8_t order = 0) { return ask(x, y, WrOp::kWrite, length, order); }
  const Wr& send_x(uint32_t length, uint8_t order = 0) { return ask(x, y, WrOp::kSend, length, order); }
  // A WRITE with a wrong token.
  const Wr& failing_write(const End& from, const End& to, uint32_t length) {
    RequestSpec s;
    s.wrong = Wrong::kToken;
    return request(from, to, WrOp::kWrite, length, s);
  }
  // WRITEs, SENDs, atomics and READs in turn, in both directions, a third of them strong.
  void mix(int requests) {
    static constexpr WrOp kOps[] = {WrOp::kWrite, WrOp::kSend, WrOp::kFetchAdd, WrOp::kWriteNotify, WrOp::kRead};
    x.give_receives(static_cast<uint32_t>(requests));
    y.give_receives(static_cast<uint32_t>(requests));
    for (int i = 0; i < requests; ++i) {
      const WrOp op = kOps[i % std::size(kOps)];
      const uint32_t length = op == WrOp::kFetchAdd ? 8 : 200 + static_cast<uint32_t>(i * 517 % 3800);
      ask(x, y, op, length, static_cast<uint8_t>(i % 3));
      ask(y, x, op, length, static_cast<uint8_t>(i % 3));
    }
  }
  void all_succeed() {
    finish();
    for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kSuccess) << op_name(w->op);
    check_memory();
  }
  bool rol_is_up(const End& e) const {
    const CoreState& s = e.node->core().state();
    for (uint32_t i = 1; i <= s.channels.high_water(); ++i)
      if (s.channels[i].is_up() && s.channels[i].rol) return true;
    return false;
  }
  static bool has_rol(const End& e) { return e.node->core().state().config.rol; }
  uint32_t confirmations() const { return confirms == nullptr ? 0 : confirms->hits; }

  End x, y;
  std::vector<const Wr*> all;
  TamperRule *taacks = nullptr, *confirms = nullptr;
};

bool is_confirmation(const PacketInfo& p) { return p.fake() && p.rtp.rspst != 0; }
bool is_failure(const PacketInfo& p) {
  return p.ack() && !p.sack() && p.rtp.rspst != 0 &&
         !(p.rtp.rspst == wire::kRspFused && p.rtp.rspinfo == wire::kFusedOk);
}
bool is_ack(const PacketInfo& p) { return p.ack(); }

TEST(Rol, writes_and_sends__have_no_taack) {
  RolStage s;
  EXPECT_TRUE(s.rol_is_up(s.x) && s.rol_is_up(s.y));
  s.mix(60);
  s.all_succeed();
  EXPECT_EQ(s.taacks->hits, 0u);
}

TEST(Rol, a_peer_without_it__gets_roi) {
  Options o = with_rol(0.5);
  int mixed = 0;
  for (o.seed = 1; o.seed < 12; ++o.seed) {
    RolStage s(o);
    const bool at_x = s.has_rol(s.x), at_y = s.has_rol(s.y);
    mixed += at_x != at_y;
    EXPECT_EQ(s.rol_is_up(s.x), at_x && at_y);
    s.mix(20);
    s.all_succeed();
    EXPECT_EQ(s.taacks->hits == 0, at_x && at_y);
  }
  EXPECT_GT(mixed, 0);
}

TEST(Rol, strong_writes__leave_without_waiting_for_each_other) {
  RolStage s;
  const Instant start = s.world.now();
  for (int i = 0; i < 64; ++i) s.write_x(64, kStrong);
  s.all_succeed();
  EXPECT_LT(s.seconds_since(start), 300e-6) << "64 round trips of 20 us would not be";
  EXPECT_EQ(s.taacks->hits, 0u);
}

TEST(Rol, lost_acknowledgements__are_made_up_for) {
  RolStage s;
  s.world.network.tamper.add(drop(20, is_ack));
  s.mix(40);
  s.all_succeed();
}

TEST(Rol, lost_and_late_and_doubled_packets__keep_the_order) {
  for (int n = 0; n < 6; ++n) {
    RolStage s;
    Tamper& t = s.world.network.tamper;
    t.add(drop(3, is_data, static_cast<uint32_t>(2 + 7 * n)));
    t.add(delay(3, microseconds(300), is_data, static_cast<uint32_t>(5 + 11 * n)));
    t.add(duplicate(3, microseconds(200), is_data, static_cast<uint32_t>(3 + 5 * n)));
    s.mix(40);
    s.all_succeed();
  }
}

// ---- failures --------------------------------------------------------------------------------------------------

// One message fails among others; what is reported of it, and what is confirmed, may be lost.
void one_fails_alone(uint32_t lost_reports, uint32_t lost_confirmations) {
  RolStage s;
  Tamper& t = s.world.network.tamper;
  s.confirms = &t.add(watch(is_confirmation));
  t.add(drop(lost_reports, is_failure));
  t.add(drop(lost_confirmations, is_confirmation));
  for (int i = 0; i < 5; ++i) s.write_x(64, kStrong);
  const Wr& fails = s.failing_write(s.x, s.y, 64);
  for (int i = 0; i < 5; ++i) s.write_x(64, kStrong);
  s.all_succeed();
  EXPECT_EQ(fails.status, CrStatus::kRemAccessAbort);
  EXPECT_GE(s.confirmations(), 1 + lost_confirmations);
}
TEST(Rol, a_failure__is_that_of_one_message) { one_fails_alone(0, 0); }
TEST(Rol, a_lost_report_of_a_failure__is_repeated) { one_fails_alone(3, 0); }
TEST(Rol, a_lost_confirmation__is_asked_for_again) { one_fails_alone(0, 3); }
TEST(Rol, both_lost__nothing_becomes_a_success) { one_fails_alone(4, 4); }

TEST(Rol, failures_in_a_row__are_told_one_after_the_other) {
  RolStage s;
  std::vector<const Wr*> bad;
  for (int i = 0; i < 100; ++i) {
    bad.push_back(&s.failing_write(s.x, s.y, 64));
    if (i % 4 == 0) s.write_x(64, kStrong);
  }
  s.all_succeed();
  for (const Wr* w : bad) EXPECT_EQ(w->status, CrStatus::kRemAccessAbort);
}

TEST(Rol, failures_both_ways__do_not_wait_for_each_other) {
  RolStage s;
  std::vector<const Wr*> bad;
  for (int i = 0; i < 40; ++i) {
    for (const auto& [from, to] : {std::pair(&s.x, &s.y), std::pair(&s.y, &s.x)}) {
      bad.push_back(&s.failing_write(*from, *to, 3000));
      s.ask(*from, *to, WrOp::kRead, 3000, kStrong);
    }
  }
  s.all_succeed();
  for (const Wr* w : bad) EXPECT_EQ(w->status, CrStatus::kRemAccessAbort);
}

// Reports of failures and what confirms them ask for each other, and the wire doubles each of them.
TEST(Rol, reports_and_confirmations_that_come_twice__do_not_multiply) {
  RolStage s;
  Tamper& t = s.world.network.tamper;
  s.confirms = &t.add(watch(is_confirmation));
  TamperRule& reports = t.add(watch(is_failure));
  t.add(duplicate(100'000, microseconds(3), [](const PacketInfo& p) { return is_failure(p) || is_confirmation(p); }));
  constexpr uint32_t kFailures = 40;
  for (uint32_t i = 0; i < kFailures / 2; ++i) {
    s.failing_write(s.x, s.y, 64);
    s.failing_write(s.y, s.x, 64);
  }
  s.all_succeed();
  EXPECT_GE(reports.hits, kFailures);
  EXPECT_LE(reports.hits, 5 * kFailures);
  EXPECT_LE(s.confirmations(), 10 * kFailures) << "one for each copy of a report";
}

// A long message is half sent and fills the window when a failure before it is reported.
TEST(Rol, a_failure_before_a_message_longer_than_the_window__is_confirmed) {
  Options o = with_rol();
  o.core.window_packets = 128;
  RolStage s(o);
  const Wr& fails = s.failing_write(s.x, s.y, 64);
  for (int i = 0; i < 4; ++i) s.write_x(300'000, kStrong);
  s.all_succeed();
  EXPECT_EQ(fails.status, CrStatus::kRemAccessAbort);
}

// ---- receives --------------------------------------------------------------------------------------------------

TEST(Rol, late_receives__keep_the_order_of_messages) {
  RolStage s;
  for (int i = 0; i < 40; ++i) {
    if (i % 3 == 0) s.write_x(64, kRelaxed);
    s.ask(s.x, s.y, i % 4 == 3 ? WrOp::kWriteImm : WrOp::kSend, 20 + static_cast<uint32_t>(i % 5) * 700,
          static_cast<uint8_t>(i % 3));
    if (i % 3 == 0) s.world.run_for(microseconds(30));
  }
  for (int i = 0; i < 40; ++i) {
    s.y.give_receives(1);
    s.world.run_for(microseconds(37 * (i % 7)));
  }
  s.all_succeed();
  EXPECT_EQ(s.taacks->hits, 0u);
}

TEST(Rol, a_message_given_up__does_not_block_the_next) {
  RolStage s(with_rol(), 1);
  const Wr& lost = s.request(s.x, s.y, WrOp::kSend, 100);
  s.finish();
  EXPECT_EQ(lost.status, CrStatus::kRnrRetryExceeded);
  s.y.give_receives(2);
  s.send_x(100);
  s.all_succeed();
}

TEST(Rol, a_strong_write_behind_a_refused_message__waits_for_it) {
  RolStage s;
  const Wr& message = s.send_x(64, kRelaxed);
  const Wr& strong = s.write_x(64, kStrong);
  s.write_x(64);
  s.world.run_for(milliseconds(5));
  EXPECT_EQ(message.state, Wr::State::kOutstanding);
  EXPECT_EQ(strong.state, Wr::State::kOutstanding);
  s.y.give_receives(1);
  s.all_succeed();
}

// ---- memory that answers later ---------------------------------------------------------------------------------

TEST(Rol, memory_slower_than_the_timeout__is_asked_for_by_probes) {
  Options o = with_rol();
  o.host.pending = 1;
  o.host.pending_ns = 40'000'000;
  RolStage s(o);
  s.y.give_receives(10);
  for (int i = 0; i < 10; ++i) {
    s.write_x(64, kStrong);
    s.send_x(64, kRelaxed);
  }
  s.all_succeed();
  EXPECT_GT(Stage::count(s.x, Counter::kTpTimeout), 0u);
  EXPECT_EQ(Stage::count(s.x, Counter::kTpChannelDead), 0u);
}

TEST(Rol, slow_memory_both_ways__reads_and_strong_writes_end) {
  for (const uint64_t ns : {5000u, 200'000u, 2'000'000u}) {
    Options o = with_rol();
    o.host.pending = 0.7;
    o.host.pending_ns = ns;
    o.core.kept_packets = 16;
    o.core.kept_small_packets = 0;
    RolStage s(o);
    s.mix(60);
    s.all_succeed();
  }
}

// ---- the end of a peer -----------------------------------------------------------------------------------------

TEST(Rol, a_peer_that_dies__ends_requests_with_a_timeout) {
  RolStage s;
  s.world.network.tamper.add(drop(kAlways, from(1, is_any)));
  RequestSpec any;
  any.extra_allowed = UINT32_MAX;
  std::vector<const Wr*> lost;
  for (int i = 0; i < 10; ++i) lost.push_back(&s.request(s.x, s.y, WrOp::kWrite, 64, any));
  s.finish();
  for (const Wr* w : lost) EXPECT_EQ(w->status, CrStatus::kAckTimeout);
  s.world.network.tamper.clear();
  s.write_x(64, kStrong);
  s.all_succeed();
  EXPECT_TRUE(s.rol_is_up(s.x));
}

}  // namespace
}  // namespace ub::sim
