// SPDX-License-Identifier: Apache-2.0
//
// What answers mean to requests: success, refusal for want of a receive and the retry after it, errors, and answers
// that nobody waits for (UB Base Specification Rev 2.0, 7.3.1.1).
#include <algorithm>

#include "lib/transport/resource/owner_limits.h"
#include "tests/unit/ta/requests.h"

namespace ub::ta {
namespace {

using Messages = std::vector<tp::TxMessage>;

// ---- success and errors ----------------------------------------------------------------------------------------

TEST(Answer, one_may_stand_for_several) {
  Requests r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(0, wire::kRspOk, 2);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk, kOk}));
}

TEST(Answer, of_several_to_nobody_is_counted_as_several) {
  Requests r;
  wire::Atah a = r.answer_of(0, wire::kRspOk, 2);
  a.rc_id = r.id + 1;
  on_answer(*r.s, r.channel, a);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 3u);
}

TEST(Answer, an_error_stands_for_one_and_its_reason_is_no_number) {
  Requests r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(0, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRemAccessAbort}));
  EXPECT_EQ(r.count(Counter::kTaRxError), 1u);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 0u);
}

TEST(Answer, that_a_request_is_malformed_means_a_receive_that_is_too_small_where_one_was_taken) {
  Requests r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kSend);
  r.post(WrOp::kWriteImm);
  r.sent();
  for (uint32_t tassn = 0; tassn < 3; ++tassn) r.answer(tassn, wire::kRspError, wire::kErrUnsupportedRequest);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRemUnsupported, CrStatus::kRemOperation, CrStatus::kRemOperation}));
}

TEST(Answer, the_first_failure_of_a_request_is_its_outcome) {
  Requests r;
  r.post(WrOp::kWrite, 3 * kSegment);
  r.sent();
  r.answer(1, wire::kRspError, wire::kErrUnsupportedRequest);
  r.answer(0, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_TRUE(r.outcomes().empty()) << "one part is not answered";
  r.answer(2);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRemUnsupported}));
}

TEST(Answer, each_puts_off_the_deadline_and_gives_the_channel_its_turn) {
  Requests r;
  r.post(WrOp::kWrite, 3 * kSegment);
  r.sent();
  const Instant first = r.state_of(0).deadline;
  EXPECT_EQ(first, r.s->now + r.q().request_timeout);
  EXPECT_EQ(r.q().deadline, first);
  r.pass(milliseconds(5));
  EXPECT_EQ(take_active(*r.s), 1u);
  r.answer(0);
  EXPECT_EQ(r.state_of(0).deadline, first + milliseconds(5));
  EXPECT_TRUE(r.ch().on_active_list);
  r.pass(milliseconds(5));
  r.refuse(1);
  EXPECT_EQ(r.state_of(0).deadline, first + milliseconds(10));
}

// Nobody is to blame for a request that waits for its time.
TEST(Refusal, of_all_that_is_under_way_stops_the_deadline_until_it_goes_again) {
  Requests r;
  r.post(WrOp::kWrite, 2 * kSegment);
  r.sent();
  r.answer(0);
  r.refuse(1);
  EXPECT_TRUE(r.state_of(0).deadline.is_never());
  r.s->now = r.state_of(0).retry_at;
  r.timer();
  ASSERT_EQ(r.sent().size(), 1u);
  EXPECT_EQ(r.state_of(0).deadline, r.s->now + r.q().request_timeout);
  EXPECT_LE(r.q().deadline, r.state_of(0).deadline);
}

