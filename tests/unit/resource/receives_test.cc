// SPDX-License-Identifier: Apache-2.0
//
// Receives: taken for a message together with a place in the JFC, given back where the message vanished, flushed where
// the JFR failed. The application may write its ring at any time, and gets nothing that it did not post.
#include "lib/transport/wire/response_status.h"
#include "tests/unit/resource/objects.h"
#include "tests/unit/transport/test_host.h"

namespace ub {
namespace {

struct Receives : Objects {
  explicit Receives(uint32_t depth = 16, uint32_t slots = 32) {
    the_jfc().depth = depth;
    ReceiveRing& ring = receive_rings.emplace_back();
    ring.slots.resize(slots);
    id = make(jfr_config(&ring));
    record = s->ids[id].record;
  }
  QueueIndices& indices() { return receive_rings[0].indices; }
  Jfr& it() { return s->jfrs[record]; }
  uint32_t first_returned() { return it().returned.front<&RxReceive::on_list>(s->receives); }
  Rqe& slot(uint32_t at) { return receive_rings[0].slots[at % receive_rings[0].slots.size()]; }
  Rqe& post(uint8_t slots = 1) {
    const uint32_t at = indices().produced.load();
    Rqe& r = slot(at);
    r = {};
    r.user_ctx = 100 + posted++;
    r.length = 10;
    r.slots = slots;
    indices().produced.store(at + slots);
    return r;
  }
  Rqe& skip(uint8_t slots = 1) {
    Rqe& r = post(slots);
    r.skip = 1;
    return r;
  }
  uint32_t take() { return take_receive(*s, record, jfc); }
  uint64_t take_ctx() {
    const uint32_t receive = take();
    return receive == 0 ? 0 : s->receives[receive].user_ctx;
  }
  // A channel whose open message has a receive.
  uint32_t channel_with(uint32_t receive) {
    const uint32_t channel = s->channels.alloc();
    s->channels[channel] = tp::Channel{};
    s->channels[channel].open.receive = receive;
    return channel;
  }

