// SPDX-License-Identifier: Apache-2.0
//
// Requests that are not answered: time, channels that die, queues that are flushed, and what was posted behind them.
#include <algorithm>

#include "lib/transport/ta/queue_front.h"
#include "tests/unit/ta/requests.h"

namespace ub::ta {
namespace {

// ---- time ------------------------------------------------------------------------------------------------------

TEST(Deadline, the_timer_of_the_queue_is_that_of_its_first_request) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  const Instant first = r.s->now + r.q().request_timeout;
  EXPECT_EQ(r.q().deadline, first);
  EXPECT_TRUE(r.s->timers.armed(r.s->timer_of_queue(r.queue_index)));
  r.pass(milliseconds(1));
  r.post(WrOp::kWrite);
  r.sent();
  EXPECT_EQ(r.q().deadline, first);
  EXPECT_EQ(r.state_of(1).deadline, first + milliseconds(1));
}

TEST(Deadline, whose_time_is_over_ends_and_the_others_go_on) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  const Instant first = r.q().deadline;
  r.pass(milliseconds(1));
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite);
  r.sent();
  r.s->timers.cancel(r.s->timer_of_queue(r.queue_index));
  r.s->now = first - nanoseconds(1);
  r.timer();
  EXPECT_TRUE(r.outcomes().empty());
  r.s->timers.cancel(r.s->timer_of_queue(r.queue_index));
  r.s->now = first;
  r.timer();
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kAckTimeout}));
  EXPECT_EQ(r.count(Counter::kTaTimeout), 1u);
  EXPECT_EQ(r.q().deadline, first + milliseconds(1));
  EXPECT_TRUE(r.s->timers.armed(r.s->timer_of_queue(r.queue_index)));
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 2u);
  EXPECT_EQ(r.q().unanswered_segments, 2u);
  r.s->now = first + milliseconds(1);
  r.timer();
  EXPECT_EQ(r.outcomes().size(), 2u);
  EXPECT_TRUE(r.q().deadline.is_never());
}

// Progress moves deadlines, so they come in any order.
TEST(Deadline, each_request_ends_at_its_own) {
  Requests r;
  std::vector<tp::TxMessage> messages;
  for (int i = 0; i < 4; ++i) {
    r.post(WrOp::kWrite);
    messages.push_back(r.sent().at(0));
    r.pass(milliseconds(1));
  }
  for (const size_t progress : {2u, 0u}) {
    r.pass(milliseconds(1));
    on_progress(*r.s, messages[progress]);
  }
  std::vector<uint32_t> ended;
  while (!r.q().deadline.is_never()) {
    r.s->now = r.q().deadline;
    r.timer();
    for (uint32_t n = 0; n < 4; ++n) {
      if (!r.state_of(n).done || std::count(ended.begin(), ended.end(), n) != 0) continue;
      EXPECT_EQ(r.state_of(n).deadline, r.s->now) << n;
      ended.push_back(n);
    }
  }
  EXPECT_EQ(ended, (std::vector<uint32_t>{1, 3, 2, 0}));
}

// The answer may come before the acknowledgement of the request's packets.
TEST(Deadline, what_was_refused_has_none_until_it_goes_again) {
  Requests r;
  r.post(WrOp::kSend);
  const std::vector<tp::TxMessage> messages = r.sent();
  r.refuse(0);
  on_progress(*r.s, messages[0]);
  EXPECT_TRUE(r.state_of(0).deadline.is_never());
  r.s->now = r.q().deadline;
  r.timer();
  ASSERT_TRUE(r.outcomes().empty()) << "nobody is to blame for it";
  ASSERT_EQ(r.sent().size(), 1u);
  r.s->now = r.q().deadline;
  r.timer();
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kAckTimeout})) << "the second time nobody answers";
}

TEST(Deadline, what_is_done_has_none_any_more) {
  Requests r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite);
  r.sent();
  r.answer(1);
  r.s->now = r.q().deadline;
  r.timer();
  EXPECT_EQ(r.count(Counter::kTaTimeout), 1u);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kAckTimeout, kOk}));
}