TEST(Answer, of_the_last_part_before_the_others_completes_nothing) {
  Requests r;
  r.post(WrOp::kWrite, 3 * kSegment);
  r.sent();
  r.answer(2);
  r.answer(1);
  EXPECT_EQ(r.state_of(0).base, 0);
  r.answer(0);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

// Requests have one to three segments each, and answers come in an order in which hardly one is that of the oldest.
TEST(Answer, finds_its_request_wherever_the_numbers_wrap) {
  for (uint32_t first = 0xFFFF - 16; first != 1; first = (first + 1) & 0xFFFF) {
    Requests r;
    r.q().next_tassn = Tassn(first);
    for (uint32_t i = 0; i < 8; ++i) r.post(WrOp::kRead, (1 + i % 3) * kSegment);
    Messages all = r.sent();
    ASSERT_EQ(all.size(), 15u);
    std::reverse(all.begin(), all.end());
    for (size_t i = 0; i < all.size(); ++i) r.answer(all[i * 7 % all.size()].tassn.value());
    EXPECT_EQ(r.outcomes(), Outcomes(8, kOk)) << first;
    EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 0u);
  }
}

// ---- messages --------------------------------------------------------------------------------------------------

TEST(Message, names_its_request_its_segment_and_its_queue) {
  Requests r;
  r.q().next_tassn = Tassn(0xFFFF);
  r.post(WrOp::kWrite, 2 * kSegment);
  const Messages m = r.sent();
  ASSERT_EQ(m.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(m[i].kind, tp::MessageKind::kRequest);
    EXPECT_EQ(m[i].source, r.queue_index);
    EXPECT_EQ(m[i].generation, r.q().generation);
    EXPECT_EQ(m[i].work_request, 0u);
    EXPECT_EQ(m[i].segment, i);
    EXPECT_EQ(m[i].tassn, Tassn(0xFFFF) + i);
    EXPECT_FALSE(m[i].retry);
    EXPECT_EQ(request_of(*r.s, m[i]), &r.state_of(0));
  }
  tp::TxMessage later = m[0];
  ++later.work_request;
  EXPECT_EQ(request_of(*r.s, later), nullptr) << "never started";
  ++later.generation;
  --later.work_request;
  EXPECT_EQ(request_of(*r.s, later), nullptr) << "of another queue";
  r.answer(0xFFFF);
  r.answer(0);
  EXPECT_EQ(request_of(*r.s, m[0]), nullptr) << "done";
  r.post(WrOp::kWrite);
  EXPECT_EQ(request_of(*r.s, m[0]), nullptr) << "and retired";
  r.sent();
  later = m[0];
  later.work_request = 2;
  EXPECT_EQ(request_of(*r.s, later), nullptr) << "the second one is under way, and the third one not started";
}

TEST(Message, of_a_queue_that_is_gone_names_nothing) {
  Requests r;
  r.post(WrOp::kWrite);
  const Messages m = r.sent();
  ASSERT_EQ(destroy_jetty(*r.s, r.id), Status::kOk);
  r.work[0].done = false;
  EXPECT_EQ(request_of(*r.s, m[0]), nullptr);
}

TEST(Message, its_channel_gives_the_peer_as_long_as_the_request) {
  Requests r;
  r.q().request_timeout = r.ch().give_up_after + seconds(1);
  r.post(WrOp::kWrite);
  r.sent();
  EXPECT_EQ(r.ch().give_up_after, r.q().request_timeout);
  r.q().request_timeout = milliseconds(80);
  r.post(WrOp::kWrite);
  r.sent();
  EXPECT_GT(r.ch().give_up_after, seconds(1)) << "the longest one";
}

TEST(Message, each_segment_is_charged_to_the_rate_of_its_owner) {
  Requests r;
  OwnerLimits limits;
  limits.pacer.bytes_per_second = 1'000'000'000;
  r.q().limits = &limits;
  r.post(WrOp::kWrite, 2 * kSegment);
  r.sent();
  EXPECT_EQ(limits.pacer.next, r.s->now + nanoseconds(2 * (kSegment + cc::Pacer::kRequestBytes)));
}

// ---- refusals --------------------------------------------------------------------------------------------------

