// SPDX-License-Identifier: Apache-2.0
//
// Which request may start when: fences, order, and how much may be under way (UB Base Specification Rev 2.0, 7.3).
#include "lib/transport/ta/queue_front.h"
#include "tests/unit/ta/requests.h"

namespace ub::ta {
namespace {

// ---- order and fences ------------------------------------------------------------------------------------------

TEST(Order, a_strong_request_waits_for_all_ordered_ones_and_for_no_others) {
  Requests r;
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  EXPECT_EQ(r.sent().size(), 1u);
  r.answer(0);
  EXPECT_EQ(r.sent().size(), 1u);
  r.post(WrOp::kWrite, 8, 2);
  EXPECT_TRUE(r.sent().empty()) << "the strong one is ordered, too";
  r.answer(1);
  EXPECT_EQ(r.sent().size(), 1u);
  r.answer(2);
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite, 8, 2);
  EXPECT_EQ(r.sent().size(), 2u) << "unordered ones are nobody's business";
}

TEST(Order, a_fenced_request_waits_for_all_reads_and_atomics) {
  Requests r;
  r.post(WrOp::kRead);
  r.post(WrOp::kFetchAdd);
  Wqe& fenced = r.write(WrOp::kWrite);
  fenced.flags |= kWrFence;
  r.ring_bell();
  EXPECT_EQ(r.sent().size(), 2u);
  EXPECT_EQ(r.q().unanswered_fenced, 2u);
  r.answer(0);
  EXPECT_TRUE(r.sent().empty());
  r.answer(1);
  EXPECT_EQ(r.sent().size(), 1u);
  EXPECT_EQ(r.q().unanswered_fenced, 0u);
}

TEST(Order, a_fence_does_not_wait_for_writes) {
  Requests r;
  r.post(WrOp::kWrite);
  r.write(WrOp::kWrite).flags |= kWrFence;
  r.ring_bell();
  EXPECT_EQ(r.sent().size(), 2u);
}

TEST(Order, the_last_part_of_a_write_that_notifies_waits_for_the_answers_of_the_others) {
  Requests r;
  r.post(WrOp::kWriteImm, kSegment + 2 * kMtu);
  std::vector<tp::TxMessage> m = r.sent();
  ASSERT_EQ(m.size(), 2u);
  r.answer(1);
  EXPECT_TRUE(r.sent().empty());
  r.answer(0);
  m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].segment, 2);
  EXPECT_EQ(m[0].tassn, Tassn(2));
  r.answer(2);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

TEST(Order, only_the_last_part_of_a_write_with_immediate_waits_to_take_its_receive) {
  Requests r;
  r.post(WrOp::kSend);
  r.sent();
  r.write(WrOp::kWrite);
  r.write(WrOp::kWriteImm, 2 * kMtu).flags |= kWrCompOrder;
  r.write(WrOp::kWrite);
  r.ring_bell();
  EXPECT_EQ(numbers(r.sent()), (Numbers{1, 2, 3})) << "its other parts go in their turn";
  EXPECT_EQ(r.q().receives_in_flight, 1u) << "that of the first message";
  r.answer(2);
  EXPECT_TRUE(r.sent().empty());
  r.answer(0);
  EXPECT_EQ(numbers(r.sent()), (Numbers{2}));
}

// How many parts it has is known when the MTU is agreed.
TEST(Order, the_gates_are_asked_when_the_channel_is_up) {
  Requests r;
  r.target = r.add(r.target_config(3));
  const uint32_t channel = r.s->peers[r.s->targets[r.target].peer].lanes[0].channels[0];
  r.write(WrOp::kWriteImm, 2 * kMtu).flags |= kWrCompOrder;
  r.write(WrOp::kWrite).place_order = 2;
  r.ring_bell();
  EXPECT_EQ(r.q().waits_for, channel);
  EXPECT_EQ(r.q().started_tail, 0u);
  r.open(channel);
  EXPECT_EQ(numbers(r.sent(channel)), (Numbers{0, 1}));
}