TEST(Deadline, when_a_request_ends_for_silence_its_channel_ends_with_it) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  tp::packet_sent(*r.s, r.channel, *tp::begin_message(*r.s, r.ch()), r.s->now);
  r.ch().give_up_after = r.q().request_timeout;
  r.s->now = r.q().deadline;
  r.timer();
  EXPECT_FALSE(setup::alive(r.ch()));
}

TEST(Deadline, a_timer_that_ends_no_request_ends_no_channel) {
  Requests r;
  ASSERT_EQ(r.channel, 1u);
  r.post(WrOp::kWrite);
  r.sent();
  tp::packet_sent(*r.s, r.channel, *tp::begin_message(*r.s, r.ch()), r.s->now);
  r.ch().give_up_after = r.q().request_timeout;
  r.s->now = r.q().deadline;
  r.state_of(0).deadline = r.s->now + milliseconds(1);  // it got on meanwhile
  r.timer();
  EXPECT_TRUE(setup::alive(r.ch()));
  EXPECT_TRUE(r.outcomes().empty());
}

TEST(Deadline, the_timer_of_a_queue_that_is_gone_does_nothing) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  r.s->now = r.q().deadline;
  r.q().in_use = false;
  r.timer();
  EXPECT_TRUE(r.outcomes().empty());
}

TEST(Deadline, the_timer_gives_completions_that_wait_another_try) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  r.the_jfc().depth = 1;
  r.the_jfc().reserved = 1;
  r.answer(0);
  EXPECT_TRUE(r.outcomes().empty());
  r.the_jfc().reserved = 0;
  r.timer();
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

// ---- giving up -------------------------------------------------------------------------------------------------

TEST(GiveUp, frees_what_its_unanswered_parts_held) {
  Requests r;
  r.post(WrOp::kRead, 4 * kSegment);
  r.sent();
  r.answer(1);
  r.refuse(2);
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 2u);
  give_up(*r.s, r.queue_index, 0, CrStatus::kAckTimeout);
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 0u);
  EXPECT_EQ(r.q().unanswered_segments, 0u);
  EXPECT_EQ(r.q().unanswered_fenced, 0u);
  EXPECT_EQ(r.q().retries, 0u);
  EXPECT_EQ(r.state_of(0).status, CrStatus::kAckTimeout);
  give_up(*r.s, r.queue_index, 0, CrStatus::kWrFlush);
  EXPECT_EQ(r.state_of(0).status, CrStatus::kAckTimeout) << "once";
}

TEST(GiveUp, a_request_that_failed_already_keeps_its_outcome) {
  Requests r;
  r.post(WrOp::kWrite, 2 * kSegment);
  r.sent();
  r.answer(0, wire::kRspError, wire::kErrRemoteAbort);
  give_up(*r.s, r.queue_index, 0, CrStatus::kAckTimeout);
  EXPECT_EQ(r.state_of(0).status, CrStatus::kRemAccessAbort);
}

TEST(GiveUp, of_a_refused_read_leaves_the_count_of_messages_alone) {
  Requests r;
  r.post(WrOp::kRead);
  r.sent();
  r.refuse(0);
  give_up(*r.s, r.queue_index, 0, CrStatus::kAckTimeout);
  EXPECT_EQ(r.q().receives_refused, 0u);
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 0u);
}

TEST(GiveUp, others_may_go_at_once) {
  Requests r;
  r.post(WrOp::kSend);
  r.post(WrOp::kRead);
  r.sent();
  r.refuse(0, 10);
  r.refuse(1, 3);
  r.timer();
  const Instant before = r.q().no_retry_before;
  give_up(*r.s, r.queue_index, 0, CrStatus::kAckTimeout);
  EXPECT_LT(r.q().no_retry_before, before);
}

// ---- a channel dies --------------------------------------------------------------------------------------------

TEST(DeadChannel, its_requests_end_and_what_is_posted_for_its_peer_too) {
  Requests r;
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.write(WrOp::kWrite);
  r.write(WrOp::kNop);
  setup::kill_channel(*r.s, r.channel);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kAckTimeout, CrStatus::kAckTimeout, CrStatus::kAckTimeout, kOk}));
}

