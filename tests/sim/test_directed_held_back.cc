// SPDX-License-Identifier: Apache-2.0
//
// Held back: who has something to send and must first hear from its peer. Whoever sleeps then is rung for every
// acknowledgement, so it has to be so for as long as that lasts, and no longer.
#include <vector>

#include "tests/sim/directed.h"

namespace ub::sim {
namespace {

constexpr CrStatus kSuccess = CrStatus::kSuccess;
constexpr uint32_t kManyBytes = 2 << 20;  // more than windows of all sizes

bool is_held_back(const End& e) { return e.node->core().is_held_back(); }

// Large messages have a channel of their own, which may have to be set up first.
bool comes_to_be_held_back(Stage& s, const End& e) {
  return s.world.run_until([&] { return is_held_back(e); }, seconds(1));
}
constexpr uint32_t kAnyStatus = UINT32_MAX;  // what is torn down may end in any way

End equip_rc(Stage& s, const End& on, uint8_t rnr_retry = 7) {
  QueueSpec q = usual_queue();
  q.mode = Mode::kRc;
  q.rnr_retry = rnr_retry;
  JfrSpec r = usual_jfr();
  r.mode = Mode::kRc;
  return s.equip(*on.node, q, r);
}

// Answers stay away from now on.
TamperRule& keep_answers(Stage& s) { return s.world.network.tamper.add(drop(kAlways, from(1, is_any))); }

void expect_free_at_the_end(Stage& s) {
  s.finish();
  s.quiet();
  for (const End& e : s.ends) EXPECT_FALSE(is_held_back(e));
}

TEST(HeldBack, nothing_posted__nobody_is) {
  Stage s;
  EXPECT_FALSE(is_held_back(s.a()));
  s.warm_up();
  EXPECT_FALSE(is_held_back(s.a()));
  EXPECT_FALSE(is_held_back(s.b()));
}

TEST(HeldBack, all_under_way__nobody_is) {
  Stage s;
  s.warm_up();
  const Wr& w = s.write(3000);
  EXPECT_EQ(w.state, Wr::State::kOutstanding);
  EXPECT_FALSE(is_held_back(s.a()));
  expect_free_at_the_end(s);
}

TEST(HeldBack, window_closed_within_a_message__until_the_rest_left) {
  Stage s;
  s.warm_up();
  const Wr& w = s.write(kManyBytes);
  EXPECT_TRUE(comes_to_be_held_back(s, s.a()));
  EXPECT_FALSE(is_held_back(s.b()));
  expect_free_at_the_end(s);
  EXPECT_EQ(w.status, kSuccess);
}

TEST(HeldBack, window_closed_between_messages__until_the_rest_left) {
  Stage s;
  s.warm_up();
  for (int i = 0; i < 500; ++i) s.write(4096);
  EXPECT_TRUE(is_held_back(s.a()));
  s.world.run_until([&] { return !is_held_back(s.a()); }, seconds(1));
  EXPECT_FALSE(s.world.all_resolved()) << "what is under way holds nobody back";
  expect_free_at_the_end(s);
}

TEST(HeldBack, window_of_the_answering_side_closed__it_is) {
  Stage s;
  s.warm_up();
  s.read(kManyBytes);
  EXPECT_TRUE(s.world.run_until([&] { return is_held_back(s.b()); }, seconds(1)));
  expect_free_at_the_end(s);
}

TEST(HeldBack, fenced_behind_a_read__until_it_is_answered) {
  for (bool fence : {false, true}) {
    Stage s;
    s.warm_up();
    s.read(1000);
    EXPECT_FALSE(is_held_back(s.a()));
    RequestSpec spec;
    spec.fence = fence;
    const Wr& w = s.write(8, spec);
    EXPECT_EQ(is_held_back(s.a()), fence);
    s.world.run_until([&] { return !is_held_back(s.a()); }, seconds(1));
    EXPECT_EQ(w.state, Wr::State::kOutstanding) << "it has just left";
    expect_free_at_the_end(s);
  }
}

TEST(HeldBack, fenced_behind_an_atomic__until_it_is_answered) {
  Stage s;
  s.warm_up();
  s.request(s.a(), s.b(), WrOp::kFetchAdd, 8);
  RequestSpec spec;
  spec.fence = true;
  s.write(8, spec);
  EXPECT_TRUE(is_held_back(s.a()));
  expect_free_at_the_end(s);
}

TEST(HeldBack, strong_order_behind_others__until_they_are_answered) {
  for (uint8_t order : {uint8_t{0}, uint8_t{1}, uint8_t{2}}) {
    Stage s;
    s.warm_up();
    RequestSpec relaxed, strong;
    relaxed.order = 1;
    strong.order = order;
    s.write(8, relaxed);
    EXPECT_FALSE(is_held_back(s.a()));
    s.write(8, strong);
    EXPECT_EQ(is_held_back(s.a()), order == 2);
    expect_free_at_the_end(s);
  }
}

TEST(HeldBack, many_in_strong_order_of_rc__all_the_time) {
  Stage s;
  End x = equip_rc(s, s.a()), y = equip_rc(s, s.b());
  x.node->bind(x.queue, y.queue);
  y.node->bind(y.queue, x.queue);
  s.request(x, y, WrOp::kWrite, 8);
  s.finish();
  RequestSpec strong;
  strong.order = 2;
  std::vector<const Wr*> all;
  for (int i = 0; i < 5; ++i) all.push_back(&s.request(x, y, WrOp::kWrite, 8, strong));
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_TRUE(is_held_back(x)) << i;
    s.world.run_until([&] { return all[i - 1]->state != Wr::State::kOutstanding; }, seconds(1));
  }
  EXPECT_FALSE(is_held_back(x)) << "the last one is under way";
  expect_free_at_the_end(s);
}

TEST(HeldBack, refused_message__nobody_is) {
  for (bool rc : {false, true}) {
    Stage s;
    End x = s.a(), y = s.b();
    if (rc) {
      x = equip_rc(s, s.a()), y = equip_rc(s, s.b());
      x.node->bind(x.queue, y.queue);
      y.node->bind(y.queue, x.queue);
    }
    s.request(x, y, WrOp::kWrite, 8);
    s.finish();
    const Wr& w = s.request(x, y, WrOp::kSend, 100);
    EXPECT_FALSE(s.world.run_until([&] { return is_held_back(x); }, milliseconds(100)));
    EXPECT_GE(s.count(y, Counter::kTaTxRnr), 2u);
    y.give_receives(1);
    expect_free_at_the_end(s);
    EXPECT_EQ(w.status, kSuccess);
  }
}

// What has to come after a refused message waits for an answer only while the message is under way.
TEST(HeldBack, strong_request_behind_a_refused_message__while_that_is_under_way) {
  Stage s;
  s.warm_up();
  RequestSpec relaxed, strong;
  relaxed.order = 1;
  strong.order = 2;
  s.request(s.a(), s.b(), WrOp::kSend, 100, relaxed);
  s.request(s.a(), s.b(), WrOp::kWrite, 8, strong);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(comes_to_be_held_back(s, s.a()));
    EXPECT_TRUE(s.world.run_until([&] { return !is_held_back(s.a()); }, milliseconds(1))) << "refused";
  }
  s.b().give_receives(1);
  expect_free_at_the_end(s);
}

