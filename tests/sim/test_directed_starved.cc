// SPDX-License-Identifier: Apache-2.0
//
// Applications that get no CPU for longer than a channel lives without progress, and whose memory only they can reach:
// requests with time enough are done when they run again. A peer that goes on acknowledging is not a silent one, and
// time that this side waits for memory of its own is not the peer's silence. Nor is time in which nobody drove this
// side.
#include <algorithm>

#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr CrStatus kSuccess = CrStatus::kSuccess;
constexpr Duration kStarved = seconds(8);
constexpr uint32_t kLong = 600'000;  // more packets than may be pending, kept, and in a window

// The two of the stage, with requests that have 34 s.
struct Patient : Stage {
  explicit Patient(Options o) : Stage(o) {
    QueueSpec q = usual_queue();
    q.err_timeout = 20;
    for (End& end : ends) end.queue = end.node->add_queue(*end.app, end.jfc, end.jfr, q);
    warm_up();
  }
  // Memory of this application takes and gives nothing from now on.
  void starve(const End& end) {
    for (Region* r : {end.app->local, end.app->inbox, end.target}) r->starved_until = world.now() + kStarved;
  }
  void all_succeed_after_it() {
    const double took = finish(seconds(100));
    EXPECT_GE(took, 7.9);
    for (const Wr* w : wanted) EXPECT_EQ(w->status, kSuccess) << op_name(w->op);
    for (const End& end : ends) EXPECT_EQ(count(end, Counter::kTpChannelDead), 0u);
    check_memory();
  }

  std::vector<const Wr*> wanted;
};

// A wire that keeps all and loses nothing, and one that loses; keep-alives come during the wait.
std::vector<Options> wires() {
  Options ring = directed_options(), lossy = directed_options();
  ring.lossless = ring.icrc_optional = true;
  lossy.net.loss = 0.02;
  for (Options* o : {&ring, &lossy}) {
    o->core.kept_packets = 64;
    o->core.kept_small_packets = 0;
    o->core.keepalive_ns = 1'000'000'000;
  }
  return {ring, lossy};
}

void one_is_starved(WrOp op, bool initiator, uint32_t length) {
  for (const Options& wire : wires()) {
    SCOPED_TRACE(std::string(op_name(op)) + (initiator ? ", initiator" : ", target") +
                 (wire.lossless ? "" : ", losses"));
    Patient s(wire);
    s.b().give_receives(4);
    s.starve(initiator ? s.a() : s.b());
    for (int i = 0; i < 3; ++i) s.wanted.push_back(&s.request(s.a(), s.b(), op, length));
    s.all_succeed_after_it();
  }
}

TEST(Starved, destination_of_a_write__is_waited_for) { one_is_starved(WrOp::kWrite, false, kLong); }
TEST(Starved, source_of_a_write__is_waited_for) { one_is_starved(WrOp::kWrite, true, kLong); }
TEST(Starved, source_of_a_read__is_waited_for) { one_is_starved(WrOp::kRead, false, kLong); }
TEST(Starved, destination_of_a_read__is_waited_for) { one_is_starved(WrOp::kRead, true, kLong); }
TEST(Starved, destination_of_a_send__is_waited_for) { one_is_starved(WrOp::kSend, false, 4000); }
TEST(Starved, source_of_a_send__is_waited_for) { one_is_starved(WrOp::kSend, true, 4000); }
TEST(Starved, word_of_an_atomic__is_waited_for) { one_is_starved(WrOp::kFetchAdd, false, 8); }
TEST(Starved, result_of_an_atomic__is_waited_for) { one_is_starved(WrOp::kFetchAdd, true, 8); }

// What was under way is lost, and cannot go again before the memory of the packet behind it has answered.
TEST(Starved, source_behind_a_loss__is_not_the_silence_of_the_peer) {
  for (bool read : {false, true}) {
    Options o = directed_options();
    o.core.keepalive_ns = 1'000'000'000;
    Patient s(o);
    const uint32_t sender = read ? 1 : 0;
    uint32_t lost = 0;
    s.world.network.tamper.add(drop(4, [&](const PacketInfo& p) {
      if (p.from != sender || !p.data() || p.taack()) return false;
      if (++lost == 4) s.starve(s.ends[sender]);
      return true;
    }));
    s.wanted.push_back(&(read ? s.read(kLong) : s.write(kLong)));
    s.all_succeed_after_it();
  }
}

// With the only place taken by the other lane, not even the packet that waits itself can be kept.
TEST(Starved, destination_of_a_read_without_a_place_to_keep_it__is_waited_for) {
  for (Options wire : wires()) {
    wire.core.kept_packets = 1;
    wire.core.kept_small_packets = 0;
    Patient s(wire);
    s.starve(s.a());
    s.wanted.push_back(&s.read(kLong));
    s.world.run_for(milliseconds(20));
    s.wanted.push_back(&s.read(64));
    s.all_succeed_after_it();
  }
}