TEST(DeadChannel, what_is_posted_for_another_peer_goes_on) {
  Requests r;
  TargetConfig other = r.target_config(3);
  r.write(WrOp::kWrite).target = r.add(other);
  setup::kill_channel(*r.s, r.channel);
  EXPECT_TRUE(r.outcomes().empty());
  EXPECT_EQ(r.ring[0].flags & kWrDead, 0);
}

TEST(DeadChannel, requests_of_another_channel_go_on) {
  Requests r({.lanes = 2});
  const uint32_t bulk = setup::channel_to(*r.s, r.s->targets[r.target].peer, true);
  r.open(bulk);
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite, 20 * kMtu);
  r.sent();
  r.sent(bulk);
  setup::kill_channel(*r.s, r.channel);
  EXPECT_TRUE(r.state_of(0).done || r.outcomes().size() == 1);
  EXPECT_FALSE(r.state_of(1).done) << "on the other lane";
}

TEST(DeadChannel, requests_to_another_peer_go_on) {
  Requests r;
  const uint32_t other = setup::channel_to(*r.s, r.s->targets[r.add(r.target_config(3))].peer, kSmallLane);
  r.open(other);
  r.post(WrOp::kWrite);
  r.sent();
  setup::kill_channel(*r.s, other);
  EXPECT_TRUE(r.outcomes().empty());
  r.answer(0);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

// The other lane may live.
TEST(DeadChannel, what_is_posted_for_the_other_lane_ends_only_if_there_is_none) {
  for (bool other_lives : {false, true}) {
    for (bool bulk_dies : {false, true}) {
      Requests r({.lanes = 2});
      const uint32_t bulk = setup::channel_to(*r.s, r.s->targets[r.target].peer, true);
      r.open(bulk);
      r.q().state = QueueState::kReset;  // nothing starts
      r.write(WrOp::kWrite, 8);
      r.write(WrOp::kWrite, 20 * kMtu);
      if (!other_lives) r.peer().lanes[bulk_dies ? 0 : 1].channels[0] = 0;
      setup::kill_channel(*r.s, bulk_dies ? bulk : r.channel);
      EXPECT_EQ((r.ring[0].flags & kWrDead) != 0, !bulk_dies || !other_lives);
      EXPECT_EQ((r.ring[1].flags & kWrDead) != 0, bulk_dies || !other_lives);
    }
  }
}

TEST(DeadChannel, a_pinned_queue_is_all_on_one_lane) {
  Requests r({.pinned = true, .lanes = 2});
  const uint32_t bulk = setup::channel_to(*r.s, r.s->targets[r.target].peer, true);
  r.open(bulk);
  r.q().pinned_bulk = true;
  r.q().state = QueueState::kReset;
  r.write(WrOp::kWrite, 8);
  setup::kill_channel(*r.s, bulk);
  EXPECT_NE(r.ring[0].flags & kWrDead, 0);
}

TEST(DeadChannel, elements_that_name_no_target_are_passed) {
  Requests r;
  r.q().state = QueueState::kReset;
  r.write(WrOp::kWrite).target = 0;
  const uint32_t behind = r.s->targets.high_water() + 1;
  r.s->targets[behind].peer = r.s->targets[r.target].peer;  // whoever looks there is found out
  r.write(WrOp::kWrite).target = behind;
  r.write(WrOp::kNop);
  r.write(WrOp::kWrite);
  r.ring[2].op = WrOp::kSkip;
  setup::kill_channel(*r.s, r.channel);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(r.ring[static_cast<size_t>(i)].flags & kWrDead, 0) << i;
  EXPECT_NE(r.ring[3].flags & kWrDead, 0);
}

TEST(DeadChannel, nothing_is_read_behind_an_element_that_cannot_be) {
  Requests r;
  r.q().state = QueueState::kReset;
  r.write(WrOp::kWrite).slots = 0;
  r.write(WrOp::kWrite);
  setup::kill_channel(*r.s, r.channel);
  EXPECT_EQ(r.ring[1].flags & kWrDead, 0);
}

TEST(DeadChannel, queues_of_datagrams_have_nothing_to_do_with_it) {
  Requests r;
  r.q().unreliable = true;
  r.q().state = QueueState::kReset;
  r.write(WrOp::kWrite);
  setup::kill_channel(*r.s, r.channel);
  EXPECT_EQ(r.ring[0].flags & kWrDead, 0);
}

// ---- flushing --------------------------------------------------------------------------------------------------

TEST(Flush, what_was_started_ends_and_what_was_not_is_handed_back) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  r.post(WrOp::kWrite);
  EXPECT_EQ(r.q().waits_for, r.channel);
  flush_queue(*r.s, r.queue_index);
  EXPECT_EQ(r.q().waits_for, 0u);
  EXPECT_TRUE(r.ch().queues.empty());
  EXPECT_EQ(r.q().state, QueueState::kError);
  EXPECT_TRUE(r.q().deadline.is_never());
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kWrFlush, CrStatus::kWrFlushDone}));
  Cqe out[4];
  ASSERT_EQ(take_unhandled(*r.s, r.queue_index, out, 4), 1u);
  EXPECT_EQ(out[0].user_ctx, 2u);
  EXPECT_EQ(out[0].status, CrStatus::kWrUnhandled);
  EXPECT_EQ(out[0].opcode, CrOpcode::kNone);
  EXPECT_EQ(out[0].flags, kCqeJetty);
  EXPECT_EQ(out[0].local_id, r.id);
  EXPECT_EQ(out[0].length, 8u);
  EXPECT_EQ(out[0].user_data, 88u);
  EXPECT_EQ(out[0].immediate + out[0].tpn, 0u);
  EXPECT_EQ(r.indices.consumed.load(), 2u);
  EXPECT_EQ(r.indices.retired.load(), 2u);
  EXPECT_EQ(take_unhandled(*r.s, r.queue_index, out, 4), 0u);
}