// A queue remembers which of 64 requests wait.
TEST(Order, no_more_than_63_pass_a_request_that_waits) {
  Requests r({.depth = 128});
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  r.sent();
  for (uint32_t tassn = 2; tassn < 70; ++tassn) {
    r.post(WrOp::kWrite);
    r.sent();
    r.answer(tassn);
  }
  EXPECT_EQ(r.q().started_tail, 2 + 63u);
}

TEST(Order, others_pass_a_request_whose_last_part_waits) {
  Requests r;
  r.post(WrOp::kWriteImm, 2 * kMtu);
  r.post(WrOp::kWrite);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 1}));
  r.answer(0);
  const std::vector<tp::TxMessage> m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].segment, 1);
  EXPECT_EQ(r.q().waiting, 0u);
}

// Requests wait at several gates at once: whichever opens, those behind another one are looked at.
TEST(Order, a_last_part_goes_when_it_may_behind_a_strong_request_that_waits) {
  Requests r;
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  r.post(WrOp::kWriteImm, 2 * kMtu);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 2}));
  r.answer(2);
  EXPECT_EQ(numbers(r.sent()), (Numbers{2})) << "its last part";
  EXPECT_TRUE(waits(r.q(), 1));
}

TEST(Order, a_strong_request_goes_when_it_may_behind_a_last_part_that_waits) {
  Requests r;
  r.post(WrOp::kWriteImm, 2 * kMtu);
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 1}));
  r.answer(2);
  EXPECT_EQ(numbers(r.sent()), (Numbers{2}));
  EXPECT_TRUE(waits(r.q(), 0));
}

TEST(Order, a_strong_request_goes_when_it_may_behind_a_message_that_waits) {
  Requests r;
  r.post(WrOp::kSend);
  r.write(WrOp::kSend).flags |= kWrCompOrder;
  r.ring_bell();
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 2}));
  r.answer(2);
  EXPECT_EQ(numbers(r.sent()), (Numbers{3}));
  EXPECT_TRUE(waits(r.q(), 1));
}

TEST(Order, others_pass_a_strong_request_that_waits) {
  for (uint8_t order : {0, 1}) {
    Requests r;
    r.post(WrOp::kWrite, 8, 1);
    r.post(WrOp::kWrite, 8, 2);
    r.post(WrOp::kWrite, 8, order);
    EXPECT_EQ(numbers(r.sent()), (Numbers{0, 2}));
    r.answer(0);
    EXPECT_EQ(numbers(r.sent()), (Numbers{1})) << "it waits for older ones only, not for the one that passed it";
    r.answer(1);
    r.answer(2);
    EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk, kOk}));
  }
}

TEST(Order, strong_requests_go_one_after_the_other) {
  Requests r;
  for (int i = 0; i < 4; ++i) r.post(WrOp::kWrite, 8, 2);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(numbers(r.sent()), (Numbers{i}));
    r.answer(i);
  }
  EXPECT_EQ(r.q().waiting, 0u);
}

TEST(Order, a_strong_request_with_nothing_to_wait_for_goes_in_its_turn) {
  Requests r;
  r.write(WrOp::kWrite);
  r.write(WrOp::kWrite).place_order = 2;
  r.write(WrOp::kWrite);
  r.ring_bell();
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 1, 2}));
}

TEST(Order, a_strong_request_does_not_wait_until_ordered_ones_that_are_done_complete) {
  Requests r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 1}));
  r.answer(1);
  EXPECT_EQ(numbers(r.sent()), (Numbers{2}));
  EXPECT_TRUE(r.outcomes().empty()) << "they complete behind the first one";
}

// It has no packet that could be passed, so those behind it wait, too.
TEST(Order, a_strong_nop_waits_for_ordered_requests) {
  Requests r;
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kNop, 8, 2);
  r.post(WrOp::kWrite);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0}));
  r.answer(0);
  EXPECT_EQ(numbers(r.sent()), (Numbers{2}));
}

