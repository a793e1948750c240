// SPDX-License-Identifier: Apache-2.0
//
// CTP on a wire that may lose, double and reorder packets (UB Base Specification Rev 2.0, 6.2.1, 7.3.1.1): single
// packets lost, doubled or late. The oracle sees that nothing is executed twice. And ROL by CTP on a wire that loses
// nothing (7.3.3).
#include "lib/transport/ta/repeats.h"
#include "lib/transport/wire/compact_packet.h"
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr CrStatus kSuccess = CrStatus::kSuccess;

Options on_lossy_wire() {
  Options o = directed_options();
  o.compact = true;
  return o;
}

// What a frame of CTP is about; false: it is none.
bool read_compact(const PacketInfo& p, wire::TaPacket* ta) {
  wire::CompactPacket packet;
  if (!wire::has_link_header(p.frame) || wire::parse_compact(p.frame, packet) != wire::Drop::kNone) return false;
  return wire::parse_compact_transaction(packet.rest, packet.end, packet.ctp.padding, *ta) == wire::Drop::kNone;
}
bool compact_request(const PacketInfo& p) {
  wire::TaPacket ta;
  return read_compact(p, &ta) && !ta.is_response;
}
bool compact_answer(const PacketInfo& p) {
  wire::TaPacket ta;
  return read_compact(p, &ta) && ta.is_response;
}
bool compact_retry(const PacketInfo& p) {
  wire::TaPacket ta;
  return read_compact(p, &ta) && !ta.is_response && ta.req.retry;
}

struct CompactStage : Stage {
  explicit CompactStage(const Options& o = on_lossy_wire()) : Stage(o) { warm_up(); }
  const Wr& add() { return request(a(), b(), WrOp::kFetchAdd, 8); }
  void all_succeed(std::initializer_list<const Wr*> all) {
    finish();
    for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess) << op_name(w->op);
    check_memory();
  }
};

TEST(Compact, lost_request__comes_again_with_retry) {
  CompactStage s;
  s.world.network.tamper.add(drop(1, compact_request));
  TamperRule& again = s.world.network.tamper.add(watch(compact_retry));
  const Wr& w = s.write(64);
  const double took = s.finish();
  s.all_succeed({&w});
  EXPECT_LT(took, 0.006) << "a timeout is 4 ms";
  EXPECT_EQ(again.hits, 1u);
  EXPECT_EQ(s.count(s.a(), Counter::kCtpTxRepeat), 1u);
}

TEST(Compact, lost_answers__are_given_again) {
  CompactStage s;
  s.world.network.tamper.add(drop(3, compact_answer));
  const Wr& w = s.add();
  s.all_succeed({&w});
  EXPECT_EQ(s.count(s.b(), Counter::kCtpRxRepeated), 3u);
}

TEST(Compact, doubled_request__is_executed_once) {
  CompactStage s;
  s.world.network.tamper.add(duplicate(1, microseconds(50), compact_request));
  const Wr& w = s.add();
  s.all_succeed({&w});
  EXPECT_EQ(s.count(s.b(), Counter::kCtpRxDuplicate), 1u);
}

TEST(Compact, late_request__does_not_overwrite_what_followed_it) {
  CompactStage s;
  s.world.network.tamper.add(delay(1, milliseconds(50), compact_request));
  const Wr& first = s.write(64);
  s.finish();
  RequestSpec there;
  there.offset = first.remote_offset;
  const Wr& second = s.write(64, there);
  s.world.run_until([] { return false; }, milliseconds(100));
  s.all_succeed({&first, &second});
  EXPECT_EQ(s.count(s.b(), Counter::kCtpRxDuplicate), 1u);
}

TEST(Compact, late_answer__fits_nothing) {
  CompactStage s;
  s.world.network.tamper.add(delay(1, milliseconds(50), compact_answer));
  const Wr& w = s.add();
  s.finish();
  s.world.run_until([] { return false; }, milliseconds(100));
  s.all_succeed({&w});
  EXPECT_EQ(s.count(s.a(), Counter::kTaRxStaleAnswer), 1u);
}