TEST(Refusal, a_send_goes_again_when_its_time_has_come_with_its_number_and_in_turn) {
  Requests r;
  r.post(WrOp::kSend);
  r.sent();
  r.refuse(0, 3);
  EXPECT_EQ(r.count(Counter::kTaRxRnr), 1u);
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 0u);
  EXPECT_EQ(r.q().receives_refused, 1u);
  const Instant again = r.s->now + wire::rnr_duration(3);
  EXPECT_EQ(r.state_of(0).retry_at, again);
  EXPECT_EQ(r.s->timers.earliest(), again);
  r.s->now = again - nanoseconds(1);
  r.timer();
  EXPECT_TRUE(r.sent().empty());
  EXPECT_FALSE(r.q().held_back) << "it waits for a time, and for no answer";
  r.s->now = again;
  r.timer();
  const Messages m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].tassn, Tassn(0));
  EXPECT_EQ(m[0].work_request, 0u);
  EXPECT_EQ(r.q().receives_refused, 0u);
  EXPECT_EQ(r.q().retries, 0u);
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 1u);
  r.answer(0);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

TEST(Refusal, its_time_comes_though_something_else_waits_to_be_sent) {
  Requests r;
  r.post(WrOp::kRead);
  r.sent();
  r.post(WrOp::kWrite);
  r.refuse(0, 3);
  EXPECT_EQ(r.s->timers.earliest(), r.state_of(0).retry_at);
}

TEST(Refusal, the_same_answer_again_is_stale) {
  Requests r;
  r.post(WrOp::kSend);
  r.sent();
  r.refuse(0);
  r.refuse(0);
  r.answer(0);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 2u);
  EXPECT_TRUE(r.outcomes().empty());
}

TEST(Refusal, later_messages_for_the_same_target_wait_and_those_for_others_do_not) {
  Requests r;
  const uint32_t first = r.target;
  r.post(WrOp::kSend);
  r.sent();
  r.refuse(0);
  r.post(WrOp::kSend);
  EXPECT_TRUE(r.sent().empty());
  Requests o;
  o.post(WrOp::kSend);
  o.sent();
  o.refuse(0);
  o.target = o.add(o.target_config());
  ASSERT_NE(o.target, first);
  o.post(WrOp::kSend);
  EXPECT_EQ(o.sent().size(), 1u) << "another target";
  Requests w;
  w.post(WrOp::kSend);
  w.sent();
  w.refuse(0);
  w.post(WrOp::kWrite);
  EXPECT_EQ(w.sent().size(), 1u) << "takes no receive";
}

TEST(Refusal, of_a_read_for_want_of_a_record_holds_up_no_message) {
  Requests r;
  r.post(WrOp::kRead);
  r.sent();
  r.refuse(0);
  EXPECT_EQ(r.q().receives_refused, 0u);
  r.post(WrOp::kSend);
  EXPECT_EQ(r.sent().size(), 1u);
  r.s->now = r.state_of(0).retry_at;
  r.timer();
  const Messages m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].tassn, Tassn(0));
  EXPECT_TRUE(m[0].retry);
}

