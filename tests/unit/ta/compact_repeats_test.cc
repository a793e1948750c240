// SPDX-License-Identifier: Apache-2.0
//
// The compact transport on a wire that loses, doubles and reorders packets (UB Base Specification Rev 2.0, 6.2.1,
// 7.3.1.1; docs/compact-design.md): what is not answered is repeated, and nothing is executed twice.
#include <algorithm>

#include "tests/unit/ta/lossy_pair.h"
#include "tests/unit/ta/requests.h"

namespace ub {
namespace {

// ---- the initiator repeats -------------------------------------------------------------------------------------

TEST_F(RepeatsTest, a_request_that_is_lost_comes_again_with_retry_and_the_same_tassn) {
  request(WrOp::kWrite, 100);
  const std::vector<SeenCompact> first = lose(a);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_FALSE(first[0].ta.req.retry);
  const uint16_t tassn = first[0].ta.req.tassn.value();
  wait_for_frames(a);
  const std::vector<SeenCompact> again = compact_from(a);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].ta.req.retry);
  EXPECT_EQ(again[0].ta.req.tassn.value(), tassn);
  EXPECT_EQ(again[0].ta.payload_len, 100u);
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_TRUE(arrived(100));
  EXPECT_EQ(count(a, Counter::kCtpTxRepeat), 1u);
  EXPECT_EQ(count(b, Counter::kCtpRxRepeated), 0u) << "the first one never came";
}

TEST_F(RepeatsTest, each_repeat_has_the_tassn_of_the_first_try) {
  request(WrOp::kWrite, 100);
  const std::vector<SeenCompact> first = lose(a);
  ASSERT_EQ(first.size(), 1u);
  for (int repeat = 1; repeat <= 4; ++repeat) {
    wait_for_frames(a);
    const std::vector<SeenCompact> again = lose(a);
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].ta.req.tassn, first[0].ta.req.tassn) << repeat;
  }
}

TEST_F(RepeatsTest, one_that_is_answered_is_not_repeated) {
  request(WrOp::kWrite, 100);
  exchange();
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(count(a, Counter::kCtpTxRepeat), 0u);
}

TEST_F(RepeatsTest, the_pause_doubles_up_to_the_limit) {
  request(WrOp::kWrite, 8);
  lose(a);
  Instant last = now;
  for (Duration pause : {milliseconds(4), milliseconds(8), milliseconds(16), milliseconds(32), milliseconds(64),
                         milliseconds(128), milliseconds(256), milliseconds(512), milliseconds(512)}) {
    wait_for_frames(a);
    EXPECT_GE(now - last, pause);
    EXPECT_LE(now - last, pause + milliseconds(2)) << "it may come together with others";
    last = now;
    a.host.frames.clear();
  }
}

TEST_F(RepeatsTest, several_are_repeated_together) {
  for (int i = 0; i < 20; ++i) {
    request(WrOp::kWrite, 8);
    lose(a);
    now = now + microseconds(20);
  }
  wait_for_frames(a);
  EXPECT_EQ(a.host.frames.size(), 1u) << "the oldest";
  deliver(a, b);
  wait_for_frames(a);
  EXPECT_EQ(a.host.frames.size(), 19u) << "the others, with one look";
  settle(seconds(1));
  EXPECT_EQ(a.poll().size(), 20u);
  EXPECT_EQ(count(a, Counter::kCtpTxRepeat), 20u);
}

TEST_F(RepeatsTest, the_timeout_follows_the_round_trips) {
  for (int i = 0; i < 3; ++i) {
    request(WrOp::kWrite, 8);
    drain(a);
    now = now + milliseconds(1);
    exchange();
    EXPECT_EQ(channel(a).rto, milliseconds(8)) << "eight round trips";
  }
}