TEST(Flush, no_more_is_handed_back_than_there_is_room_for_and_no_fillers) {
  Requests r;
  for (int i = 0; i < 4; ++i) r.write(WrOp::kWrite);
  r.ring[1].op = WrOp::kSkip;
  flush_queue(*r.s, r.queue_index);
  Cqe old{};
  old.user_ctx = 99;
  old.immediate = 5;
  std::vector<Cqe> out(8, old);
  EXPECT_EQ(take_unhandled(*r.s, r.queue_index, out.data(), 2), 2u);
  EXPECT_EQ(out[0].user_ctx, 1u);
  EXPECT_EQ(out[0].immediate, 0u) << "nothing of what lay there";
  EXPECT_EQ(out[1].user_ctx, 3u);
  EXPECT_EQ(out[2].user_ctx, 99u);
  EXPECT_EQ(r.indices.retired.load(), 2u);
  EXPECT_EQ(take_unhandled(*r.s, r.queue_index, out.data(), 8), 1u);
}

TEST(Flush, what_a_jfs_hands_back_names_no_jetty) {
  Requests r;
  r.jetty(r.id).kind = ObjectKind::kJfs;
  r.write(WrOp::kWrite);
  flush_queue(*r.s, r.queue_index);
  Cqe out{};
  ASSERT_EQ(take_unhandled(*r.s, r.queue_index, &out, 1), 1u);
  EXPECT_EQ(out.flags, 0);
}

TEST(Flush, nothing_is_handed_back_before_the_end_was_told_or_in_another_state) {
  Requests r;
  Cqe out[4];
  r.q().state = QueueState::kReset;
  r.write(WrOp::kWrite);
  EXPECT_EQ(take_unhandled(*r.s, r.queue_index, out, 4), 0u);
  r.the_jfc().depth = r.the_jfc().reserved = 1;
  flush_queue(*r.s, r.queue_index);
  EXPECT_EQ(take_unhandled(*r.s, r.queue_index, out, 4), 0u);
  r.the_jfc().reserved = 0;
  retire_requests(*r.s, r.queue_index);
  EXPECT_EQ(take_unhandled(*r.s, r.queue_index, out, 4), 1u);
}

TEST(Flush, an_element_that_cannot_be_ends_what_is_handed_back) {
  Requests r;
  r.write(WrOp::kWrite);
  r.write(WrOp::kWrite).slots = 0;
  flush_queue(*r.s, r.queue_index);
  Cqe out[4];
  EXPECT_EQ(take_unhandled(*r.s, r.queue_index, out, 4), 1u);
}

// ---- reset (8.2.2.3) -------------------------------------------------------------------------------------------