TEST(Refusal, of_parts_of_a_read_goes_again_part_by_part) {
  Requests r;
  r.post(WrOp::kRead, 4 * kSegment);
  r.sent();
  r.refuse(2);
  r.refuse(1);
  EXPECT_EQ(r.q().retries, 1u) << "one request";
  r.s->now = r.state_of(0).retry_at;
  r.timer();
  const Messages m = r.sent();
  ASSERT_EQ(m.size(), 2u);
  EXPECT_EQ(m[0].segment, 1);
  EXPECT_EQ(m[1].segment, 2);
  EXPECT_EQ(r.q().retries, 0u);
  for (uint32_t tassn = 0; tassn < 4; ++tassn) r.answer(tassn);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

TEST(Refusal, the_oldest_whose_time_has_come_goes_first) {
  for (const WrOp op : {WrOp::kRead, WrOp::kSend}) {  // in RM messages need not keep their order
    Requests r;
    r.post(op);
    r.post(op);
    r.sent();
    r.refuse(0, 10);
    r.refuse(1, 3);
    r.s->now = r.state_of(1).retry_at;
    r.s->timers.cancel(r.s->timer_of_queue(r.queue_index));
    r.timer();
    Messages m = r.sent();
    ASSERT_EQ(m.size(), 1u);
    EXPECT_EQ(m[0].tassn, Tassn(1));
    EXPECT_EQ(r.q().no_retry_before, r.state_of(0).retry_at);
    EXPECT_EQ(r.s->timers.earliest(), r.state_of(0).retry_at);
    r.s->now = r.state_of(0).retry_at;
    r.ring_bell();
    m = r.sent();
    ASSERT_EQ(m.size(), 1u);
    EXPECT_EQ(m[0].tassn, Tassn(0));
  }
}

TEST(Refusal, the_number_of_tries_may_be_limited) {
  Requests r({.rnr_retry = 2});
  r.post(WrOp::kSend);
  r.sent();
  for (int n = 0; n < 2; ++n) {
    r.refuse(0);
    EXPECT_TRUE(r.outcomes().empty()) << n;
    r.s->now = r.state_of(0).retry_at;
    r.timer();
    ASSERT_EQ(r.sent().size(), 1u);
  }
  r.refuse(0);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRnrRetryExceeded}));
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 0u);
  EXPECT_EQ(r.q().unanswered_segments, 0u);
  EXPECT_EQ(r.q().receives_in_flight, 0u);
}

TEST(Refusal, seven_tries_are_without_end) {
  Requests r({.rnr_retry = 7});
  r.post(WrOp::kSend);
  r.sent();
  for (int n = 0; n < 20; ++n) {
    r.refuse(0);
    r.s->now = r.state_of(0).retry_at;
    r.timer();
    ASSERT_EQ(r.sent().size(), 1u);
  }
  EXPECT_EQ(r.state_of(0).rnr_left, 7);
}

TEST(Refusal, where_receives_have_no_order_each_message_pays_for_itself_and_none_carries_retry) {
  Requests r({.rnr_retry = 1});
  for (int i = 0; i < 2; ++i) r.post(WrOp::kSend);
  r.sent();
  for (uint32_t tassn = 0; tassn < 2; ++tassn) r.refuse(tassn);
  for (uint32_t n = 0; n < 2; ++n) {
    EXPECT_EQ(r.state_of(n).rnr_left, 0) << n;
    EXPECT_FALSE(r.state_of(n).blocks_target) << n;
  }
  EXPECT_FALSE(r.q().retry_next);
}

TEST(Refusal, of_a_read_costs_no_try) {
  Requests r({.rnr_retry = 1});
  r.post(WrOp::kRead);
  r.sent();
  for (int n = 0; n < 5; ++n) {
    r.refuse(0);
    r.s->now = r.state_of(0).retry_at;
    r.timer();
    ASSERT_EQ(r.sent().size(), 1u);
  }
  EXPECT_TRUE(r.outcomes().empty());
}

TEST(Refusal, a_page_fault_is_one_too) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  r.answer(0, wire::kRspPageFault, 3);
  EXPECT_EQ(r.state_of(0).retry_at, r.s->now + wire::rnr_duration(3));
  EXPECT_TRUE(r.outcomes().empty());
}

// 7.3.1.1: the fault has been handled already.
TEST(Refusal, a_page_fault_with_timer_0_goes_again_at_once) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  r.answer(0, wire::kRspPageFault, 0);
  EXPECT_EQ(r.state_of(0).retry_at, r.s->now);
  EXPECT_EQ(r.sent().size(), 1u);
  Requests rnr;
  rnr.post(WrOp::kWrite);
  rnr.sent();
  rnr.answer(0, wire::kRspRnr, 0);
  EXPECT_TRUE(rnr.sent().empty()) << "2 us later";
}