// All queues begin with the same TASSNs.
TEST_F(RepeatsTest, an_answer_to_another_queue_with_the_same_tassn_tells_no_round_trip) {
  request(WrOp::kWrite, 8);
  const wire::Btah sent = lose(a)[0].ta.req;
  now = now + milliseconds(1);
  answer(sent.rc_id + 1, sent.tassn);
  EXPECT_EQ(channel(a).round_trip.smoothed.ns, 0);
  answer(sent.rc_id, sent.tassn);
  EXPECT_EQ(channel(a).round_trip.smoothed, milliseconds(1));
}

// Karn: its answer may be one to either.
TEST_F(RepeatsTest, one_that_was_repeated_tells_no_round_trip) {
  request(WrOp::kWrite, 8);
  lose(a);
  wait_for_frames(a);
  now = now + milliseconds(100);
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(channel(a).round_trip.smoothed.ns, 0);
  request(WrOp::kWrite, 8);
  drain(a);
  now = now + milliseconds(1);
  exchange();
  EXPECT_EQ(channel(a).round_trip.smoothed, milliseconds(1)) << "the next one does";
}

// A queue of four packets on the way, which empties once in a millisecond.
class RepeatsOverrun : public RepeatsTest {
 protected:
  void SetUp() override {
    RepeatsTest::SetUp();
    filter = [this](UbNode& from, Bytes& frame) {
      if (&from != &a || !wire::has_link_header(frame)) return true;
      if (now - emptied_ >= milliseconds(1)) {
        emptied_ = now;
        room_ = 4;
      }
      if (room_ == 0) return false;
      --room_;
      return true;
    };
  }

 private:
  Instant emptied_{};
  int room_ = 0;
};
TEST_F(RepeatsOverrun, a_wire_that_takes_less_than_is_sent_gets_less) {
  for (int i = 0; i < 60; ++i) request(WrOp::kWrite, 8);
  settle(seconds(5));
  const std::vector<Cqe> all = a.poll();
  ASSERT_EQ(all.size(), 60u);
  for (const Cqe& c : all) EXPECT_EQ(c.status, CrStatus::kSuccess);
  EXPECT_LT(count(a, Counter::kCtpTxRepeat), 400u);
}
TEST_F(RepeatsOverrun, when_it_takes_more_again_all_may_be_under_way) {
  const uint32_t most = channel(a).most_unanswered;
  EXPECT_EQ(most, limit());
  for (int i = 0; i < 60; ++i) request(WrOp::kWrite, 8);
  settle(seconds(5));
  a.poll();
  EXPECT_LT(channel(a).most_unanswered, most);
  filter = nullptr;
  for (uint32_t i = 0; i < most; ++i) {
    request(WrOp::kWrite, 8);
    exchange();
    a.poll();
  }
  EXPECT_EQ(channel(a).most_unanswered, most);
}

// Not when the time of those that went first would be over.
TEST_F(RepeatsTest, what_may_not_go_again_at_once_goes_soon_after_those_that_may) {
  constexpr size_t kLost = 60;
  for (size_t i = 0; i < kLost; ++i) request(WrOp::kWrite, 8);
  ASSERT_EQ(lose(a).size(), kLost);
  const Duration timeout = channel(a).rto;
  wait_for_frames(a);
  const size_t first = a.host.frames.size();
  ASSERT_LT(first, kLost);
  exchange();
  const Instant answered = now;
  wait_for_frames(a);
  EXPECT_EQ(a.host.frames.size(), kLost - first);
  EXPECT_LE(now - answered, timeout / 2);
}

TEST_F(RepeatsTest, a_repeat_that_finds_the_port_full_leaves_later) {
  request(WrOp::kWrite, 8);
  lose(a);
  a.host.full = true;
  for (int i = 0; i < 3; ++i) wake(a);
  drain(a);
  a.host.full = false;
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(count(a, Counter::kCtpTxRepeat), 1u);
}