  uint32_t id = 0, record = 0;
  uint64_t posted = 0;
};

// ---- taking ----------------------------------------------------------------------------------------------------

TEST(TakeReceive, gets_the_oldest_one_and_a_place_in_the_jfc) {
  Receives r;
  r.post().length = 33;
  r.post();
  const uint32_t receive = r.take();
  ASSERT_NE(receive, 0u);
  const RxReceive& taken = r.s->receives[receive];
  EXPECT_EQ(taken.user_ctx, 100u);
  EXPECT_EQ(taken.length, 33u);
  EXPECT_EQ(taken.jfr, r.record);
  EXPECT_EQ(taken.jfc, r.jfc);
  EXPECT_EQ(taken.jetty, 0u);
  EXPECT_EQ(taken.filled, 0u);
  EXPECT_TRUE(taken.counted);
  EXPECT_FALSE(taken.returns);
  EXPECT_EQ(r.the_jfc().reserved, 1u);
  EXPECT_EQ(r.indices().consumed.load(), 1u);
  EXPECT_EQ(r.indices().retired.load(), 1u);
  EXPECT_EQ(r.take_ctx(), 101u);
  EXPECT_EQ(r.indices().retired.load(), 2u);
  EXPECT_EQ(r.take(), 0u) << "no more were posted";
}

TEST(TakeReceive, without_a_place_in_the_jfc_takes_none) {
  Receives r(1);
  r.post();
  r.post();
  EXPECT_NE(r.take(), 0u);
  EXPECT_EQ(r.take(), 0u);
  EXPECT_EQ(r.indices().consumed.load(), 1u);
}

TEST(TakeReceive, copies_all_ranges_of_the_longest_element) {
  Receives r;
  Rqe& e = r.post(5);
  e.sge_count = kMaxSges;
  for (uint32_t i = 0; i < kMaxSges; ++i) const_cast<Sge&>(sge_of(e, i)) = {1000 + i, i, i};
  const uint32_t receive = r.take();
  ASSERT_NE(receive, 0u);
  EXPECT_EQ(r.s->receives[receive].sge_count, kMaxSges);
  for (uint32_t i = 0; i < kMaxSges; ++i) EXPECT_EQ(r.s->receives[receive].sges[i].address, 1000 + i);
  EXPECT_EQ(r.indices().consumed.load(), 5u);
}

TEST(TakeReceive, an_element_that_cannot_be_is_not_taken) {
  const auto taken = [](void (*change)(Rqe&), uint8_t slots = 1) {
    Receives r;
    change(r.post(slots));
    return r.take() != 0;
  };
  EXPECT_TRUE(taken([](Rqe&) {}));
  EXPECT_FALSE(taken([](Rqe& e) { e.slots = 0; }));
  EXPECT_FALSE(taken([](Rqe& e) { e.slots = 2; })) << "beyond what was posted";
  EXPECT_TRUE(taken([](Rqe& e) { e.sge_count = 3; }));
  EXPECT_FALSE(taken([](Rqe& e) { e.sge_count = 4; })) << "the fourth range lies in a second slot";
  EXPECT_TRUE(taken([](Rqe& e) { e.sge_count = 4; }, 2));
  EXPECT_FALSE(taken([](Rqe& e) { e.sge_count = kMaxSges + 1; }, 8));
}

TEST(TakeReceive, an_element_over_the_end_of_the_ring_is_not_taken) {
  for (uint32_t before_end : {2u, 1u}) {
    Receives r;
    r.it().consumed = 32 - before_end;
    r.indices().produced.store(r.it().consumed);
    r.post(2);
    r.post(1);
    EXPECT_EQ(r.take() != 0, before_end == 2);
  }
}

TEST(TakeReceive, an_element_longer_than_what_was_posted_is_not_taken) {
  Receives r;
  for (int i = 0; i < 2; ++i) r.post();
  for (int i = 0; i < 2; ++i) ASSERT_NE(r.take(), 0u);
  r.post().slots = 2;
  EXPECT_EQ(r.take(), 0u);
}

TEST(TakeReceive, the_ranges_of_the_longest_element_end_with_it) {
  Receives r;
  r.post();
  r.post().user_ctx = 0x1234;
  const uint32_t first = r.take(), second = r.take();
  ASSERT_EQ(second, first + 1);
  release_receive(*r.s, first);
  r.post(static_cast<uint8_t>(rqe_slots(kMaxSges))).sge_count = kMaxSges;
  ASSERT_EQ(r.take(), first);
  EXPECT_EQ(r.s->receives[second].user_ctx, 0x1234u) << "of the record behind it";
}

TEST(TakeReceive, an_index_that_cannot_be_is_not_believed) {
  Receives r;
  r.post();
  for (uint32_t index : {33u, UINT32_MAX}) {
    r.indices().produced.store(index);
    EXPECT_EQ(r.take(), 0u) << index;
  }
  r.indices().produced.store(32);
  EXPECT_NE(r.take(), 0u) << "a full ring can be";
}

TEST(TakeReceive, a_filler_is_passed_and_its_room_is_free) {
  Receives r;
  r.skip(3);
  r.post();
  EXPECT_EQ(r.take_ctx(), 101u);
  EXPECT_EQ(r.indices().consumed.load(), 4u);
  EXPECT_EQ(r.indices().retired.load(), 1u) << "a filler is no receive";
  r.skip();
  EXPECT_EQ(r.take(), 0u);
  EXPECT_EQ(r.indices().consumed.load(), 5u);
}

TEST(TakeReceive, no_more_than_one_filler_is_passed_at_one_time) {
  Receives r;
  r.skip();
  r.skip();
  r.post();
  EXPECT_EQ(r.take(), 0u);
  EXPECT_EQ(r.take_ctx(), 102u);
}

TEST(TakeReceive, behind_a_filler_an_element_that_cannot_be_is_not_taken) {
  Receives r;
  r.skip();
  r.post().slots = 0;
  EXPECT_EQ(r.take(), 0u);
}

TEST(TakeReceive, without_a_record_takes_none) {
  Receives r;
  r.post();
  while (r.s->receives.alloc() != 0) {
  }
  EXPECT_EQ(r.take(), 0u);
  EXPECT_EQ(r.indices().consumed.load(), 0u);
}

TEST(TakeReceive, when_fewer_than_the_threshold_are_left_it_is_told_once) {
  Receives r;
  for (int i = 0; i < 4; ++i) r.post();
  ASSERT_EQ(set_receive_threshold(*r.s, r.id, 2), Status::kOk);
  r.take();
  r.take();
  EXPECT_TRUE(r.events().empty()) << "two are left";
  r.take();
  const std::vector<Event> events = r.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kJfrLimit);
  EXPECT_EQ(events[0].object, 99u);
  EXPECT_EQ(events[0].owner, 5);
  r.take();
  EXPECT_TRUE(r.events().empty());
}

TEST(TakeReceive, without_a_threshold_nothing_is_told) {
  Receives r;
  ASSERT_EQ(set_receive_threshold(*r.s, r.id, 2), Status::kOk);
  ASSERT_EQ(set_receive_threshold(*r.s, r.id, 0), Status::kOk);
  EXPECT_FALSE(r.it().limit_armed);
  r.post();
  r.take();
  EXPECT_TRUE(r.events().empty());
}

// ---- giving back -----------------------------------------------------------------------------------------------

TEST(ReturnReceive, the_next_message_gets_it) {
  Receives r;
  r.post();
  r.post();
  const uint32_t first = r.take(), second = r.take();
  r.s->receives[first].jetty = 7;
  r.s->receives[first].filled = 5;
  r.s->receives[first].returns = true;
  return_receive(*r.s, second);
  return_receive(*r.s, first);
  EXPECT_EQ(r.the_jfc().reserved, 0u);
  EXPECT_FALSE(r.s->receives[first].counted);
  EXPECT_EQ(r.take(), first);
  EXPECT_EQ(r.s->receives[first].jetty, 0u);
  EXPECT_EQ(r.s->receives[first].filled, 0u);
  EXPECT_FALSE(r.s->receives[first].returns);
  EXPECT_EQ(r.take(), second);
  EXPECT_EQ(r.the_jfc().reserved, 2u);
  EXPECT_EQ(r.indices().consumed.load(), 2u) << "nothing more of the ring";
}

TEST(ReturnReceive, a_place_that_was_given_up_is_not_given_up_again) {
  Receives r;
  r.post();
  r.post();
  const uint32_t first = r.take();
  r.take();
  r.s->receives[first].counted = false;
  --r.the_jfc().reserved;
  return_receive(*r.s, first);
  EXPECT_EQ(r.the_jfc().reserved, 1u);
}

TEST(ReturnReceive, of_a_jfr_that_failed_is_flushed) {
  Receives r;
  r.post();
  const uint32_t receive = r.take();
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kError), Status::kOk);
  return_receive(*r.s, receive);
  const std::vector<Cqe> done = r.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].user_ctx, 100u);
  EXPECT_EQ(r.s->receives.in_use(), 0u);
}