// 7.2.1: where receives have an order, a message that goes again may be one for another receive; a WRITE never is.
TEST(Refusal, of_a_write_in_rc_is_told_when_it_goes_again) {
  Requests r({.mode = Mode::kRc});
  r.post(WrOp::kWrite);
  r.sent();
  r.answer(0, wire::kRspPageFault, 0);
  const Messages again = r.sent();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].retry);
}

// 7.2.1: BTAH says of every one that goes again that it does.
TEST(Refusal, of_messages_in_rm_is_told_by_each_that_goes_again) {
  Requests r;
  for (int i = 0; i < 2; ++i) r.post(WrOp::kSend);
  r.sent();
  for (uint32_t tassn : {0, 1}) r.refuse(tassn);
  r.s->now = r.state_of(1).retry_at;
  r.timer();
  const Messages again = r.sent();
  ASSERT_EQ(again.size(), 2u);
  EXPECT_TRUE(again[0].retry && again[1].retry);
  r.post(WrOp::kSend);
  const Messages fresh = r.sent();
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_FALSE(fresh[0].retry);
}

// 7.2.2: RSPST 101 promises less than 000 about where the bytes are, and means success as well.
TEST(Answer, that_says_received_is_a_success_and_stands_for_several) {
  Requests r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(0, wire::kRspReceived, 2);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk, kOk}));
}

TEST(Refusal, the_last_part_of_a_write_with_immediate_waits_for_refused_messages) {
  Requests r;
  r.post(WrOp::kSend);
  r.sent();
  r.refuse(0, 10);
  r.post(WrOp::kWriteImm, 2 * kMtu);
  const std::vector<tp::TxMessage> body = r.sent();
  ASSERT_EQ(body.size(), 1u) << "a plain WRITE";
  EXPECT_EQ(body[0].segment, 0);
  r.answer(1);
  EXPECT_TRUE(r.sent().empty()) << "the rest may not overtake";
  r.s->now = r.state_of(0).retry_at;
  r.timer();
  EXPECT_EQ(r.sent().size(), 2u) << "behind the message that goes again";
}

// ---- where receives keep their order (RC) ----------------------------------------------------------------------

struct Ordered : Requests {
  explicit Ordered(uint8_t rnr_retry = 7) : Requests({.mode = Mode::kRc, .rnr_retry = rnr_retry}) {}
  Messages retry_at(uint32_t number) {
    s->now = state_of(number).retry_at;
    timer();
    return sent();
  }
};

TEST(OrderedRefusal, the_oldest_alone_goes_again_and_carries_retry) {
  Ordered r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kSend);
  r.sent();
  for (uint32_t tassn = 0; tassn < 3; ++tassn) r.refuse(tassn);
  Messages m = r.retry_at(0);
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].tassn, Tassn(0));
  EXPECT_TRUE(m[0].retry);
  r.answer(0);
  m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].tassn, Tassn(1));
  EXPECT_FALSE(m[0].retry) << "the first one told the target";
  r.answer(1);
  m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].tassn, Tassn(2));
}

TEST(OrderedRefusal, while_another_message_is_under_way_none_goes_again) {
  Ordered r;
  for (int i = 0; i < 2; ++i) r.post(WrOp::kSend);
  r.sent();
  r.refuse(0);
  EXPECT_TRUE(r.retry_at(0).empty()) << "the second may be refused or not";
  r.refuse(1);
  EXPECT_EQ(r.retry_at(1).size(), 1u);
}

TEST(OrderedRefusal, what_takes_no_receive_goes_again_nevertheless) {
  Ordered r;
  r.post(WrOp::kRead);
  r.post(WrOp::kSend);
  r.sent();
  r.refuse(0);
  const Messages m = r.retry_at(0);
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].tassn, Tassn(0));
}