// Else a channel that is never idle repeats nothing.
TEST_F(RepeatsTest, a_repeat_leaves_before_new_requests) {
  request(WrOp::kWrite, 8);
  lose(a);
  while (repeats(a).due_count == 0) wake(a);
  UbNode::Ring ring;
  write_from(ring, another_queue(ring));
  const std::vector<SeenCompact> left = compact_from(a);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_TRUE(left[0].ta.req.retry);
  EXPECT_FALSE(left[1].ta.req.retry);
}

TEST_F(RepeatsTest, a_request_that_finds_the_port_full_is_repeated_like_any_other) {
  a.host.full = true;
  request(WrOp::kWrite, 8);
  drain(a);
  a.host.full = false;
  EXPECT_EQ(lose(a).size(), 1u);
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(count(a, Counter::kCtpTxRepeat), 1u);
}

// It stands on the list once, though it has left twice.
TEST_F(RepeatsTest, a_request_that_was_refused_is_repeated_once_at_a_time) {
  request(WrOp::kWrite, 8);
  const std::vector<SeenCompact> first = lose(a);
  ASSERT_EQ(first.size(), 1u);
  answer(a.jetty, first[0].ta.req.tassn, wire::kRspPageFault);
  wait_for_frames(a);
  EXPECT_EQ(count(a, Counter::kCtpTxRepeat), 0u) << "the target asked for this one";
  lose(a);
  wait_for_frames(a);
  settle(seconds(1));
  EXPECT_EQ(count(a, Counter::kCtpTxRepeat), 1u);
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
}

// Before anybody looks at the list, which would take the first try off it.
TEST_F(RepeatsTest, a_request_that_was_refused_and_left_again_at_once_stands_on_the_list_once) {
  request(WrOp::kWrite, 8);
  const std::vector<SeenCompact> first = lose(a);
  ASSERT_EQ(first.size(), 1u);
  const Instant left = now;
  answer(a.jetty, first[0].ta.req.tassn, wire::kRspRnr);
  wait_for_frames(a);
  ASSERT_LT(now - left, milliseconds(1));
  lose(a);
  EXPECT_EQ(repeats(a).sent_count, 1u);
  wait_for_frames(a);
  EXPECT_EQ(a.host.frames.size(), 1u);
}

TEST_F(RepeatsTest, a_request_that_was_given_up_is_not_repeated) {
  request(WrOp::kWrite, 8);
  lose(a);
  ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kError), Status::kOk);
  EXPECT_EQ(a.poll()[0].status, CrStatus::kWrFlush);
  settle(seconds(1));
  EXPECT_EQ(count(a, Counter::kCtpTxRepeat), 0u);
}

TEST_F(RepeatsTest, local_memory_that_goes_fails_the_repeat) {
  request(WrOp::kWrite, 64);
  lose(a);
  ASSERT_EQ(a.core->unregister_segment(now, a.segment.handle), Status::kOk);
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kLocAccess);
}

TEST_F(RepeatsTest, after_its_deadline_a_request_ends_and_the_channel_of_a_peer_that_lives_stays) {
  filter = [&](UbNode&, Bytes& frame) { return !wire::has_link_header(frame); };
  request(WrOp::kWrite, 8);
  settle(seconds(6));
  EXPECT_EQ(only_status(a), CrStatus::kAckTimeout);
  EXPECT_TRUE(channel(a).is_up());
  EXPECT_LT(count(a, Counter::kCtpTxRepeat), 20u);
  filter = nullptr;
  request(WrOp::kWrite, 8);
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
}

TEST_F(RepeatsTest, a_peer_that_is_gone_is_found_to_be) {
  filter = [](UbNode&, Bytes&) { return false; };
  request(WrOp::kWrite, 8);
  const Instant begin = now;
  while (channel(a).is_up() && now - begin < seconds(6)) {
    wake(a);
    drain(a);
    a.host.frames.clear();
  }
  EXPECT_FALSE(channel(a).is_up());
  EXPECT_EQ(only_status(a), CrStatus::kAckTimeout);
  EXPECT_EQ(state(a).repeats.in_use(), 0u);
}