TEST(ReturnReceive, makes_room_for_completions_that_wait) {
  Receives r(1);
  r.post();
  const uint32_t receive = r.take(), jetty = r.make_jetty();
  ASSERT_EQ(set_state(*r.s, jetty, QueueState::kError), Status::kOk);
  EXPECT_TRUE(r.completions().empty()) << "the only place is promised";
  return_receive(*r.s, receive);
  EXPECT_EQ(r.completions().size(), 1u);
}

TEST(ReleaseReceive, gives_up_its_place_if_it_has_one) {
  Receives r;
  r.post();
  r.post();
  const uint32_t first = r.take(), second = r.take();
  release_receive(*r.s, first);
  EXPECT_EQ(r.the_jfc().reserved, 1u);
  r.s->receives[second].counted = false;
  release_receive(*r.s, second);
  EXPECT_EQ(r.the_jfc().reserved, 1u);
  EXPECT_EQ(r.s->receives.in_use(), 0u);
}

// ---- copies of dead channels -----------------------------------------------------------------------------------

constexpr Tpmsn kMessage{7};

TEST(DeadCopies, of_one_message_say_nothing_of_another) {
  Receives r;
  r.post();
  r.post();
  const uint32_t a = r.take(), b = r.take();
  return_receive_later(*r.s, a, {0x10001, Tpmsn(7), 1});
  return_receive_later(*r.s, b, {0x10001, Tpmsn(8), 1});
  dead_copy_done(*r.s, 0x10001, Tpmsn(7));
  EXPECT_EQ(r.first_returned(), a);
  EXPECT_EQ(r.s->receives_with_late_copies.back(), b);
}