// A request has executed when all of it has.
TEST(Order, a_strong_request_waits_for_every_segment_of_an_ordered_one) {
  Requests r;
  r.post(WrOp::kWrite, 3 * kSegment, 1);
  r.post(WrOp::kWrite, 8, 2);
  EXPECT_EQ(r.sent().size(), 3u);
  r.answer(0);
  r.answer(2);
  EXPECT_TRUE(r.sent().empty());
  r.answer(1);
  EXPECT_EQ(numbers(r.sent()), (Numbers{1}));
}

TEST(Order, a_strong_request_goes_when_the_one_before_it_fails_or_is_given_up) {
  for (bool answered : {false, true}) {
    Requests r;
    r.post(WrOp::kWrite, 8, 1);
    r.post(WrOp::kWrite, 8, 2);
    r.sent();
    if (answered) {
      r.answer(0, wire::kRspError, wire::kErrRemoteAbort);
    } else {
      r.pass(r.q().request_timeout);
      r.timer();
    }
    EXPECT_EQ(numbers(r.sent()), (Numbers{1}));
  }
}

TEST(Order, a_refused_request_keeps_a_strong_one_back) {
  Requests r;
  r.post(WrOp::kRead, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  r.sent();
  r.refuse(0);
  EXPECT_TRUE(r.sent().empty());
  r.s->now = r.state_of(0).retry_at;
  r.timer();
  EXPECT_EQ(numbers(r.sent()), (Numbers{0}));
  r.answer(0);
  EXPECT_EQ(numbers(r.sent()), (Numbers{1}));
}

TEST(Order, a_request_that_waits_has_no_deadline) {
  Requests r;
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  r.sent();
  EXPECT_TRUE(r.state_of(1).deadline.is_never());
  r.pass(r.q().request_timeout - milliseconds(1));
  r.answer(0);
  r.sent();
  EXPECT_EQ(r.state_of(1).deadline, r.s->now + r.q().request_timeout);
}

TEST(Order, a_request_that_waits_is_flushed_with_the_others) {
  Requests r;
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  r.post(WrOp::kWrite);
  r.sent();
  flush_queue(*r.s, r.queue_index);
  constexpr CrStatus kFlush = CrStatus::kWrFlush;
  EXPECT_EQ(r.outcomes(), (Outcomes{kFlush, kFlush, kFlush, CrStatus::kWrFlushDone}));
  EXPECT_EQ(r.q().waiting, 0u);
}

TEST(Order, a_fence_waits_for_a_read_that_waits_itself) {
  Requests r;
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kRead, 8, 2);
  r.write(WrOp::kWrite).flags |= kWrFence;
  r.ring_bell();
  EXPECT_EQ(numbers(r.sent()), (Numbers{0}));
  r.answer(0);
  EXPECT_EQ(numbers(r.sent()), (Numbers{1}));
  r.answer(1);
  EXPECT_EQ(numbers(r.sent()), (Numbers{2}));
}

TEST(Order, messages_that_take_receives_do_not_pass_each_other) {
  Requests r;
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kSend, 8, 2);
  r.post(WrOp::kSend);
  r.post(WrOp::kWrite);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 3}));
  r.answer(0);
  EXPECT_EQ(numbers(r.sent()), (Numbers{1, 2}));
}

TEST(Order, a_strong_write_that_waits_keeps_no_message_back) {
  Requests r;
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  r.post(WrOp::kSend);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 2}));
}

// In RC the target refuses all behind one that it refused.
TEST(Order, in_rc_messages_with_ordered_completion_need_not_wait_for_each_other) {
  Requests r({.mode = Mode::kRc});
  for (int i = 0; i < 2; ++i) r.write(WrOp::kSend).flags |= kWrCompOrder;
  r.ring_bell();
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 1}));
}