class RepeatsPatient : public RepeatsTest {
 protected:
  static UbOptions patient() {
    UbOptions o = on_lossy_wire();
    o.err_timeout = 22;  // a deadline of more than two minutes
    return o;
  }
  RepeatsPatient() : RepeatsTest(patient()) {}
};
TEST_F(RepeatsPatient, the_number_of_repeats_has_a_limit) {
  filter = [&](UbNode&, Bytes& frame) { return !wire::has_link_header(frame); };
  request(WrOp::kWrite, 8);
  settle(seconds(30));
  EXPECT_EQ(only_status(a), CrStatus::kAckTimeout);
  EXPECT_EQ(count(a, Counter::kCtpTxRepeat), ta::kMostRepeats);
  EXPECT_EQ(count(a, Counter::kTaTimeout), 1u);
  EXPECT_TRUE(channel(a).is_up());
}

TEST_F(RepeatsPatient, what_was_repeated_in_vain_lets_those_behind_its_fence_go) {
  filter = [&](UbNode&, Bytes& frame) { return count(a, Counter::kTaTimeout) != 0 || !wire::has_link_header(frame); };
  request(WrOp::kRead, 8);
  request(WrOp::kWrite, 8).flags |= kWrFence;
  settle(seconds(30));
  const std::vector<Cqe> all = a.poll();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].status, CrStatus::kAckTimeout);
  EXPECT_EQ(all[1].status, CrStatus::kSuccess);
}

// ---- which requests it carries ---------------------------------------------------------------------------------

TEST_F(RepeatsTest, messages_that_take_a_receive_go_by_rtp) {
  for (uint32_t i = 0; i < 3; ++i) b.post_receive(b.receive_indices[0], b.receives[0], 4096 * i, 2048);
  request(WrOp::kSend, 10);
  request(WrOp::kSendImm, 10).immediate = 77;
  request(WrOp::kWriteImm, 30).immediate = 78;
  settle(seconds(1));
  EXPECT_EQ(a.poll().size(), 3u);
  EXPECT_EQ(b.poll().size(), 3u);
  EXPECT_EQ(count(a, Counter::kCtpTx), 0u);
}

// 7.3.1.1: the target keeps the results of so many.
TEST_F(RepeatsTest, nothing_is_sent_further_ahead_than_the_target_remembers) {
  request(WrOp::kFetchAdd, 8);
  const std::vector<SeenCompact> oldest = lose(a);
  ASSERT_EQ(oldest.size(), 1u);
  const Tassn first = oldest[0].ta.req.tassn;
  for (int i = 0; i < 15; ++i) request(WrOp::kWrite, 10 * kMtu);
  uint32_t furthest = 0;
  const auto send_all = [&] {
    for (const SeenCompact& p : compact_from(a)) {
      if (!p.ta.req.retry) furthest = std::max(furthest, p.ta.req.tassn.distance(first));
    }
    deliver(a, b);
    drain(b);
    deliver(b, a);
  };
  for (int i = 0; i < 40; ++i) send_all();
  EXPECT_EQ(furthest, ta::kKeptResults - 1);
  settle(seconds(1));
  const std::vector<Cqe> done = a.poll();
  EXPECT_EQ(done.size(), 16u);
  for (const Cqe& c : done) EXPECT_EQ(c.status, CrStatus::kSuccess);
  EXPECT_EQ(count(b, Counter::kCtpRxOld), 0u);
  EXPECT_EQ(rtp_data(a), 0u) << "they wait for an answer on the same channel";
}