TEST(DeadCopies, a_receive_goes_back_when_the_last_of_them_is_done) {
  Receives r;
  for (int i = 0; i < 3; ++i) r.post();
  const uint32_t a = r.take(), b = r.take(), c = r.take();
  return_receive_later(*r.s, a, {0x10001, kMessage, 2});
  return_receive_later(*r.s, b, {0x10002, kMessage, 1});
  return_receive_later(*r.s, c, {0x10003, kMessage, 1});
  dead_copy_done(*r.s, 0x10001, kMessage);
  dead_copy_done(*r.s, 0x10009, kMessage);
  EXPECT_TRUE(r.it().returned.empty());
  dead_copy_done(*r.s, 0x10002, kMessage);  // from the middle of the list
  EXPECT_EQ(r.first_returned(), b);
  dead_copy_done(*r.s, 0x10001, kMessage);
  EXPECT_EQ(r.first_returned(), a);
  dead_copy_done(*r.s, 0x10003, kMessage);
  EXPECT_EQ(r.first_returned(), c);
  EXPECT_TRUE(r.s->receives_with_late_copies.empty());
  EXPECT_EQ(r.the_jfc().reserved, 0u);
}

TEST(DeadCopies, a_receive_whose_jfr_is_gone_meanwhile_is_free) {
  Receives r;
  r.post();
  r.post();
  const uint32_t a = r.take(), b = r.take();
  return_receive_later(*r.s, a, {0x10001, kMessage, 1});
  return_receive_later(*r.s, b, {0x10002, kMessage, 1});
  ASSERT_EQ(destroy_jfr(*r.s, r.id), Status::kOk);
  EXPECT_EQ(r.the_jfc().reserved, 0u);
  EXPECT_EQ(r.s->receives.in_use(), 2u) << "they may still be written";
  const uint32_t other = r.make_jfr();
  dead_copy_done(*r.s, 0x10001, kMessage);
  dead_copy_done(*r.s, 0x10002, kMessage);
  EXPECT_EQ(r.s->receives.in_use(), 0u);
  EXPECT_TRUE(r.jfr(other).returned.empty()) << "of another one";
  EXPECT_EQ(r.the_jfc().reserved, 0u);
}

TEST(DeadCopies, of_another_jfr_are_not_touched) {
  Receives r;
  r.post();
  return_receive_later(*r.s, r.take(), {0x10001, kMessage, 1});
  const uint32_t other = r.make_jfr();
  ASSERT_EQ(destroy_jfr(*r.s, other), Status::kOk);
  EXPECT_EQ(r.the_jfc().reserved, 1u);
  dead_copy_done(*r.s, 0x10001, kMessage);
  EXPECT_FALSE(r.it().returned.empty());
}

TEST(DeadCopies, of_a_jfr_that_lost_a_jetty_go_back_to_it) {
  Receives r;
  r.post();
  return_receive_later(*r.s, r.take(), {0x10001, kMessage, 1});
  ASSERT_EQ(destroy_jetty(*r.s, r.make_jetty(r.id)), Status::kOk);
  dead_copy_done(*r.s, 0x10001, kMessage);
  EXPECT_FALSE(r.it().returned.empty());
}

// ---- messages that are arriving --------------------------------------------------------------------------------