// In RM the target does not refuse those behind one that it refused.
TEST(Order, in_rm_a_message_with_ordered_completion_waits_for_those_before_it) {
  Requests r;
  r.post(WrOp::kSend);
  r.write(WrOp::kSend).flags |= kWrCompOrder;
  r.ring_bell();
  EXPECT_EQ(numbers(r.sent()), (Numbers{0}));
  r.refuse(0);
  EXPECT_TRUE(r.sent().empty());
  r.s->now = r.state_of(0).retry_at;
  r.timer();
  EXPECT_EQ(numbers(r.sent()), (Numbers{0}));
  r.answer(0);
  EXPECT_EQ(numbers(r.sent()), (Numbers{1}));
}

TEST(Order, what_may_go_again_finds_its_channel_while_the_queue_waits_for_another) {
  Requests r({.lanes = 2});
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0}));
  r.post(WrOp::kWrite, 20 * kMtu);  // for the bulk lane, whose channel is not up
  const uint32_t bulk = r.peer().lanes[1].channels[0];
  ASSERT_NE(bulk, 0u);
  EXPECT_EQ(r.q().waits_for, bulk);
  r.answer(0);
  EXPECT_EQ(r.q().waits_for, r.channel);
  EXPECT_EQ(numbers(r.sent()), (Numbers{1}));
  r.open(bulk);
  EXPECT_EQ(numbers(r.sent(bulk)), (Numbers{2}));
}

TEST(Order, a_request_that_failed_is_not_cut_any_further) {
  Requests r;
  r.post(WrOp::kWriteImm, 2 * kMtu);
  r.post(WrOp::kWrite);
  r.sent();
  r.answer(0, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_TRUE(r.sent().empty());
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRemAccessAbort}));
  EXPECT_EQ(r.q().waiting, 0u);
}

TEST(Order, a_long_request_that_failed_is_not_cut_any_further_and_those_behind_it_go) {
  Requests r;
  r.post(WrOp::kWrite, 66 * kSegment);
  EXPECT_EQ(r.sent().size(), 64u);
  r.answer(0, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_TRUE(r.sent().empty());
  r.post(WrOp::kWrite);
  EXPECT_EQ(numbers(r.sent()), (Numbers{1}));
}

// ---- how much --------------------------------------------------------------------------------------------------

TEST(Amount, of_one_request_64_segments_are_under_way) {
  Requests r;
  r.post(WrOp::kWrite, 66 * kSegment);
  EXPECT_EQ(r.sent().size(), 64u);
  r.answer(1);
  EXPECT_TRUE(r.sent().empty()) << "the oldest one is not answered";
  r.answer(0);
  EXPECT_EQ(r.sent().size(), 2u);
  for (uint32_t tassn = 2; tassn < 66; ++tassn) r.answer(tassn);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
  EXPECT_EQ(r.q().unanswered_segments, 0u);
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 0u);
}

TEST(Amount, of_one_queue_and_one_channel_so_many_are_under_way) {
  Requests r;
  r.q().unanswered_segments = kQueueSegmentsInFlight;
  r.post(WrOp::kWrite);
  EXPECT_TRUE(r.sent().empty());
  r.q().unanswered_segments = kQueueSegmentsInFlight - 1;
  r.ring_bell();
  lane_of(*r.s, r.ch()).unanswered = kLaneSegmentsInFlight;
  EXPECT_TRUE(r.sent().empty());
  lane_of(*r.s, r.ch()).unanswered = kLaneSegmentsInFlight - 1;
  EXPECT_EQ(r.sent().size(), 1u);
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, kLaneSegmentsInFlight);
}

TEST(Amount, segments_of_a_long_request_count_for_its_queue) {
  Requests r;
  r.q().unanswered_segments = kQueueSegmentsInFlight - 3;
  r.post(WrOp::kWrite, 5 * kSegment);
  EXPECT_EQ(r.sent().size(), 3u);
}

TEST(Amount, behind_a_request_that_is_not_cut_to_its_end_nothing_begins) {
  Requests r;
  r.post(WrOp::kWrite, 66 * kSegment);
  r.post(WrOp::kWrite);
  EXPECT_EQ(numbers(r.sent()), Numbers(64, 0));
  r.answer(0);
  r.answer(1);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0, 0, 1}));
}