TEST_F(RepeatsTest, what_waits_for_an_older_one_elsewhere_goes_by_rtp) {
  request(WrOp::kRead, 4 * kMtu);  // sets up a channel of RTP
  settle(seconds(1));
  a.poll();
  filter = [&](UbNode& from, Bytes& frame) { return &from == &a || wire::has_link_header(frame); };
  request(WrOp::kRead, 4 * kMtu);  // gets no answer
  for (int i = 0; i < 62; ++i) {
    request(WrOp::kWrite, 8);
    exchange();
  }
  EXPECT_EQ(count(a, Counter::kCtpTx), 62u);
  request(WrOp::kWrite, 2 * kMtu);  // its second TASSN is too far away
  exchange();
  EXPECT_EQ(count(a, Counter::kCtpTx), 62u);
}

// The target would have no record for it.
TEST(RepeatsPlaces, one_queue_more_than_there_are_places_goes_by_rtp) {
  ta::Requests r;
  r.peer().lanes[kCompactLane].channels[0] = r.channel;
  ASSERT_TRUE(ta::take_repeats(*r.s, r.ch()));
  ta::Repeats& repeats = r.s->repeats[r.ch().repeats];
  const auto is_carried = [&] {
    return ta::may_be_repeated(*r.s, r.q(), r.write(WrOp::kWrite), r.s->targets[r.target].peer);
  };
  for (uint32_t others = 0; others < ta::kRepeatQueues; ++others) {
    EXPECT_TRUE(is_carried()) << others;
    repeats.queues[repeats.queue_count++] = {r.q().rcid + 1 + others, Tassn(0), 0, false};
  }
  EXPECT_FALSE(is_carried());
  repeats.queues[0].rcid = r.q().rcid;
  EXPECT_TRUE(is_carried()) << "it has a place itself";
}

// Whatever wire the path says: the peer may have chosen another one. Before its channel is open, queues line up for it.
TEST(RepeatsPlaces, are_those_of_the_channel_that_there_is) {
  for (const bool open : {false, true}) {
    ta::Requests r({.lanes = 2});
    r.peer().compact_mtu = ta::kMtu;
    r.peer().compact_loses = false;
    const uint32_t compact = setup::channel_to(*r.s, r.s->targets[r.target].peer, kCompactLane);
    ASSERT_TRUE(ta::take_repeats(*r.s, r.s->channels[compact]));
    r.s->repeats[r.s->channels[compact].repeats].queue_count = ta::kRepeatQueues;
    if (open) r.open(compact);
    r.post(WrOp::kWrite, 8);
    EXPECT_EQ(r.sent().size(), 1u) << "RTP carries it";
  }
}

// RTP carries what a queue without a place has posted, or the next channel of CTP does.
TEST(RepeatsPlaces, with_the_channel_ends_what_was_posted_by_queues_that_have_one) {
  for (const bool with_place : {true, false}) {
    ta::Requests r({.lanes = 2});
    r.peer().compact_mtu = ta::kMtu;
    const uint32_t compact = setup::channel_to(*r.s, r.s->targets[r.target].peer, kCompactLane);
    ASSERT_TRUE(ta::take_repeats(*r.s, r.s->channels[compact]));
    r.open(compact);
    ta::Repeats& repeats = r.s->repeats[r.s->channels[compact].repeats];
    repeats.queue_count = ta::kRepeatQueues;
    if (with_place) repeats.queues[7].rcid = r.q().rcid;
    r.post(WrOp::kWrite, 8);
    setup::kill_channel(*r.s, compact);
    r.sent();  // its turn
    EXPECT_EQ(r.outcomes(), with_place ? ta::Outcomes{CrStatus::kAckTimeout} : ta::Outcomes{});
  }
}