TEST(OrderedRefusal, nothing_new_that_takes_a_receive_goes_out_while_any_waits) {
  Ordered r;
  r.post(WrOp::kSend);
  r.sent();
  r.refuse(0);
  r.target = r.add(r.target_config());
  r.post(WrOp::kSend);
  EXPECT_TRUE(r.sent().empty()) << "not even for another target";
  const Messages m = r.retry_at(0);
  ASSERT_EQ(m.size(), 2u) << "behind the one that carries Retry";
  EXPECT_TRUE(m[0].retry);
  EXPECT_EQ(m[1].tassn, Tassn(1));
}

// The oldest one has told the target that all is well again, so it would take what comes.
TEST(OrderedRefusal, a_new_message_waits_until_all_that_were_refused_have_gone_again) {
  Ordered r;
  for (int i = 0; i < 2; ++i) r.post(WrOp::kSend);
  r.sent();
  for (uint32_t tassn = 0; tassn < 2; ++tassn) r.refuse(tassn);
  ASSERT_EQ(r.retry_at(0).size(), 1u);
  r.post(WrOp::kSend);
  EXPECT_TRUE(r.sent().empty());
  r.answer(0);
  const Messages m = r.sent();
  ASSERT_EQ(m.size(), 2u);
  EXPECT_EQ(m[0].tassn, Tassn(1));
  EXPECT_EQ(m[1].tassn, Tassn(2));
}

TEST(OrderedRefusal, the_oldest_alone_pays) {
  Ordered r(1);
  for (int i = 0; i < 2; ++i) r.post(WrOp::kSend);
  r.sent();
  r.refuse(0);
  r.refuse(1);
  EXPECT_EQ(r.state_of(0).rnr_left, 0);
  EXPECT_EQ(r.state_of(1).rnr_left, 1);
  EXPECT_TRUE(r.state_of(0).blocks_target);
  EXPECT_FALSE(r.state_of(1).blocks_target);
}

TEST(OrderedRefusal, requests_before_it_that_take_none_do_not_make_it_younger) {
  Ordered r(1);
  r.post(WrOp::kRead);
  r.post(WrOp::kSend);
  r.sent();
  r.refuse(1);
  EXPECT_EQ(r.state_of(1).rnr_left, 0);
  EXPECT_TRUE(r.q().retry_next);
}

// Without it the target would refuse whatever comes.
TEST(OrderedRefusal, when_the_oldest_is_given_up_the_next_message_carries_retry) {
  Ordered r;
  r.post(WrOp::kSend);
  r.sent();
  r.refuse(0);
  r.q().retry_next = false;
  give_up(*r.s, r.queue_index, 0, CrStatus::kAckTimeout);
  EXPECT_TRUE(r.q().retry_next);
  EXPECT_EQ(r.q().retries, 0u);
  EXPECT_EQ(r.q().receives_refused, 0u);
  EXPECT_EQ(r.q().receives_in_flight, 0u);
  retire_requests(*r.s, r.queue_index);
  r.post(WrOp::kSend);
  Messages m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_TRUE(m[0].retry);
  r.post(WrOp::kSend);
  m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_FALSE(m[0].retry) << "once";
}

TEST(OrderedRefusal, a_message_with_retry_waits_for_those_that_may_be_refused) {
  Ordered r;
  r.post(WrOp::kSend);
  r.sent();
  r.q().retry_next = true;
  r.post(WrOp::kSend);
  EXPECT_TRUE(r.sent().empty());
  r.answer(0);
  const Messages m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_TRUE(m[0].retry);
}

TEST(OrderedRefusal, a_write_does_not_carry_the_retry_of_messages) {
  Ordered r;
  r.q().retry_next = true;
  r.post(WrOp::kWrite);
  const Messages m = r.sent();
  ASSERT_EQ(m.size(), 1u);
  EXPECT_FALSE(m[0].retry);
  EXPECT_TRUE(r.q().retry_next);
}

}  // namespace
}  // namespace ub::ta