TEST(OpenReceives, of_a_jfr_that_is_gone_are_lost_and_their_messages_fail) {
  Receives r;
  r.post();
  r.post();
  const uint32_t channel = r.channel_with(r.take());
  r.channel_with(0);
  const uint32_t copying = r.channel_with(r.take());
  r.s->channels[copying].open.copies = 1;
  ASSERT_EQ(destroy_jfr(*r.s, r.id), Status::kOk);
  for (uint32_t c : {channel, copying}) {
    EXPECT_EQ(r.s->channels[c].open.receive, 0u);
    EXPECT_EQ(r.s->channels[c].open.rspst, wire::kRspError);
    EXPECT_EQ(r.s->channels[c].open.rspinfo, wire::kErrRemoteAbort);
  }
  EXPECT_EQ(r.s->receives.in_use(), 0u);
  EXPECT_EQ(r.the_jfc().reserved, 0u);
}

TEST(OpenReceives, of_another_jfr_stay) {
  Receives r;
  r.post();
  const uint32_t receive = r.take(), channel = r.channel_with(receive), other = r.make_jfr();
  ASSERT_EQ(destroy_jfr(*r.s, other), Status::kOk);
  EXPECT_EQ(r.s->channels[channel].open.receive, receive);
  EXPECT_EQ(r.s->channels[channel].open.rspst, 0);
}

TEST(OpenReceives, of_a_jetty_that_is_gone_go_back_to_its_jfr) {
  Receives r;
  const uint32_t jetty = r.make_jetty(r.id);
  r.post();
  r.post();
  const uint32_t receive = r.take(), other = r.take();
  r.s->receives[receive].jetty = r.s->ids[jetty].record;
  const uint32_t channel = r.channel_with(receive), of_the_jfr = r.channel_with(other);
  ASSERT_EQ(destroy_jetty(*r.s, jetty), Status::kOk);
  EXPECT_EQ(r.s->channels[channel].open.receive, 0u);
  EXPECT_EQ(r.s->channels[channel].open.rspst, wire::kRspError);
  EXPECT_EQ(r.it().returned.back(), receive);
  EXPECT_EQ(r.s->channels[of_the_jfr].open.receive, other) << "addressed to the JFR itself";
  EXPECT_EQ(r.the_jfc().reserved, 1u);
}

// Bytes may still be written into it: it goes back when its message ends.
TEST(OpenReceives, of_a_jetty_that_is_gone_stay_while_copies_are_pending) {
  Receives r;
  uint32_t other_jfc = 0;
  ASSERT_EQ(create_jfc(*r.s, r.jfc_config(), &other_jfc), Status::kOk);
  JettyConfig c = r.jetty_config(r.id);
  c.recv_jfc = other_jfc;
  const uint32_t jetty = r.make(c);
  r.post();
  const uint32_t receive = take_receive(*r.s, r.record, other_jfc);
  r.s->receives[receive].jetty = r.s->ids[jetty].record;
  const uint32_t channel = r.channel_with(receive);
  r.s->channels[channel].open.copies = 1;
  ASSERT_EQ(destroy_jetty(*r.s, jetty), Status::kOk);
  const RxReceive& kept = r.s->receives[receive];
  EXPECT_EQ(r.s->channels[channel].open.receive, receive);
  EXPECT_TRUE(kept.returns);
  EXPECT_FALSE(kept.counted);
  EXPECT_EQ(kept.jetty, 0u);
  EXPECT_EQ(kept.jfc, r.jfc) << "that of its JFR: the other one may be destroyed";
  EXPECT_EQ(r.s->jfcs[other_jfc].reserved, 0u);
  EXPECT_EQ(destroy_jfc(*r.s, other_jfc), Status::kOk);
}

// ---- datagrams that are arriving -------------------------------------------------------------------------------

struct Datagrams : Receives {
  uint32_t arriving(uint32_t receive) {
    const uint32_t at = s->arriving.alloc();
    s->arriving[at] = ArrivingDatagram{};
    s->arriving[at].receive = receive;
    s->arriving[at].in_use = true;
    return at;
  }
};