// Whether the channel of CTP can carry a request is known only when it has begun. RTP does it at once if not.
TEST(RepeatsPlaces, a_request_that_is_too_far_ahead_for_a_channel_that_has_just_begun_goes_by_rtp) {
  ta::Requests r({.depth = 128, .lanes = 2});
  r.post(WrOp::kRead, 8);
  r.sent();  // and its answer is late
  for (uint32_t i = 1; i <= ta::kKeptResults; ++i) {
    r.post(WrOp::kWrite, 8);
    r.sent();
    r.answer(i);
  }
  r.s->links[1].config.lossless = false;
  r.s->links[1].config.compact = true;
  r.peer().compact_mtu = ta::kMtu;
  r.peer().compact_loses = true;
  forget_routes(*r.s);
  r.post(WrOp::kWrite, 8);
  ASSERT_NE(r.peer().lanes[kCompactLane].channels[0], 0u);
  EXPECT_EQ(r.sent().size(), 1u);
}

// Its final word becomes visible last, and another one may be lost.
TEST_F(RepeatsTest, the_last_segment_of_a_write_waits_for_the_others) {
  request(WrOp::kWrite, 4 * kMtu);
  drain(a);
  ASSERT_EQ(a.host.frames.size(), 3u);
  a.host.frames.pop_front();
  deliver(a, b);
  drain(b);
  deliver(b, a);
  EXPECT_FALSE(drain(a)) << "the first one is missing";
  wait_for_frames(a);
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_TRUE(arrived(4 * kMtu));
}

class RepeatsNone : public RepeatsTest {
 protected:
  static UbOptions without_records() {
    UbOptions o = on_lossy_wire();
    o.core.compact_repeats = 0;
    return o;
  }
  RepeatsNone() : RepeatsTest(without_records()) {}
};
TEST_F(RepeatsNone, rtp_carries_all) {
  request(WrOp::kWrite, 8);
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(count(a, Counter::kCtpTx), 0u);
  EXPECT_EQ(count(b, Counter::kTpChannelRejected), 0u) << "nobody asked for CTP";
}

// ---- the target executes once ----------------------------------------------------------------------------------

TEST_F(RepeatsTest, a_lost_answer_to_an_atomic_is_given_again) {
  const uint64_t before = word();
  add(5);
  drain(a);
  deliver(a, b);
  lose(b);
  EXPECT_EQ(word(), before + 5);
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(word(), before + 5) << "executed once";
  EXPECT_EQ(std::memcmp(a.memory.data(), &before, sizeof before), 0) << "with the value that it found then";
  EXPECT_EQ(count(b, Counter::kCtpRxRepeated), 1u);
}

TEST_F(RepeatsTest, a_first_try_that_the_network_doubles_is_executed_once) {
  const uint64_t before = word();
  add(5);
  const Bytes frame = frame_of_last();
  arrive(frame);
  arrive(frame);
  EXPECT_EQ(word(), before + 5);
  EXPECT_EQ(count(b, Counter::kCtpRxDuplicate), 1u);
  EXPECT_EQ(lose(b).size(), 1u) << "the second one is not answered";
}

TEST_F(RepeatsTest, a_first_try_that_comes_behind_its_repeat_is_not_executed) {
  const uint64_t before = word();
  add(5);
  const Bytes late = frame_of_last();
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  arrive(late);
  EXPECT_EQ(word(), before + 5);
  EXPECT_EQ(count(b, Counter::kCtpRxDuplicate), 1u);
}

TEST_F(RepeatsTest, an_old_write_does_not_overwrite_a_new_one) {
  arrive(write_frame(9, 1, std::byte{1}));
  arrive(write_frame(9, 2, std::byte{2}));
  arrive(write_frame(9, 1, std::byte{1}));
  arrive(write_frame(9, 1, std::byte{1}, true));
  EXPECT_EQ(first_byte(), std::byte{2});
}

// READs move the record on, and none moves it back.
TEST_F(RepeatsTest, an_old_read_makes_no_request_look_new) {
  arrive(write_frame(9, 7, std::byte{1}));
  arrive(write_frame(9, 8, std::byte{2}));
  arrive(read_frame(9, 6));
  arrive(write_frame(9, 7, std::byte{1}));
  EXPECT_EQ(first_byte(), std::byte{2});
  EXPECT_EQ(count(b, Counter::kCtpRxDuplicate), 1u);
}