// TASSNs are compared in half of their circle.
TEST(Amount, numbers_are_not_used_again_while_old_ones_are_unanswered) {
  Requests r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite);
  r.sent();
  r.answer(1);
  r.q().next_tassn = Tassn(0) + (Tassn::kHalf - 1);
  r.post(WrOp::kWrite);
  EXPECT_EQ(r.sent().size(), 1u);
  r.post(WrOp::kWrite);
  EXPECT_TRUE(r.sent().empty());
  r.answer(0);
  EXPECT_EQ(r.sent().size(), 1u);
}

// The half begins with the oldest segment that is not answered, wherever its request began.
TEST(Amount, answered_segments_of_the_oldest_request_make_room_for_numbers) {
  Requests r;
  r.post(WrOp::kWrite, 4 * kSegment);
  EXPECT_EQ(r.sent().size(), 4u);
  r.answer(0);
  r.answer(1);
  r.q().next_tassn = Tassn(0) + (Tassn::kHalf + 1);
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite);
  EXPECT_EQ(numbers(r.sent()), (Numbers{1}));
  r.answer(2);
  EXPECT_EQ(numbers(r.sent()), (Numbers{2}));
}

TEST(Amount, waiting_for_answers_is_told) {
  Requests r;
  EXPECT_FALSE(r.q().held_back);
  r.post(WrOp::kWrite, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  r.sent();
  EXPECT_TRUE(r.q().held_back);
  EXPECT_EQ(r.s->held_back, 1u);
  r.answer(0);
  EXPECT_FALSE(r.q().held_back);
  r.sent();
  EXPECT_FALSE(r.q().held_back) << "nothing more to start";
  r.answer(1);
  EXPECT_EQ(r.s->held_back, 0u);
}

// Whoever sleeps would be rung for every packet of other queues (docs/architecture.md).
TEST(Amount, what_waits_for_the_time_of_a_refused_request_waits_for_no_answer) {
  Requests r;
  r.post(WrOp::kSend, 8, 1);
  r.post(WrOp::kWrite, 8, 2);
  r.sent();
  EXPECT_TRUE(r.q().held_back);
  r.refuse(0);
  EXPECT_FALSE(r.q().held_back);
}

// Its body takes no receive. If it counted, its queue would seem to have messages under way for ever.
TEST(Amount, of_refused_messages_leaves_out_the_body_of_a_write_that_notifies) {
  Requests r;
  r.post(WrOp::kWriteImm, 2 * kMtu);
  ASSERT_EQ(r.sent().size(), 1u);
  for (const uint32_t segment : {0u, 1u}) {
    r.refuse(segment);
    EXPECT_EQ(r.q().receives_refused, segment);
    r.pass(seconds(1));
    r.timer();
    ASSERT_EQ(r.sent().size(), 1u);
    EXPECT_EQ(r.q().receives_refused, 0u);
    r.answer(segment);
    EXPECT_EQ(r.sent().size(), 1 - segment) << "the last one";
  }
  EXPECT_EQ(r.q().receives_in_flight, 0u);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

TEST(Amount, a_half_cut_request_that_waits_for_answers_is_told) {
  Requests r;
  r.post(WrOp::kWriteImm, 2 * kMtu);
  r.sent();
  EXPECT_TRUE(r.q().held_back);
  r.answer(0);
  r.sent();
  EXPECT_FALSE(r.q().held_back);
}

TEST(Amount, a_half_cut_request_that_failed_waits_for_nothing) {
  Requests r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kWriteImm, 2 * kMtu);
  r.sent();
  EXPECT_TRUE(r.q().held_back);
  r.answer(1, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_TRUE(r.state_of(1).done);
  EXPECT_FALSE(r.q().held_back);
}

// ---- what needs no packet --------------------------------------------------------------------------------------

TEST(NoPacket, results_need_memory_that_is_registered) {
  Requests r;
  r.write(WrOp::kRead).sge.segment = 0;
  r.write(WrOp::kFetchAdd).sge.address += r.memory.size();
  r.ring_bell();
  EXPECT_TRUE(r.sent().empty());
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kLocAccess, CrStatus::kLocAccess}));
  Wqe& nothing = r.write(WrOp::kRead, 0);
  nothing.sge = {};
  r.ring_bell();
  EXPECT_EQ(r.sent().size(), 1u) << "no bytes need no memory";
  r.write(WrOp::kWrite).sge.segment = 0;
  r.ring_bell();
  EXPECT_EQ(r.sent().size(), 1u) << "that is found out when its packet is built";
}

