// SPDX-License-Identifier: Apache-2.0
//
// RESET of queues while requests are under way (8.2.2.3).
#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr CrStatus kSuccess = CrStatus::kSuccess;

// Two queues of one kind that know each other.
struct Pair {
  Stage s;
  End from, to;

  explicit Pair(Options o = directed_options()) : s(std::move(o)), from(s.a()), to(s.b()) {}
  Pair& rc(bool rot) {
    QueueSpec q = usual_queue();
    q.rot = rot;
    from = s.equip_rc(*s.a().node, q);
    to = s.equip_rc(*s.b().node, q);
    from.node->bind(from.queue, to.queue);
    to.node->bind(to.queue, from.queue);
    return *this;
  }
  Pair& kind(Mode mode, ObjectKind kind) {
    QueueSpec q = usual_queue();
    JfrSpec r = usual_jfr();
    q.mode = r.mode = mode;
    q.kind = kind;
    from = s.equip(*s.a().node, q, r);
    q.kind = ObjectKind::kJetty;
    to = s.equip(*s.b().node, q, r);
    return *this;
  }

  const Wr& post(WrOp op, uint32_t length, uint8_t order = 0) {
    RequestSpec spec;
    spec.order = order;
    return s.request(from, to, op, length, spec);
  }
  std::vector<const Wr*> post_some() {
    if (from.queue->mode == Mode::kUm) return {&post(WrOp::kSend, 100), &post(WrOp::kSend, 1000)};
    return {&post(WrOp::kWrite, 8, 2), &post(WrOp::kWrite, 200'000), &post(WrOp::kRead, 9000),
            &post(WrOp::kSend, 5000),  &post(WrOp::kFetchAdd, 8, 1), &post(WrOp::kWriteImm, 9000)};
  }

  void live_and_live_again() {
    to.give_receives(20, 8192);
    for (const Wr* w : post_some()) (void)w;
    s.finish();
    const std::vector<const Wr*> flushed = post_some();
    s.world.run_for(microseconds(12));
    from.node->reset(from.queue);
    const Wr& in_vain = post(WrOp::kSend, 100);
    EXPECT_LT(s.finish(), 0.001) << "it waits for no network";
    for (const Wr* w : flushed)
      EXPECT_TRUE(w->status == CrStatus::kWrFlush || from.queue->mode == Mode::kUm) << s.world.model.describe(*w);
    EXPECT_EQ(in_vain.status, CrStatus::kWrFlush);
    from.node->leave_reset(from.queue);
    const std::vector<const Wr*> again = post_some();
    s.finish();
    for (const Wr* w : again) EXPECT_EQ(w->status, kSuccess) << s.world.model.describe(*w);
    s.check_memory();
  }
};

TEST(Reset, under_way__all_ends_flushed_and_the_queue_lives_again) {
  Pair().kind(Mode::kRm, ObjectKind::kJetty).live_and_live_again();
  Pair().kind(Mode::kRm, ObjectKind::kJfs).live_and_live_again();
  Pair().kind(Mode::kUm, ObjectKind::kJetty).live_and_live_again();
  Options rol = directed_options();
  rol.core.rol = 1;
  Pair(rol).rc(false).live_and_live_again();
  Pair().rc(true).live_and_live_again();
}

TEST(Reset, without_room_in_the_jfc__it_lasts_until_all_was_told) {
  Stage s;
  End e = s.a();
  e.jfc = e.node->add_jfc(*e.app, 2);
  e.queue = e.node->add_queue(*e.app, e.jfc, s.a().jfr, usual_queue());
  s.world.options.work.poll_ns = 2'000'000;
  s.world.options.work.poll_batch = 1;
  s.warm_up();
  std::vector<const Wr*> all;
  for (int i = 0; i < 8; ++i) all.push_back(&s.request(e, s.b(), WrOp::kWrite, 3000));
  s.world.run_for(microseconds(5));
  e.node->reset(e.queue);
  e.node->leave_reset(e.queue);
  EXPECT_EQ(e.queue->state, Queue::State::kReset);
  EXPECT_TRUE(s.world.run_until([&] { return e.queue->state == Queue::State::kReady; }, seconds(1)));
  s.finish();
  for (const Wr* w : all) EXPECT_EQ(w->status, CrStatus::kWrFlush);
  s.check_memory();
}

TEST(Reset, of_a_receiver__messages_are_dropped_in_silence) {
  Stage s;
  s.warm_up();
  s.b().give_receives(4);
  for (bool jetty : {true, false}) {
    Jfr* jfr = s.b().jfr;
    jetty ? s.b().node->reset(s.b().queue) : s.b().node->reset(jfr);
    const Wr& lost = s.send(100);
    const Wr& w = s.write(3000);
    EXPECT_LE(s.finish(), 5.0);
    EXPECT_EQ(lost.status, CrStatus::kAckTimeout);
    EXPECT_EQ(w.status, kSuccess) << "memory is none of its business";
    jetty ? s.b().node->leave_reset(s.b().queue) : s.b().node->revive(jfr);
    const Wr& next = s.send(100);
    s.finish();
    EXPECT_EQ(next.status, kSuccess);
    s.quiet();
    EXPECT_FALSE(lost.received);
    EXPECT_TRUE(next.received);
  }
  s.check_memory();
}

TEST(Reset, behind_error__the_queue_lives_again) {
  Stage s;
  s.warm_up();
  for (int i = 0; i < 4; ++i) s.write(30'000);
  s.world.run_for(microseconds(12));
  s.a().node->flush(s.a().queue, true);
  EXPECT_TRUE(s.world.run_until([&] { return s.a().queue->state == Queue::State::kReady; }, seconds(1)));
  const Wr& next = s.write(30'000);
  s.finish();
  EXPECT_EQ(next.status, kSuccess);
  s.check_memory();
}

}  // namespace
}  // namespace ub::sim