// The target remembers 64 results of a queue. What waits for its answer holds up those that are further ahead.
TEST(Compact, repeat_of_an_old_request__is_still_on_record) {
  CompactStage s;
  s.world.network.tamper.add(drop(2, compact_answer));
  std::vector<const Wr*> all{&s.add()};
  s.world.run_until([] { return false; }, microseconds(100));
  for (int i = 0; i < 12; ++i) all.push_back(&s.write(10'000));
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
  s.check_memory();
  EXPECT_EQ(s.count(s.b(), Counter::kCtpRxOld), 0u);
  EXPECT_GE(s.count(s.b(), Counter::kCtpRxRepeated), 1u);
}

TEST(Compact, partition__is_survived_by_repeating) {
  CompactStage s;
  const uint64_t before = s.count(s.a(), Counter::kCtpTx);
  s.world.network.cut(0, 1, true);
  const Wr &write = s.write(64), &read = s.read(64), &add = s.add();
  s.world.run_until([] { return false; }, seconds(1));
  s.world.network.cut(0, 1, false);
  s.all_succeed({&write, &read, &add});
  EXPECT_GE(s.count(s.a(), Counter::kCtpTx) - before, 3u * 8) << "4, 12, 28 ... 508 ms later, and again";
}

TEST(Compact, no_record_left__rtp_carries_all) {
  Options o = on_lossy_wire();
  o.core.compact_repeats = 0;
  CompactStage s(o);
  const Wr &write = s.write(64), &add = s.add();
  s.all_succeed({&write, &add});
  EXPECT_EQ(s.count(s.a(), Counter::kCtpTx), 0u);
}

// Three instances, and a record for one channel each.
TEST(Compact, one_record_for_two_peers__the_other_gets_rtp) {
  Options o = on_lossy_wire();
  o.core.compact_repeats = 1;
  Stage s(o, 3);
  for (int i = 0; i < 3; ++i) {
    const Wr& x = s.request(s.ends[0], s.ends[1], WrOp::kWrite, 64);
    const Wr& y = s.request(s.ends[0], s.ends[2], WrOp::kWrite, 64);
    s.finish();
    EXPECT_EQ(x.status, kSuccess);
    EXPECT_EQ(y.status, kSuccess);
  }
  s.check_memory();
  EXPECT_GT(s.count(s.a(), Counter::kCtpTx), 0u);
  EXPECT_GT(s.count(s.a(), Counter::kTpTxData), 0u);
}

// A queue of the dead channel looks for the next one at once.
TEST(Compact, one_record_and_a_peer_that_died__the_next_peer_gets_it) {
  Options o = on_lossy_wire();
  o.core.compact_repeats = 1;
  Stage s(o, 3);
  s.request(s.ends[0], s.ends[1], WrOp::kWrite, 64);
  s.finish();
  s.world.network.cut(0, 1, true);
  RequestSpec doomed, fenced;
  doomed.extra_allowed = bit(CrStatus::kAckTimeout);
  fenced.fence = true;
  const Wr& add = s.request(s.ends[0], s.ends[1], WrOp::kFetchAdd, 8, doomed);
  const Wr& next = s.request(s.ends[0], s.ends[2], WrOp::kWrite, 64, fenced);
  s.finish();
  EXPECT_EQ(add.status, CrStatus::kAckTimeout);
  EXPECT_EQ(next.status, kSuccess);
  uint64_t compact = 0;
  for (const ChannelInfo& c : s.channels(s.ends[2])) compact += c.compact;
  EXPECT_EQ(compact, 1u);
}

// The READ goes by RTP, and the strong WRITE behind it waits for its answer. Meanwhile other queues use the channel.
TEST(Compact, more_queues_than_places__what_waits_for_its_order_keeps_its_place) {
  CompactStage s;
  const auto another_queue = [&] {
    End e = s.a();
    e.queue = e.node->add_queue(*e.app, e.jfc, e.jfr, usual_queue());
    return e;
  };
  const End waiting = another_queue();
  RequestSpec relaxed, strong;
  relaxed.order = 1;
  strong.order = 2;
  TamperRule& answer = s.world.network.tamper.add(delay(1, milliseconds(1), from(1, is_data)));
  std::vector<const Wr*> all{&s.request(waiting, s.b(), WrOp::kRead, 16'384, relaxed),
                             &s.request(waiting, s.b(), WrOp::kWrite, 64, strong)};
  s.world.run_until([&] { return answer.hits != 0; }, milliseconds(10));
  ASSERT_EQ(all[1]->state, Wr::State::kOutstanding);
  const uint64_t rtp = s.count(s.a(), Counter::kTpTxData);
  for (uint32_t i = 0; i < ta::kRepeatQueues; ++i) {
    all.push_back(&s.request(another_queue(), s.b(), WrOp::kWrite, 64));
  }
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess);
  s.check_memory();
  EXPECT_EQ(s.count(s.a(), Counter::kTpTxData) - rtp, 2u) << "the last two queues have no place";
}

// ---- ROL -------------------------------------------------------------------------------------------------------

constexpr uint8_t kStrong = 2;

struct RolByCompact : Stage {
  explicit RolByCompact(bool answers) : Stage(options(answers)) {
    for (int i = 0; i < 2; ++i) queues.push_back(equip_rc(*ends[i].node));
    x().node->bind(x().queue, y().queue);
    y().node->bind(y().queue, x().queue);
    ask(x(), WrOp::kWrite, 8);
    finish();
    quiet();
  }
  static Options options(bool answers) {
    Options o = directed_options();
    o.compact = o.lossless = true;
    o.core.rol = 1;
    o.core.compact_answers = answers;
    return o;
  }
  End& x() { return queues[0]; }
  End& y() { return queues[1]; }
  const Wr& ask(const End& from, WrOp op, uint32_t length, uint8_t order = 0, RequestSpec s = {}) {
    s.order = order;
    s.alone = true;
    all.push_back(&request(from, &from == &x() ? y() : x(), op, length, s));
    return *all.back();
  }
  const Wr& unsignaled(uint8_t order = 0, Wrong wrong = Wrong::kNothing) {
    RequestSpec s;
    s.signaled = false;
    s.wrong = wrong;
    return ask(x(), WrOp::kWrite, 64, order, s);
  }
  void all_succeed() {
    finish();
    for (const Wr* w : all) EXPECT_EQ(w->status, kSuccess) << op_name(w->op);
    check_memory();
  }
  uint64_t rtp() { return count(a(), Counter::kTpTxData) + count(b(), Counter::kTpTxData); }

  std::vector<End> queues;
  std::vector<const Wr*> all;
};

TEST(CompactRol, strong_writes__leave_without_waiting_for_each_other) {
  for (const bool answers : {true, false}) {
    RolByCompact s(answers);
    const Instant start = s.world.now();
    for (int i = 0; i < 64; ++i) s.ask(s.x(), WrOp::kWrite, 64, kStrong);
    s.all_succeed();
    EXPECT_LT(s.seconds_since(start), 300e-6) << "64 round trips of 20 us would not be";
    EXPECT_EQ(s.rtp(), 0u);
  }
}

TEST(CompactRol, requests_of_all_kinds_both_ways__keep_their_order) {
  static constexpr WrOp kOps[] = {WrOp::kWrite, WrOp::kSend,  WrOp::kFetchAdd, WrOp::kWriteNotify,
                                  WrOp::kRead,  WrOp::kWrite, WrOp::kWrite,    WrOp::kWriteImm};
  for (const bool answers : {true, false}) {
    RolByCompact s(answers);
    for (uint32_t i = 0; i < 80; ++i) {
      const WrOp op = kOps[i % std::size(kOps)];
      const uint32_t length = op == WrOp::kFetchAdd ? 8 : i * 517 % 1000;
      RequestSpec spec;
      spec.signaled = i % 5 == 0;
      for (End* from : {&s.x(), &s.y()}) s.ask(*from, op, length, static_cast<uint8_t>(i % 3), spec);
      if (i % 7 == 0) s.world.run_for(microseconds(15));
      if (i % 3 != 0) continue;
      for (End* to : {&s.x(), &s.y()}) to->give_receives(2);
    }
    s.all_succeed();
    EXPECT_EQ(s.rtp(), 0u);
    EXPECT_EQ(s.count(s.a(), Counter::kCtpTxSilent) != 0, !answers);
  }
}

TEST(CompactRol, silent_writes__have_one_answer_for_sixteen_and_one_in_a_millisecond) {
  RolByCompact s(false);
  const uint64_t before = s.count(s.b(), Counter::kCtpTx);
  for (int i = 0; i < 160; ++i) {
    s.unsignaled();
    s.world.run_for(microseconds(30));
  }
  s.all_succeed();
  const uint64_t answers = s.count(s.b(), Counter::kCtpTx) - before;
  EXPECT_GE(answers, 160u / 16);
  EXPECT_LE(answers, 160u / 16 + 5);
}

TEST(CompactRol, a_silent_write_that_fails__is_the_only_one_that_does) {
  RolByCompact s(false);
  for (int i = 0; i < 5; ++i) s.unsignaled(kStrong);
  const Wr& fails = s.unsignaled(kStrong, Wrong::kToken);
  s.all.pop_back();
  for (int i = 0; i < 5; ++i) s.unsignaled(kStrong);
  s.all_succeed();
  EXPECT_EQ(fails.status, CrStatus::kRemAccessAbort);
}

TEST(CompactRol, the_last_silent_writes__end_soon) {
  RolByCompact s(false);
  for (int i = 0; i < 3; ++i) s.unsignaled();
  EXPECT_LT(s.finish(), 0.0015);
  s.all_succeed();
  EXPECT_EQ(s.count(s.a(), Counter::kCtpTxQuestion), 1u);
}

// Two channels have no order between them.
TEST(CompactRol, a_long_request__waits_until_silent_ones_are_known_to_have_ended) {
  RolByCompact s(false);
  s.unsignaled();
  s.ask(s.x(), WrOp::kWrite, 100'000, kStrong);
  s.unsignaled(kStrong);
  s.all_succeed();
  EXPECT_GT(s.rtp(), 0u);
}

TEST(CompactRol, a_peer_that_dies__ends_silent_requests_with_a_timeout) {
  RolByCompact s(false);
  s.world.network.tamper.add(drop(kAlways, from(1, is_any)));
  s.extra_allowed = UINT32_MAX;
  std::vector<const Wr*> lost;
  for (int i = 0; i < 10; ++i) lost.push_back(&s.unsignaled());
  s.finish();
  for (const Wr* w : lost) EXPECT_EQ(w->status, CrStatus::kAckTimeout);
  s.world.network.tamper.clear();
  s.extra_allowed = 0;
  s.all.clear();
  s.unsignaled(kStrong);
  s.all_succeed();
}

}  // namespace
}  // namespace ub::sim