TEST(HeldBack, write_under_way_beside_a_refused_message__counts) {
  Stage s;
  s.warm_up();
  RequestSpec in_order;
  in_order.comp_order = true;
  s.request(s.a(), s.b(), WrOp::kSend, 100);
  s.world.run_until([&] { return s.count(s.b(), Counter::kTaTxRnr) != 0; }, seconds(1));
  s.write(100);
  s.request(s.a(), s.b(), WrOp::kSend, 100, in_order);
  EXPECT_TRUE(is_held_back(s.a())) << "the WRITE is under way";
  s.b().give_receives(2);
  expect_free_at_the_end(s);
}

TEST(HeldBack, refused_until_no_retry_is_left__nobody_is) {
  Stage s;
  s.warm_up();
  QueueSpec q = usual_queue();
  q.rnr_retry = 2;
  End e = s.equip(*s.a().node, q);
  const Wr& w = s.request(e, s.b(), WrOp::kSend, 100);
  s.request(e, s.b(), WrOp::kWrite, 8);
  EXPECT_FALSE(is_held_back(e));
  expect_free_at_the_end(s);
  EXPECT_EQ(w.status, CrStatus::kRnrRetryExceeded);
}

// 64 segments of a request may be under way.
TEST(HeldBack, more_segments_than_may_be_under_way__until_the_last_left) {
  Stage s;
  s.warm_up();
  const QueueSpec q = usual_queue();
  const JfrSpec r = usual_jfr();
  End x = s.equip(*s.a().node, q, r, 8 << 20), y = s.equip(*s.b().node, q, r, 8 << 20);
  const Wr& w = s.request(x, y, WrOp::kRead, 65 * 65536);  // its requests alone fit into a window
  EXPECT_TRUE(comes_to_be_held_back(s, x));
  expect_free_at_the_end(s);
  EXPECT_EQ(w.status, kSuccess);
}

