// SPDX-License-Identifier: Apache-2.0
//
// Applications that share a Core: one whose memory does not answer, as source, as destination, on either side, holds up
// its own requests and those of who asks for that memory. Nobody else waits, and nothing is left of it when it is gone.
#include "tests/sim/directed_raw.h"

namespace ub::sim {
namespace {

constexpr Duration kSoon = milliseconds(2);  // far more than a request takes, far less than the patience with the mute

struct Shared : Stage {
  explicit Shared(Options o = directed_options()) : Stage(o), x(*this, *a().node, 0), y(*this, *b().node, 0) {
    target = x.import(y);
    EXPECT_EQ(x.outcome(x.element(WrOp::kWrite, 100, target, y.region)), kSuccess);
    warm_up();
  }
  static Options ring() {  // a wire that keeps all and loses nothing
    Options o = directed_options();
    o.lossless = o.icrc_optional = true;
    return o;
  }

  // What the honest application does is done soon.
  void others_do_not_wait() {
    b().give_receives(1);
    const Instant begin = world.now();
    write(100);
    write(30'000);
    read(30'000);
    send(1000);
    finish();
    EXPECT_LT(world.now() - begin, kSoon);
    EXPECT_GT(a().node->copies_pending() + b().node->copies_pending(), 0u);  // it happened while something was undone
  }
  uint32_t living_channels(const End& end) { return static_cast<uint32_t>(channels(end).size()); }

  Raw x, y;
  uint32_t target = 0;
};

TEST(Isolation, mute_source_of_a_write__holds_up_nobody_else) {
  Shared s(Shared::ring());
  s.x.region->mute = true;
  Wqe e = s.x.element(WrOp::kWrite, 3000, s.target, s.y.region);
  s.x.post(e);
  s.world.run_for(microseconds(100));
  s.others_do_not_wait();
  s.world.run_for(seconds(1));
  EXPECT_EQ(s.x.status(e.user_ctx), kSuccess);  // late, but it came
  s.check_memory();
}

TEST(Isolation, mute_source_of_a_read__holds_up_nobody_else) {
  Shared s(Shared::ring());
  s.y.region->mute = true;
  Wqe e = s.x.element(WrOp::kRead, 3000, s.target, s.y.region);
  s.x.post(e);
  s.world.run_for(microseconds(100));
  s.others_do_not_wait();
  s.world.run_for(seconds(2));
  EXPECT_EQ(s.x.status(e.user_ctx), kSuccess);
  s.check_memory();
}

TEST(Isolation, mute_destination__holds_up_nobody_else) {
  for (WrOp op : {WrOp::kWrite, WrOp::kFetchAdd, WrOp::kRead}) {
    Shared s(Shared::ring());
    (op == WrOp::kRead ? s.x : s.y).region->mute = true;
    Wqe e = s.x.element(op, 8, s.target, s.y.region);
    s.x.post(e);
    s.world.run_for(microseconds(100));
    s.others_do_not_wait();
    s.world.run_for(seconds(1));
    EXPECT_EQ(s.x.status(e.user_ctx), kSuccess);
    s.check_memory();
  }
}

// Bytes for a jetty that is gone are still on their way: nobody else gets the receive until they are there.
TEST(Pending, receive_of_a_destroyed_jetty__is_not_used_before_its_copies_are_done) {
  Options o = directed_options();
  o.host.pending_ns = 5'000'000;
  Stage s(o);
  End other = s.b();
  other.queue = s.b().node->add_queue(*s.b().app, s.b().jfc, s.b().jfr, usual_queue());
  s.warm_up();
  s.b().give_receives(1);
  s.world.options.host.pending = 1;
  RequestSpec spec;
  spec.extra_allowed = bit(CrStatus::kRemAccessAbort) | bit(CrStatus::kRemOperation);
  const Wr& lost = s.request(s.a(), s.b(), WrOp::kSend, 1000, spec);
  const CoreState& state = s.b().node->core().state();
  const auto receives = [](const tp::OpenMessage& m) { return m.receive != 0 && m.copies != 0; };
  auto arriving = [&] {
    for (uint32_t c = 1; c <= state.channels.high_water(); ++c)
      if (receives(state.channels[c].open)) return true;
    for (uint32_t m = 1; m <= state.parked.high_water(); ++m)
      if (receives(state.parked[m])) return true;
    return false;
  };
  ASSERT_TRUE(s.world.run_until(arriving, seconds(1)));
  s.world.options.host.pending = 0;
  s.b().node->destroy(s.b().queue);
  const Wr& next = s.request(s.equip(*s.a().node), other, WrOp::kSend, 10);  // on a channel of its own
  s.finish();
  EXPECT_NE(lost.status, kSuccess);
  EXPECT_EQ(next.status, kSuccess);
  s.check_memory();
}

// What waits behind a mute destination is kept, and takes no more of the pool than it leaves.
TEST(Isolation, what_is_kept_for_the_mute__leaves_room_for_the_rest) {
  Options o = Shared::ring();
  o.core.kept_packets = 64;
  o.core.kept_small_packets = 0;
  Shared s(o);
  s.y.region->mute = true;
  for (int i = 0; i < 8; ++i) s.x.post(s.x.element(WrOp::kWrite, 60'000, s.target, s.y.region));
  s.world.run_for(milliseconds(5));
  const CoreState& state = s.b().node->core().state();
  EXPECT_GT(state.kept.in_use(), 0u);
  EXPECT_LE(state.kept.in_use(), 32u);
  s.others_do_not_wait();
}

TEST(Isolation, reads_of_the_mute__leave_jobs_for_the_rest) {
  Options o = Shared::ring();
  o.core.read_jobs = 16;
  Shared s(o);
  s.y.region->mute = true;
  for (int i = 0; i < 12; ++i) s.x.post(s.x.element(WrOp::kRead, 8, s.target, s.y.region));
  s.world.run_for(milliseconds(5));
  EXPECT_EQ(s.b().node->core().state().jobs.in_use(), 8u);
  s.others_do_not_wait();
}

// Its channels end on both sides; whoever gets its number next has his own.
TEST(Isolation, when_its_owner_is_gone__nothing_is_left_of_a_channel) {
  Shared s;
  const uint32_t here = s.living_channels(s.a()), there = s.living_channels(s.b());
  s.x.region->mute = true;
  s.x.post(s.x.element(WrOp::kWrite, 3000, s.target, s.y.region));
  s.world.run_for(microseconds(100));
  s.x.core().close_owner(s.world.now(), s.x.owner());
  s.a().node->ring(s.a().queue);  // somebody drives
  s.world.run_for(milliseconds(100));
  EXPECT_LT(s.living_channels(s.a()), here);
  EXPECT_LT(s.living_channels(s.b()), there);
  s.others_do_not_wait();
  s.x.region->mute = false;
  Raw z(s, *s.a().node, 0);  // the same owner
  EXPECT_EQ(z.outcome(z.element(WrOp::kWrite, 100, z.import(s.y), s.y.region)), kSuccess);
}

// Channels made and left take none away from others, though their numbers rest.
TEST(Isolation, resting_channels__are_used_when_there_are_no_others) {
  Shared s;
  const uint32_t table = s.a().node->config().max_channels;
  for (uint32_t i = 0; i < 2 * table; ++i) {
    uint32_t target = s.x.import(s.y);
    s.x.core().close_owner(s.world.now(), s.x.owner());
    ASSERT_EQ(s.x.core().remove_target(target), Status::kOk);
  }
  Raw z(s, *s.a().node, 3), w(s, *s.b().node, 3);
  EXPECT_EQ(z.outcome(z.element(WrOp::kWrite, 100, z.import(w), w.region)), kSuccess);
  EXPECT_EQ(s.a().node->core().channel_table_size(), table);
}

}  // namespace
}  // namespace ub::sim