TEST(ArrivingDatagrams, of_a_jfr_that_is_gone_lose_their_receives) {
  Datagrams d;
  d.post();
  d.post();
  const uint32_t first = d.arriving(d.take());
  d.arriving(0);
  const uint32_t second = d.arriving(d.take());
  const uint32_t over = d.arriving(d.s->arriving[first].receive);
  d.s->arriving[over].in_use = false;
  ASSERT_EQ(destroy_jfr(*d.s, d.id), Status::kOk);
  EXPECT_EQ(d.s->arriving[first].receive, 0u);
  EXPECT_EQ(d.s->arriving[second].receive, 0u);
  EXPECT_EQ(d.s->receives.in_use(), 0u);
  EXPECT_EQ(d.the_jfc().reserved, 0u);
}

TEST(ArrivingDatagrams, of_another_jfr_keep_theirs) {
  Datagrams d;
  d.post();
  const uint32_t receive = d.take(), at = d.arriving(receive), other = d.make_jfr();
  ASSERT_EQ(destroy_jfr(*d.s, other), Status::kOk);
  EXPECT_EQ(d.s->arriving[at].receive, receive);
}

TEST(ArrivingDatagrams, of_a_jetty_that_is_gone_give_theirs_back_at_their_end) {
  Datagrams d;
  const uint32_t jetty = d.make_jetty(d.id);
  d.post();
  d.post();
  const uint32_t receive = d.take(), other = d.take();
  d.s->receives[receive].jetty = d.s->ids[jetty].record;
  const uint32_t at = d.arriving(receive);
  d.arriving(other);
  ASSERT_EQ(destroy_jetty(*d.s, jetty), Status::kOk);
  EXPECT_EQ(d.s->arriving[at].receive, receive);
  EXPECT_TRUE(d.s->receives[receive].returns);
  EXPECT_FALSE(d.s->receives[other].returns);
  EXPECT_EQ(d.the_jfc().reserved, 1u);
}

// ---- flushing --------------------------------------------------------------------------------------------------

TEST(FlushReceives, what_is_posted_comes_back_with_its_context) {
  Receives r;
  r.post();
  r.post();
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kError), Status::kOk);
  const std::vector<Cqe> done = r.completions();
  ASSERT_EQ(done.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(done[i].user_ctx, 100 + i);
    EXPECT_EQ(done[i].status, CrStatus::kWrFlush);
    EXPECT_EQ(done[i].opcode, CrOpcode::kNone);
    EXPECT_EQ(done[i].flags, kCqeReceive);
    EXPECT_EQ(done[i].local_id, r.id);
    EXPECT_EQ(done[i].user_data, 99u);
  }
  EXPECT_EQ(r.s->receives.in_use(), 0u);
  EXPECT_EQ(r.the_jfc().reserved, 0u);
  EXPECT_FALSE(r.it().waiter);
}

TEST(FlushReceives, the_way_of_a_receive_is_noted_until_it_is_flushed) {
  Receives r;
  TestHost host;
  r.s->looker.begin(host);
  r.post();
  const uint32_t receive = r.take();
  return_receive(*r.s, receive);
  const auto note = [&](Stage stage) { return Note{stage, r.record, receive}; };
  EXPECT_EQ(host.noted(Stage::kReceiveTaken), std::vector<Note>{note(Stage::kReceiveTaken)});
  EXPECT_EQ(host.noted(Stage::kReceiveReturned), std::vector<Note>{note(Stage::kReceiveReturned)});
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kError), Status::kOk);
  EXPECT_EQ(host.noted(Stage::kReceiveFlushed), std::vector<Note>{note(Stage::kReceiveFlushed)});
}

TEST(FlushReceives, goes_on_when_there_is_room) {
  Receives r(2);
  for (int i = 0; i < 3; ++i) r.post();
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kError), Status::kOk);
  EXPECT_TRUE(r.it().waiter);
  EXPECT_EQ(r.completions().size(), 2u);
  ta::resume_jfc(*r.s, r.jfc);
  EXPECT_EQ(r.completions().size(), 1u);
  EXPECT_FALSE(r.it().waiter);
}