TEST(HeldBack, write_with_immediate__its_last_segment_waits_for_the_others) {
  Stage s;
  s.warm_up();
  s.b().give_receives(1);
  s.request(s.a(), s.b(), WrOp::kWriteImm, 2 * 65536);
  EXPECT_TRUE(comes_to_be_held_back(s, s.a()));
  expect_free_at_the_end(s);
}

TEST(HeldBack, channel_dies__no_longer) {
  for (bool by_window : {false, true}) {
    Stage s;
    s.warm_up();
    s.extra_allowed = kAnyStatus;
    s.write(65536);  // both channels stand
    s.finish();
    s.world.network.cut(0, 1, true);
    RequestSpec fenced;
    fenced.fence = true;
    if (by_window) {
      for (int i = 0; i < 500; ++i) s.write(4096);
    } else {
      s.read(8);
      s.write(8, fenced);
    }
    EXPECT_TRUE(is_held_back(s.a()));
    expect_free_at_the_end(s);
    s.world.network.cut(0, 1, false);
    s.world.run_for(seconds(30));
    End x = s.equip(*s.a().node), y = s.equip(*s.b().node);
    s.request(x, y, WrOp::kWrite, kManyBytes);
    EXPECT_TRUE(comes_to_be_held_back(s, x)) << "the next channel";
    expect_free_at_the_end(s);
  }
}

TEST(HeldBack, jetty_destroyed__no_longer) {
  for (bool by_window : {false, true}) {
    Stage s;
    s.warm_up();
    End e = s.equip(*s.a().node);
    s.request(e, s.b(), WrOp::kWrite, 65536);  // both channels stand
    s.finish();
    const TamperRule& kept = keep_answers(s);
    s.extra_allowed = kAnyStatus;
    if (by_window) {
      s.request(e, s.b(), WrOp::kWrite, kManyBytes);
    } else {
      RequestSpec fenced;
      fenced.fence = true;
      s.request(e, s.b(), WrOp::kRead, 8);
      s.request(e, s.b(), WrOp::kWrite, 8, fenced);
    }
    EXPECT_TRUE(comes_to_be_held_back(s, e));
    s.world.run_for(microseconds(50));
    e.node->destroy(e.queue);
    if (!by_window) {
      EXPECT_FALSE(is_held_back(e));  // the channel has nothing left
    }
    EXPECT_GT(kept.hits, 0u);
    s.world.network.tamper.clear();
    expect_free_at_the_end(s);
  }
}

TEST(HeldBack, destroyed_behind_a_refused_message__no_longer) {
  Stage s;
  s.warm_up();
  End e = s.equip(*s.a().node);
  s.extra_allowed = kAnyStatus;
  RequestSpec relaxed, strong;
  relaxed.order = 1;
  strong.order = 2;
  s.request(e, s.b(), WrOp::kSend, 100, relaxed);
  s.request(e, s.b(), WrOp::kWrite, 8, strong);
  EXPECT_TRUE(comes_to_be_held_back(s, e));
  e.node->destroy(e.queue);
  EXPECT_FALSE(is_held_back(e));
  expect_free_at_the_end(s);
}

TEST(HeldBack, reset_in_the_middle__no_longer) {
  Stage s;
  s.warm_up();
  s.extra_allowed = kAnyStatus;
  RequestSpec fenced;
  fenced.fence = true;
  s.read(8);
  s.write(8, fenced);
  EXPECT_TRUE(is_held_back(s.a()));
  SimCore& core = s.a().node->core();
  EXPECT_EQ(core.set_state(s.world.now(), s.a().queue->id, QueueState::kReset), Status::kOk);
  EXPECT_FALSE(is_held_back(s.a())) << "it starts nothing, whatever is answered";
  s.world.run_for(milliseconds(1));
  EXPECT_EQ(core.set_state(s.world.now(), s.a().queue->id, QueueState::kReady), Status::kOk);
  s.a().node->drive();
  expect_free_at_the_end(s);
}

TEST(HeldBack, flushed__no_longer_and_the_next_user_of_the_record_begins_anew) {
  Stage s;
  s.warm_up();
  for (int round = 0; round < 3; ++round) {
    End e = s.equip(*s.a().node);
    s.request(e, s.b(), WrOp::kWrite, 8);
    s.finish();
    RequestSpec fenced;
    fenced.fence = true;
    s.request(e, s.b(), WrOp::kRead, 8);
    EXPECT_FALSE(is_held_back(e));
    s.request(e, s.b(), WrOp::kWrite, 8, fenced);
    EXPECT_TRUE(is_held_back(e));
    e.node->flush(e.queue);
    EXPECT_FALSE(is_held_back(e));
    expect_free_at_the_end(s);
    EXPECT_EQ(e.queue->state, Queue::State::kGone);
  }
}

}  // namespace
}  // namespace ub::sim