// Both ways at once: what one side cannot take holds up what it asked for itself.
TEST(Starved, both_sides__are_waited_for) {
  for (const Options& wire : wires()) {
    Patient s(wire);
    for (const End& end : s.ends) s.starve(end);
    for (WrOp op : {WrOp::kWrite, WrOp::kRead}) {
      s.wanted.push_back(&s.request(s.a(), s.b(), op, kLong));
      s.wanted.push_back(&s.request(s.b(), s.a(), op, kLong));
    }
    s.all_succeed_after_it();
  }
}

// A peer that is gone does not become alive by slow memory on this side.
TEST(Starved, source_of_a_write_to_the_dead__ends_at_its_deadline) {
  Patient s(directed_options());
  s.extra_allowed = bit(CrStatus::kAckTimeout);
  s.world.network.tamper.add(drop(UINT32_MAX, is_any));
  s.starve(s.a());
  const Instant begin = s.world.now();
  const Wr& w = s.write(kLong);
  s.finish(seconds(100));
  EXPECT_EQ(w.status, CrStatus::kAckTimeout);
  EXPECT_LT(s.seconds_since(begin), 34.0 + 9.0);
  s.world.run_for(seconds(10));
  EXPECT_EQ(s.count(s.a(), Counter::kTpChannelDead), s.count(s.a(), Counter::kTpChannelUp));
}

// ---- drivers that get no CPU -----------------------------------------------------------------------------------

// Requests of the usual 4.3 s.
struct Held : Stage {
  explicit Held(const Options& o) : Stage(o) { warm_up(); }
  void ask(uint32_t length) {
    b().give_receives(8);
    for (WrOp op : {WrOp::kWrite, WrOp::kRead, WrOp::kSend, WrOp::kFetchAdd}) {
      const uint32_t bytes = op == WrOp::kFetchAdd ? 8 : op == WrOp::kSend ? std::min(length, 4000u) : length;
      for (int i = 0; i < 2; ++i) wanted.push_back(&request(a(), b(), op, bytes));
    }
  }
  void hold(Duration d) {
    for (const End& end : ends) end.node->hold(d);
  }
  void all_succeed() {
    finish(seconds(100));
    for (const Wr* w : wanted) EXPECT_EQ(w->status, kSuccess) << op_name(w->op);
  }

  std::vector<const Wr*> wanted;
};

TEST(Held, both_drivers__lose_nothing) {
  for (const Options& wire : wires()) {
    for (int64_t moment : {1, 15, 40, 80}) {  // us, all before the end
      SCOPED_TRACE(moment);
      Held s(wire);
      s.ask(kLong);
      s.world.run_for(microseconds(moment));
      s.hold(kStarved);
      s.all_succeed();
      for (const End& end : s.ends) EXPECT_EQ(s.count(end, Counter::kTpChannelDead), 0u);
      EXPECT_GT(s.count(s.a(), Counter::kAwayUs), 3'000'000u);
      s.check_memory();
    }
  }
}

// All acknowledged, and nothing due before the requests themselves: memory of the peer answers while we are held.
TEST(Held, driver_whose_next_deadline_is_that_of_the_request__looks_first) {
  for (WrOp op : {WrOp::kWrite, WrOp::kRead, WrOp::kFetchAdd}) {
    Held s(directed_options());
    s.b().target->starved_until = s.world.now() + seconds(1);
    s.wanted.push_back(&s.request(s.a(), s.b(), op, 8));
    s.world.run_for(milliseconds(10));
    s.hold(kStarved);
    s.all_succeed();
    s.check_memory();
  }
}

// Answers came while it was away. The peer saw its silence, and is right.
TEST(Held, initiator__takes_the_answers_that_are_there) {
  Held s(directed_options());
  s.ask(64);
  s.world.run_for(microseconds(1));
  s.a().node->hold(kStarved);
  s.all_succeed();
}

TEST(Held, target__is_silent) {
  Held s(directed_options());
  s.extra_allowed = bit(CrStatus::kAckTimeout);
  s.b().node->hold(kStarved);
  const Wr& w = s.write(64);
  EXPECT_LT(s.finish(), 5.0);
  EXPECT_EQ(w.status, CrStatus::kAckTimeout);
  EXPECT_EQ(s.count(s.a(), Counter::kAwayUs), 0u);
}

// Never more than one turn in so long.
void hold_again_and_again(Held& s, Duration pause, Instant end) {
  s.hold(pause);
  if (s.world.now() >= end) return;
  s.world.after(pause + microseconds(1), [&s, pause, end] { hold_again_and_again(s, pause, end); });
}

TEST(Held, both_drivers_again_and_again__lose_nothing) {
  Held s(directed_options());
  s.ask(64);
  hold_again_and_again(s, seconds(2), s.world.now() + seconds(60));
  s.all_succeed();
  s.check_memory();
}

TEST(Held, driver_again_and_again__still_finds_its_peer_dead) {
  Held s(directed_options());
  s.extra_allowed = bit(CrStatus::kAckTimeout);
  s.world.network.tamper.add(drop(UINT32_MAX, is_any));
  const Wr& w = s.write(64);
  hold_again_and_again(s, milliseconds(400), s.world.now() + seconds(100));
  EXPECT_LT(s.finish(seconds(100)), 60.0);
  EXPECT_EQ(w.status, CrStatus::kAckTimeout);
}

}  // namespace
}  // namespace ub::sim