// The application may post and make room without end.
TEST(FlushReceives, of_a_short_ring_no_more_than_it_is_long_at_one_time) {
  Receives r(16, 4);
  for (int i = 0; i < 4; ++i) r.post();
  const uint32_t given_back = r.take();
  r.post();
  return_receive(*r.s, given_back);
  r.it().state = QueueState::kError;
  flush_receives(*r.s, r.record);  // five are there
  EXPECT_EQ(r.completions().size(), 4u);
  EXPECT_TRUE(r.it().waiter);
  EXPECT_EQ(r.s->timers.earliest(), r.s->now + nanoseconds(1)) << "nobody needs to do anything for it to go on";
  uint32_t object = 0;
  ASSERT_TRUE(r.s->timers.pop_due(r.s->now + nanoseconds(1), &object));
  EXPECT_EQ(object, r.s->wake_up);
}

// Those that complete into a JFC are visited together, and share a visit.
TEST(FlushReceives, no_more_than_its_share_of_a_visit_at_one_time) {
  for (uint32_t users : {1u, 2u, 64u, 65u, 1000u}) {
    Receives r(256, 128);
    for (int i = 0; i < 100; ++i) r.post();
    r.the_jfc().users = users;
    ASSERT_EQ(set_state(*r.s, r.id, QueueState::kError), Status::kOk);
    EXPECT_EQ(r.completions().size(), std::max(1u, 64 / users)) << users;
    EXPECT_TRUE(r.it().waiter);
  }
}

TEST(FlushReceives, of_a_jfr_that_is_not_in_error_or_waits_does_nothing) {
  Receives r;
  r.post();
  flush_receives(*r.s, r.record);
  EXPECT_TRUE(r.completions().empty());
  r.it().state = QueueState::kError;
  ta::wait_for_room(*r.s, r.jfc, r.s->jfr_waiters.of(r.record));
  flush_receives(*r.s, r.record);
  EXPECT_TRUE(r.completions().empty());
}

// ---- discarding ------------------------------------------------------------------------------------------------

TEST(DiscardReceives, all_that_was_posted_is_gone_without_a_word) {
  Receives r;
  r.post();
  r.skip(2);
  r.post(2);
  r.it().returned.push_back<&RxReceive::on_list>(r.s->receives, r.take());
  ta::wait_for_room(*r.s, r.jfc, r.s->jfr_waiters.of(r.record));
  const uint32_t retired = r.indices().retired.load();
  discard_receives(*r.s, r.record);
  EXPECT_EQ(r.indices().consumed.load(), 5u);
  EXPECT_EQ(r.it().consumed, 5u);
  EXPECT_EQ(r.indices().retired.load(), retired + 1) << "a filler is no receive";
  EXPECT_EQ(r.s->receives.in_use(), 0u);
  EXPECT_TRUE(r.it().returned.empty());
  EXPECT_FALSE(r.it().waiter);
  EXPECT_TRUE(r.completions().empty());
}

TEST(DiscardReceives, counts_receives_and_no_fillers) {
  Receives r;
  for (int i = 0; i < 3; ++i) r.post();
  r.skip(2);
  discard_receives(*r.s, r.record);
  EXPECT_EQ(r.indices().retired.load(), 3u);
}

TEST(DiscardReceives, stops_at_an_element_that_cannot_be) {
  Receives r;
  r.post();
  r.post().slots = 0;
  r.post();
  discard_receives(*r.s, r.record);
  EXPECT_EQ(r.indices().consumed.load(), 1u);
}

// The places of receives that are lost are free, and whoever waits for one gets it.
TEST(DiscardReceives, ends_at_a_filler_of_no_length) {
  Receives r;
  r.skip().slots = 0;
  discard_receives(*r.s, r.record);
  EXPECT_EQ(r.indices().consumed.load(), 0u);
}

TEST(DestroyJfr, makes_room_for_completions_that_wait) {
  Receives r(1);
  r.post();
  r.channel_with(r.take());
  const uint32_t jetty = r.make_jetty();
  ASSERT_EQ(set_state(*r.s, jetty, QueueState::kError), Status::kOk);
  EXPECT_TRUE(r.completions().empty());
  ASSERT_EQ(destroy_jfr(*r.s, r.id), Status::kOk);
  EXPECT_EQ(r.completions().size(), 1u);
}

}  // namespace
}  // namespace ub