TEST_F(RepeatsTest, packets_that_change_places_are_all_executed) {
  for (uint32_t tassn : {3u, 1u, 2u}) {
    arrive(write_frame(9, tassn, static_cast<std::byte>(tassn)));
    EXPECT_EQ(first_byte(), static_cast<std::byte>(tassn));
  }
}

TEST_F(RepeatsTest, what_is_older_than_the_record_is_dropped) {
  for (uint32_t newest : {1000u, 30'000u, 60'000u, 65'530u, 5u}) {  // TASSNs wrap
    arrive(write_frame(9, newest, std::byte{1}));
    EXPECT_EQ(first_byte(), std::byte{1});
    lose(b);
    arrive(write_frame(9, newest - ta::kKeptResults + 1, std::byte{2}));
    EXPECT_EQ(first_byte(), std::byte{2}) << "the oldest on record";
    lose(b);
    const uint64_t before = count(b, Counter::kCtpRxOld);
    arrive(write_frame(9, newest - ta::kKeptResults, std::byte{3}, true));
    EXPECT_EQ(first_byte(), std::byte{2});
    EXPECT_EQ(count(b, Counter::kCtpRxOld), before + 1);
    EXPECT_TRUE(lose(b).empty());
  }
}

// A place on record that is used again has no result yet.
TEST_F(RepeatsTest, a_result_is_forgotten_when_its_place_is_taken) {
  for (uint32_t ahead : {ta::kKeptResults, 2 * ta::kKeptResults, ta::kKeptResults + 7}) {
    const uint32_t tassn = 100 + 10 * ahead;
    arrive(write_frame(9, tassn, std::byte{1}));
    arrive(write_frame(9, tassn + ahead - 1, std::byte{2}));
    arrive(write_frame(9, tassn + ahead, std::byte{3}, true));
    EXPECT_EQ(first_byte(), std::byte{3}) << ahead;
  }
  EXPECT_EQ(count(b, Counter::kCtpRxRepeated), 0u);
}

TEST_F(RepeatsTest, every_queue_of_the_peer_has_a_record_of_its_own) {
  for (uint32_t rcid = 1; rcid <= ta::kRepeatQueues; ++rcid) {
    arrive(write_frame(rcid, 1, static_cast<std::byte>(rcid)));
    EXPECT_EQ(first_byte(), static_cast<std::byte>(rcid));
  }
  EXPECT_EQ(count(b, Counter::kCtpRxNoRecord), 0u);
  arrive(write_frame(ta::kRepeatQueues + 1, 1, std::byte{0xEE}));
  EXPECT_NE(first_byte(), std::byte{0xEE});
  EXPECT_EQ(count(b, Counter::kCtpRxNoRecord), 1u) << "its peer has more than set-up allows";
}

TEST_F(RepeatsTest, a_message_takes_one_receive) {
  for (uint32_t i = 0; i < 2; ++i) b.post_receive(b.receive_indices[0], b.receives[0], 4096 * i, 64);
  EXPECT_EQ(answer_to(send_frame(7, false)), wire::kRspOk);
  EXPECT_EQ(answer_to(send_frame(7, true)), wire::kRspOk);
  arrive(send_frame(7, false));
  EXPECT_EQ(b.poll().size(), 1u);
}

// 7.3.1.1: it was not executed, and so it may be.
TEST_F(RepeatsTest, a_message_that_was_refused_is_executed_when_it_comes_again) {
  EXPECT_EQ(answer_to(send_frame(7, false)), wire::kRspRnr);
  b.post_receive(b.receive_indices[0], b.receives[0], 0, 64);
  EXPECT_EQ(answer_to(send_frame(7, true)), wire::kRspOk);
  EXPECT_EQ(b.poll().size(), 1u);
}

TEST_F(RepeatsTest, an_error_is_given_again) {
  Bytes frame = write_frame(9, 1, std::byte{1}, true);
  store_be32(frame.data() + kBtah + wire::Btah::kSize + 8, 0xFFF00);  // a token id that nobody has
  seal(frame);
  EXPECT_EQ(answer_to(frame), wire::kRspError);
  EXPECT_EQ(answer_to(write_frame(9, 1, std::byte{1}, true)), wire::kRspError) << "that request has failed";
}

TEST_F(RepeatsTest, a_read_is_executed_again) {
  request(WrOp::kRead, 64);
  drain(a);
  deliver(a, b);
  lose(b);
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_TRUE(arrived(64));
  EXPECT_EQ(count(b, Counter::kCtpRxRepeated), 0u);
}

TEST_F(RepeatsTest, an_answer_that_comes_twice_counts_once) {
  request(WrOp::kWrite, 8);
  drain(a);
  deliver(a, b);
  drain(b);
  ASSERT_EQ(b.host.frames.size(), 1u);
  const Bytes answer = b.host.frames.front();
  deliver(b, a);
  a.core->on_packet(now, a.link, answer);
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(count(a, Counter::kTaRxStaleAnswer), 1u);
}

// The network may make more packets of them than the peer may have unanswered.
TEST_F(RepeatsTest, without_a_place_for_its_answer_a_request_is_dropped_and_the_channel_lives) {
  b.host.full = true;
  for (uint32_t i = 0; count(b, Counter::kCtpRxTooMany) == 0 && i < 10 * state(b).config.window_packets; ++i) {
    arrive(write_frame(9, 2 * i, std::byte{1}));  // no two answers become one
  }
  EXPECT_EQ(count(b, Counter::kCtpRxTooMany), 1u);
  EXPECT_TRUE(channel(b).is_up());
  b.host.full = false;
  lose(b);
  EXPECT_EQ(answer_to(write_frame(9, 30000, std::byte{2})), wire::kRspOk);
}

// ---- records ---------------------------------------------------------------------------------------------------

TEST_F(RepeatsTest, a_channel_has_a_record_until_it_ends) {
  EXPECT_EQ(state(a).repeats.in_use(), 1u);
  EXPECT_EQ(state(b).repeats.in_use(), 1u);
  a.core->close(now);
  settle(seconds(1));
  EXPECT_EQ(state(a).repeats.in_use(), 0u);
  EXPECT_EQ(state(b).repeats.in_use(), 0u);
}

TEST_F(RepeatsTest, the_results_of_an_earlier_channel_are_gone_with_it) {
  arrive(write_frame(9, 1, std::byte{1}));
  EXPECT_EQ(repeats(b).results_count, 1u);
  a.core->close(now);
  settle(seconds(1));
  request(WrOp::kWrite, 8);
  settle(seconds(1));
  const auto& channels = state(b).channels;
  const tp::Channel* open = nullptr;
  for (uint32_t i = 1; i <= channels.high_water(); ++i) {
    if (channels[i].is_up() && channels[i].compact) open = &channels[i];
  }
  ASSERT_NE(open, nullptr);
  EXPECT_EQ(state(b).repeats[open->repeats].results_count, 1u) << "those of the WRITE alone";
}

// Another queue with its RCID begins with TASSNs for which the target has results of the first one.
TEST_F(RepeatsTest, a_queue_that_is_destroyed_leaves_its_place_closed) {
  request(WrOp::kWrite, 8);
  exchange();
  ASSERT_EQ(repeats(a).queue_count, 1u);
  EXPECT_FALSE(repeats(a).queues[0].closed);
  ASSERT_EQ(a.core->destroy_jetty(now, a.jetty), Status::kOk);
  EXPECT_TRUE(repeats(a).queues[0].closed);
}

}  // namespace
}  // namespace ub