TEST(NoPacket, one_byte_needs_memory) {
  Requests r;
  r.write(WrOp::kRead, 1).sge = {r.address(), 1, 0};
  r.ring_bell();
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kLocAccess}));
}

TEST(NoPacket, a_nop_and_a_request_without_a_target_complete_in_their_turn) {
  Requests r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kNop);
  r.write(WrOp::kWrite).target = 0;
  r.ring_bell();
  EXPECT_EQ(r.sent().size(), 1u);
  EXPECT_TRUE(r.outcomes().empty());
  r.answer(0);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk, CrStatus::kLocOperation}));
}

// The numbers of the initiator are of what it sends (7.4).
TEST(NoPacket, what_needs_none_uses_up_no_number) {
  Requests r;
  r.post(WrOp::kNop);
  r.post(WrOp::kWrite);
  const std::vector<tp::TxMessage> m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].tassn, Tassn(0));
}

// It was lined up for a channel, and then its memory was deregistered.
TEST(NoPacket, what_turns_out_at_its_turn_to_need_none_completes_at_once) {
  Requests r;
  r.post(WrOp::kRead);
  ASSERT_EQ(r.q().waits_for, r.channel);
  r.ring[0].sge.segment = 0;
  EXPECT_TRUE(r.sent().empty());
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kLocAccess}));
}

// Else an application that fills its ring with them keeps the NIC from all others.
TEST(NoPacket, no_more_than_so_many_complete_at_one_time) {
  const auto ends_so_many = [](void (*change)(Wqe&, uint32_t unreachable)) {
    Requests r({.channels = 1});
    const uint32_t unreachable = r.add(r.target_config(3));  // there is no room for its channel
    for (uint32_t i = 0; i < kPassedSlots + 8; ++i) change(r.write(WrOp::kWrite), unreachable);
    r.ring_bell();
    EXPECT_EQ(r.outcomes().size(), kPassedSlots);
    EXPECT_EQ(r.s->timers.earliest(), r.s->now + nanoseconds(1)) << "the timer brings us back";
    r.pass(nanoseconds(1));
    r.timer();
    EXPECT_EQ(r.outcomes().size(), 8u);
  };
  ends_so_many([](Wqe& w, uint32_t) { w.op = WrOp::kNop; });
  ends_so_many([](Wqe& w, uint32_t) { w.op = WrOp::kRead, w.sge.segment = 0; });
  ends_so_many([](Wqe& w, uint32_t) { w.target = 0; });
  ends_so_many([](Wqe& w, uint32_t unreachable) { w.target = unreachable; });
}

TEST(NoPacket, without_room_for_a_channel_a_request_ends_as_if_the_peer_were_dead) {
  Requests r({.channels = 1});
  TargetConfig other = r.target_config(3);
  r.target = r.add(other);
  r.post(WrOp::kWrite);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kAckTimeout}));
}

// The numbers of a request are free for others when it has retired, which waits for room in its JFC.
TEST(WaitingForNumbers, ends_when_a_full_jfc_gets_room) {
  Requests r;
  const uint32_t depth = std::exchange(r.the_jfc().depth, 0);
  r.post(WrOp::kWrite);
  r.sent();
  r.answer(0);
  r.q().next_tassn += Tassn::kHalf;
  r.post(WrOp::kWrite);
  EXPECT_TRUE(r.sent().empty());
  r.the_jfc().depth = depth;
  resume_jfc(*r.s, r.jfc);
  EXPECT_EQ(r.sent().size(), 1u);
}

}  // namespace
}  // namespace ub::ta