TEST(Reset, ends_what_was_started_and_what_was_posted) {
  Requests r({.mode = Mode::kRc});
  r.post(WrOp::kSend);
  r.sent();
  r.refuse(0);
  r.post(WrOp::kWrite, 2 * kSegment);
  r.post(WrOp::kSend);
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kReset), Status::kOk);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kWrFlush, CrStatus::kWrFlush, CrStatus::kWrFlush}));
  EXPECT_TRUE(r.sent().empty());
  EXPECT_EQ(r.q().waits_for, 0u);
  EXPECT_EQ(r.indices.consumed.load(), r.indices.produced.load());
}

TEST(Reset, ends_what_is_posted_there) {
  for (const Mode mode : {Mode::kRm, Mode::kUm}) {
    Requests r({.mode = mode});
    ASSERT_EQ(set_state(*r.s, r.id, QueueState::kReset), Status::kOk);
    r.post(WrOp::kSend);
    r.write(WrOp::kSend).flags = 0;
    r.ring_bell();
    EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kWrFlush, CrStatus::kWrFlush}));
    EXPECT_EQ(set_state(*r.s, r.id, QueueState::kReady), Status::kOk);
    r.post(WrOp::kSend);
    EXPECT_TRUE(r.outcomes().empty()) << "it goes its way";
    EXPECT_NE(r.q().waits_for, 0u);
  }
}

// Else an application that fills its ring keeps the NIC from all others.
TEST(Reset, ends_no_more_than_so_many_of_what_is_posted_at_one_time) {
  Requests r;
  reset_queue(*r.s, r.queue_index);
  for (uint32_t i = 0; i < kPassedSlots + 8; ++i) r.write(WrOp::kWrite);
  r.ring_bell();
  EXPECT_EQ(r.outcomes(), Outcomes(kPassedSlots, CrStatus::kWrFlush));
  r.pass(nanoseconds(1));
  r.timer();
  EXPECT_EQ(r.outcomes(), Outcomes(8, CrStatus::kWrFlush));
}

TEST(Reset, takes_no_answers_to_what_it_ended) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kReset), Status::kOk);
  r.completions();
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kReady), Status::kOk);
  r.post(WrOp::kWrite);
  EXPECT_EQ(numbers(r.sent()), (Numbers{1}));
  r.answer(0);
  EXPECT_TRUE(r.outcomes().empty());
  r.answer(1);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

TEST(Reset, suspends_nothing) {
  Requests r({.suspends = true});
  r.post(WrOp::kWrite);
  r.sent();
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kReset), Status::kOk);
  r.post(WrOp::kWrite);
  EXPECT_EQ(r.q().state, QueueState::kReset);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kWrFlush, CrStatus::kWrFlush})) << "and no marker";
}

// ---- completions of sends --------------------------------------------------------------------------------------

TEST(SendCompletion, says_which_request_on_which_channel) {
  Requests r;
  r.post(WrOp::kWrite, 24);
  r.sent();
  r.indices.retired.store(255);
  r.answer(0);
  const std::vector<Cqe> done = r.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].user_ctx, 1u);
  EXPECT_EQ(done[0].length, 24u);
  EXPECT_EQ(done[0].tpn, r.ch().tpn);
  EXPECT_EQ(done[0].stamp, 256u);
  EXPECT_EQ(r.indices.retiring.load(), 256u);
  EXPECT_EQ(r.indices.retired.load(), 256u);
  r.post(WrOp::kNop);
  const std::vector<Cqe> nop = r.completions();
  ASSERT_EQ(nop.size(), 1u);
  EXPECT_EQ(nop[0].tpn, 0u) << "it went nowhere";
  EXPECT_EQ(nop[0].stamp, 257u);
}

TEST(SendCompletion, of_requests_that_want_none_is_none_unless_they_fail) {
  Requests r;
  for (int i = 0; i < 2; ++i) r.write(WrOp::kWrite).flags = 0;
  r.ring_bell();
  r.sent();
  r.answer(0);
  EXPECT_TRUE(r.completions().empty());
  EXPECT_EQ(r.indices.consumed.load(), 1u);
  r.answer(1, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRemAccessAbort}));
}

}  // namespace
}  // namespace ub::ta
