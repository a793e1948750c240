// SPDX-License-Identifier: Apache-2.0
//
// The initiator's part of ROT: which requests have a number in a sequence context, what waits all the same, and what
// becomes of numbers whose requests end (UB Base Specification Rev 2.0, 7.3.3.3).
#include "lib/transport/ta/target_order.h"

#include "tests/unit/ta/ordered.h"
#include "tests/unit/transport/looking.h"

namespace ub::ta {
namespace {

// ---- asking ----------------------------------------------------------------------------------------------------

TEST(Asking, the_first_strong_write_asks_and_those_behind_it_wait) {
  Ordered r;
  r.post(WrOp::kWrite, 8, kRo);
  EXPECT_FALSE(r.header_of(r.sent().at(0)).alloc);
  r.answer(0);
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite, 8, kSo);
  const auto first = r.sent();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(r.header_of(first[0]).alloc);
  EXPECT_EQ(r.header_of(first[0]).rc_id, r.id);
  r.grant();
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk}));
  EXPECT_EQ(r.q().unanswered_segments, 0u);
  EXPECT_EQ(r.sent().size(), 1u) << "admitted before, it keeps waiting for the one before it";
}

TEST(Asking, with_a_context_nothing_waits) {
  Ordered r;
  r.get_context();
  for (int i = 0; i < 4; ++i) r.post(WrOp::kWrite, 8, i % 2 == 0 ? kSo : kRo);
  const auto all = r.sent();
  EXPECT_EQ(r.context_numbers(all), (Numbers{0, 1, 2, 3}));
  for (const tp::TxMessage& m : all) EXPECT_FALSE(r.header_of(m).alloc);
}

TEST(Asking, who_gets_none_asks_with_the_next_one) {
  Ordered r;
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  r.answer(0);
  EXPECT_EQ(r.q().context, 0u);
  r.post(WrOp::kWrite, 8, kSo);
  EXPECT_TRUE(r.header_of(r.sent().at(0)).alloc);
  r.refuse(1);
  r.pass(milliseconds(1));
  r.timer();
  EXPECT_TRUE(r.header_of(r.sent().at(0)).alloc) << "the same request asks once more";
}

TEST(Asking, nobody_else_does) {
  Ordered relaxed;
  relaxed.post(WrOp::kWrite, 8, kRo);
  EXPECT_FALSE(relaxed.header_of(relaxed.sent().at(0)).alloc);
  for (const auto& [op, length] : {std::pair(WrOp::kSend, 8u), {WrOp::kRead, 8u}, {WrOp::kWrite, kMtu + 1}}) {
    Ordered r;
    r.post(op, length, kSo);
    EXPECT_FALSE(r.header_of(r.sent().at(0)).alloc) << static_cast<int>(op);
  }
  Requests roi({.mode = Mode::kRc});
  roi.post(WrOp::kWrite, 8, kSo);
  EXPECT_FALSE(roi.state_of(0).asks);
  Ordered unheld;
  unheld.ch().so_credit = 0;
  unheld.post(WrOp::kWrite, 8, kSo);
  EXPECT_FALSE(unheld.header_of(unheld.sent().at(0)).alloc) << "a peer that holds none has no contexts";
}

TEST(Asking, an_answer_that_nobody_waits_for_grants_nothing) {
  Ordered r;
  r.post(WrOp::kWrite, 8, kRo);
  r.sent();
  r.grant();
  EXPECT_EQ(r.q().context, 0u);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 1u);
  r.post(WrOp::kWrite, 8, kSo);
  r.answer(0);
  r.sent();
  give_up(*r.s, r.queue_index, 1, CrStatus::kAckTimeout);
  r.grant();
  EXPECT_EQ(r.q().context, 0u);
}

TEST(Asking, nobody_else_and_no_failure_grants_one) {
  Ordered r;
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  wire::Atah grant = r.answer_of(kScid);
  grant.sv = true;
  const uint32_t own = std::exchange(r.channel, r.s->channels.alloc());
  r.ch() = tp::Channel{};
  on_answer(*r.s, r.channel, grant);
  EXPECT_EQ(r.q().context, 0u) << "another peer";
  r.channel = own;
  grant.rspst = wire::kRspRnr;
  on_answer(*r.s, r.channel, grant);
  EXPECT_EQ(r.q().context, 0u) << "a refusal";
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 2u);
  r.refuse(0);
  r.grant();
  EXPECT_EQ(r.q().context, 0u) << "the request was refused, and is not awaited";
  EXPECT_EQ(r.s->initiator_contexts.in_use(), 0u);
}

TEST(Asking, an_answer_that_comes_late_is_not_taken_for_that_to_another_request) {
  Ordered r;
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  give_up(*r.s, r.queue_index, 0, CrStatus::kAckTimeout);
  r.post(WrOp::kWrite, 8, kSo);
  EXPECT_FALSE(r.header_of(r.sent().at(0)).alloc);
  r.grant();
  EXPECT_EQ(r.q().context, 0u);
  EXPECT_EQ(r.q().unanswered_segments, 1u);
}

TEST(Asking, who_was_answered_asks_no_more_though_an_older_request_is_under_way) {
  Ordered r;
  r.post(WrOp::kWrite, 8, kNo);
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  EXPECT_EQ(asking_request(r.q()), &r.state_of(1));
  r.answer(1);
  EXPECT_EQ(asking_request(r.q()), nullptr);
}

// They are counted for as long as the queue lives, and wrap.
TEST(Asking, works_with_any_numbers_of_requests) {
  Ordered r;
  r.q().started_head = r.q().started_tail = 0x7FFFFFFF;
  r.post(WrOp::kWrite, 8, kNo);
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  EXPECT_NE(asking_request(r.q()), nullptr);
  Ordered c;
  c.q().started_head = c.q().started_tail = 0x7FFFFFFE;
  c.get_context();
  for (int i = 0; i < 2; ++i) c.post(WrOp::kWrite, 8, kSo);
  c.sent();
  c.answer_number(0, wire::kRspOk, 1);
  EXPECT_EQ(c.outcomes(), (Outcomes{kOk, kOk}));
}

TEST(Asking, only_queues_of_rc_and_not_of_rol) {
  for (const Mode mode : {Mode::kRm, Mode::kRc}) {
    Requests r({.mode = mode, .pinned = mode == Mode::kRc, .rot = true});
    EXPECT_FALSE(r.q().rot);
  }
}

// ---- numbers ---------------------------------------------------------------------------------------------------

TEST(ContextNumber, only_ordered_writes_reads_and_atomics_of_one_segment_have_one) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kWrite, 8, kNo);
  r.post(WrOp::kWrite, 3 * kMtu, kRo);
  r.post(WrOp::kSend, 8, kRo);
  r.post(WrOp::kFetchAdd, 8, kSo).op = WrOp::kNop;  // takes no place on the channel
  r.post(WrOp::kRead, kSegment, kRo);
  EXPECT_EQ(r.context_numbers(r.sent()), (Numbers{~0u, 0, ~0u}));
}

TEST(ContextNumber, reads_and_atomics_have_one) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kRead, kSegment, kRo);
  r.post(WrOp::kRead, kSegment + 1, kRo);
  r.post(WrOp::kFetchAdd, 8, kSo);
  const auto all = r.sent();
  ASSERT_EQ(all.size(), 3u) << "the strong one waits for the READ that the target does not order";
  EXPECT_EQ(r.context_numbers(all), (Numbers{0, ~0u, ~0u}));
}

TEST(ContextNumber, strong_writes_of_a_whole_packet_and_relaxed_ones_of_a_whole_segment_have_one) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kWrite, kMtu, kSo);
  r.post(WrOp::kWrite, kSegment, kRo);
  EXPECT_EQ(r.context_numbers(r.sent()), (Numbers{0, 1}));
}

TEST(ContextNumber, a_target_of_another_peer_has_none) {
  Ordered r;
  r.get_context();
  r.context().peer += 1;
  r.post(WrOp::kWrite, 8, kRo);
  EXPECT_EQ(r.context_numbers(r.sent()), (Numbers{~0u}));
  r.answer(1);
  r.post(WrOp::kWrite, 8, kSo);
  EXPECT_FALSE(r.header_of(r.sent().at(0)).alloc) << "a queue has one context";
}

TEST(ContextNumber, they_are_within_256_of_the_oldest_unanswered_one) {
  Ordered r({.depth = 512});
  r.ring.resize(512);
  r.q().slots = r.ring.data();
  r.q().slot_mask = 511;
  r.get_context();
  Looking looking;
  r.s->looker.begin(looking);
  uint32_t sent = 0;
  for (uint32_t i = 0; i < 300; ++i) {
    r.post(WrOp::kWrite, 8, kRo);
    sent += static_cast<uint32_t>(r.sent().size());
  }
  EXPECT_EQ(sent, TassnWindow::kSpan);
  EXPECT_EQ(looking.notes.back(), (Note{Stage::kRequestWaits, r.queue_index, uint32_t(RequestWaits::kAnswers)}));
  r.answer_number(1);
  EXPECT_EQ(r.sent().size(), 0u);
  r.answer_number(0);
  EXPECT_EQ(r.sent().size(), 2u);
}

// ---- gates -----------------------------------------------------------------------------------------------------

TEST(RotGate, a_strong_request_waits_for_what_the_target_does_not_order) {
  for (const auto& [op, length] : {std::pair(WrOp::kSend, 8u), {WrOp::kRead, 8u}, {WrOp::kWrite, kSegment + 1}}) {
    Ordered r;
    r.get_context();
    r.post(op, length, kRo);
    r.post(WrOp::kWrite, 8, kSo);
    const auto first = r.sent();
    EXPECT_EQ(first.back().work_request, 1u) << static_cast<int>(op);
    const bool numbered = op == WrOp::kRead;
    for (const tp::TxMessage& m : first) {
      numbered ? r.answer_number(m.tassn.value()) : r.answer(m.tassn.value());
    }
    EXPECT_EQ(numbers(r.sent()), Numbers{2}) << static_cast<int>(op);
  }
}

TEST(RotGate, a_strong_request_that_has_no_number_waits_for_all) {
  for (const auto& [op, length] : {std::pair(WrOp::kSend, 8u), {WrOp::kWrite, kMtu + 1}}) {
    Ordered r;
    r.get_context();
    r.post(WrOp::kWrite, 8, kRo);
    r.post(op, length, kSo);
    EXPECT_EQ(numbers(r.sent()), Numbers{1});
    r.answer_number(0);
    EXPECT_EQ(numbers(r.sent()), Numbers{2}) << static_cast<int>(op);
  }
}

TEST(RotGate, no_more_strong_ones_are_unanswered_than_the_target_holds) {
  Ordered r;
  r.ch().so_credit = 3;
  r.get_context();
  for (int i = 0; i < 5; ++i) r.post(WrOp::kWrite, 8, kSo);
  EXPECT_EQ(r.context_numbers(r.sent()), (Numbers{0, 1, 2}));
  r.post(WrOp::kWrite, 8, kRo);
  EXPECT_EQ(r.context_numbers(r.sent()), (Numbers{5})) << "a relaxed one is not held";
  r.answer_number(5);
  EXPECT_TRUE(r.sent().empty());
  r.answer_number(0, wire::kRspOk, 1);
  EXPECT_EQ(r.context_numbers(r.sent()), (Numbers{3, 4}));
  EXPECT_EQ(r.context().strong_unanswered, 3u);
}

// ---- answers ---------------------------------------------------------------------------------------------------

TEST(ContextAnswer, several_successes_in_one) {
  Ordered r;
  r.get_context();
  for (int i = 0; i < 4; ++i) r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  r.answer_number(0, wire::kRspOk, 3);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk, kOk, kOk}));
  EXPECT_EQ(r.context().answered.first(), Tassn(4));
}

TEST(ContextAnswer, tells_the_numbers_of_a_context_from_others) {
  Ordered r;
  r.post(WrOp::kWrite, 8, kRo);
  r.sent();
  r.answer(0);
  r.get_context();
  r.post(WrOp::kWrite, 8, kNo);  // TASSN 2
  r.post(WrOp::kWrite, 8, kSo);  // number 0 of the context
  r.post(WrOp::kWrite, 8, kSo);
  r.post(WrOp::kWrite, 8, kSo);  // number 2
  r.sent();
  r.completions();
  r.answer(2);
  EXPECT_EQ(r.completions().size(), 1u) << "of the one without order";
  r.answer_number(2);
  EXPECT_EQ(r.completions().size(), 0u);
  EXPECT_EQ(r.context().answered.first(), Tassn(0));
  r.answer_number(0, wire::kRspOk, 1);
  EXPECT_EQ(r.completions().size(), 3u);
}

TEST(ContextAnswer, a_refused_request_goes_again_under_its_number) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kWrite, 8, kSo);
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  r.answer_number(1, wire::kRspRnr, 3);
  EXPECT_EQ(r.context().answered.first(), Tassn(0));
  r.answer_number(0);
  EXPECT_EQ(r.context().answered.first(), Tassn(1));
  r.pass(milliseconds(1));
  r.timer();
  const auto again = r.sent();
  EXPECT_EQ(r.context_numbers(again), Numbers{1});
  EXPECT_TRUE(r.header_of(again.at(0)).retry);
  r.answer_number(1);
  EXPECT_EQ(r.context().strong_unanswered, 0u);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk}));
}

TEST(ContextAnswer, a_failure_is_one) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kWrite, 8, kRo);
  r.sent();
  r.answer_number(0, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(r.outcomes(), Outcomes{CrStatus::kRemAccessAbort});
  EXPECT_EQ(r.context().answered.first(), Tassn(1));
  EXPECT_EQ(r.count(Counter::kTaRxError), 1u);
  r.post(WrOp::kWrite, 8, kRo);
  r.sent();
  r.answer_number(1);
  EXPECT_EQ(r.count(Counter::kTaRxError), 1u) << "a success is none";
}

TEST(ContextAnswer, the_number_of_a_request_that_was_given_up_is_free_when_its_answer_comes) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  give_up(*r.s, r.queue_index, 1, CrStatus::kAckTimeout);
  EXPECT_EQ(r.context().answered.first(), Tassn(0));
  EXPECT_EQ(r.context().strong_unanswered, 1u);
  r.answer_number(0);
  EXPECT_EQ(r.context().answered.first(), Tassn(1));
  EXPECT_EQ(r.context().strong_unanswered, 0u);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 1u);
}

// What was given up keeps its place at the target until that has answered. Nothing else wakes the queue.
TEST(ContextAnswer, to_a_request_that_was_given_up_lets_a_strong_one_go_that_waits_for_its_place) {
  for (const WrOp op : {WrOp::kWrite, WrOp::kRead}) {
    Ordered r;
    r.ch().so_credit = 1;
    r.get_context();
    r.post(op, 8, kSo);
    r.sent();
    r.post(WrOp::kWrite, 8, kSo);
    give_up(*r.s, r.queue_index, 1, CrStatus::kAckTimeout);
    schedule_queue(*r.s, r.queue_index);
    EXPECT_TRUE(r.sent().empty()) << static_cast<int>(op);
    if (op == WrOp::kWrite) {
      r.answer_number(0);
    } else {
      note_response(*r.s, r.channel, r.answer_in_context(0), false);
    }
    EXPECT_EQ(r.context_numbers(r.sent()), Numbers{1}) << static_cast<int>(op);
  }
}

// Number 0 of its context was given up, number 1 is awaited.
struct GivenUp : Ordered {
  GivenUp() {
    get_context();
    post(WrOp::kRead, 8, kRo);
    post(WrOp::kWrite, 8, kRo);
    sent();
    give_up(*s, queue_index, 1, CrStatus::kAckTimeout);
  }
};

TEST(ContextAnswer, the_number_of_a_request_that_was_given_up_and_is_then_refused_is_filled) {
  GivenUp r;
  r.answer_number(0, wire::kRspRnr, 5);
  ASSERT_EQ(r.ch().answers.size(), 1u);
  const tp::TxMessage& m = r.ch().answers.front(r.s->answers);
  ASSERT_TRUE(fills_context(*r.s, m));
  const wire::TaPacket p = filling_write(m);
  EXPECT_EQ(p.req.opcode, wire::TaOpcode::kWrite);
  EXPECT_EQ(p.req.tassn, Tassn(0));
  EXPECT_EQ(p.req.rc_id, kScid);
  EXPECT_EQ(p.ma.length, 0u);
  EXPECT_EQ(p.ma.address, 0u) << "and nothing that was in memory before";
  EXPECT_EQ(r.context().answered.first(), Tassn(0));
  r.answer_number(0);
  EXPECT_EQ(r.context().answered.first(), Tassn(1));
}

TEST(ContextAnswer, what_fills_a_number_is_a_fake_message_of_that_number_which_leaves_at_its_turn) {
  GivenUp r;
  give_up(*r.s, r.queue_index, 2, CrStatus::kAckTimeout);
  std::memset(static_cast<void*>(r.ch().answers.push(r.s->answers)), 0xA5, sizeof(tp::TxMessage));
  r.ch().answers.pop(r.s->answers);  // its place is taken again, with what it holds
  while (!r.s->active.empty()) tp::take_active(*r.s);
  r.answer_number(1, wire::kRspRnr, 5);
  ASSERT_EQ(r.ch().answers.size(), 1u);
  const tp::TxMessage& m = r.ch().answers.front(r.s->answers);
  EXPECT_EQ(m.kind, tp::MessageKind::kFake);
  EXPECT_EQ(m.tassn, Tassn(1));
  EXPECT_EQ(m.packets, 0u);
  EXPECT_FALSE(m.complete || m.vanished || m.retry);
  EXPECT_TRUE(r.ch().on_active_list);
}

// By itself: after an answer, the channel has a turn for other reasons, too.
TEST(ContextAnswer, what_fills_a_number_gives_its_channel_a_turn) {
  GivenUp r;
  while (!r.s->active.empty()) tp::take_active(*r.s);
  fill_number(*r.s, r.queue_index, r.channel, Tassn(0));
  EXPECT_EQ(r.ch().answers.size(), 1u);
  EXPECT_TRUE(r.ch().on_active_list);
}

TEST(ContextAnswer, the_number_of_a_queue_that_is_gone_is_not_filled_in_the_context_of_the_next_one) {
  GivenUp r;
  r.answer_number(0, wire::kRspRnr, 5);
  const tp::TxMessage m = r.ch().answers.front(r.s->answers);
  ASSERT_TRUE(fills_context(*r.s, m));
  ++r.q().generation;  // another queue has the record, and a context of the same name
  EXPECT_FALSE(fills_context(*r.s, m));
}

TEST(ContextAnswer, only_a_request_of_the_context_that_its_queue_has_fills_a_number) {
  GivenUp r;
  r.answer_number(0, wire::kRspRnr, 5);
  tp::TxMessage m = r.ch().answers.front(r.s->answers);
  ASSERT_TRUE(fills_context(*r.s, m));
  tp::TxMessage response = m;
  response.kind = tp::MessageKind::kReadResponse;
  EXPECT_FALSE(fills_context(*r.s, response));
  r.context().scid = kScid + 1;
  EXPECT_FALSE(fills_context(*r.s, m)) << "it was of another one";
  r.context().scid = m.value = 0;
  EXPECT_FALSE(fills_context(*r.s, m)) << "it had no number";
}

TEST(ContextAnswer, without_room_for_what_fills_a_number_its_context_ends) {
  GivenUp r;
  while (room_for_answer(*r.s, r.ch())) r.s->answers.alloc();
  r.answer_number(0, wire::kRspRnr, 5);
  EXPECT_EQ(r.q().context, 0u);
  EXPECT_EQ(r.outcomes(), Outcomes(2, CrStatus::kAckTimeout));
}

TEST(ContextAnswer, of_a_response_counts_once_its_number_is_awaited_and_by_its_peer) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kRead, 8, kRo);
  r.sent();
  wire::Atah response = r.answer_of(0);
  note_response(*r.s, r.channel, response, true);
  EXPECT_EQ(r.context().answered.first(), Tassn(0)) << "of a request that has no number";
  response.rc_type = wire::kRcTypeSequenceContext;
  r.context().peer += 1;
  note_response(*r.s, r.channel, response, true);
  EXPECT_EQ(r.context().answered.first(), Tassn(0)) << "by another peer";
  r.context().peer -= 1;
  note_response(*r.s, r.channel, response, true);
  EXPECT_EQ(r.context().answered.first(), Tassn(1));
}

TEST(ContextAnswer, is_for_a_number_that_was_given_out_and_not_answered) {
  Ordered r;
  r.get_context();
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  r.answer_number(0);
  uint32_t number;
  EXPECT_FALSE(find_in_context(*r.s, r.q(), r.channel, Tassn(0), &number));
  EXPECT_TRUE(find_in_context(*r.s, r.q(), r.channel, Tassn(1), &number));
  EXPECT_EQ(number, 2u);
  EXPECT_FALSE(find_in_context(*r.s, r.q(), r.channel, Tassn(2), &number));
  EXPECT_FALSE(tp::test_bit(r.context().strong, 0)) << "its place is free for a later number, which may not be strong";
  EXPECT_TRUE(tp::test_bit(r.context().strong, 1));
}

TEST(ContextAnswer, a_response_to_a_request_that_was_given_up_is_for_none) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kRead, 8, kRo);
  r.post(WrOp::kRead, 8, kRo);
  r.sent();
  give_up(*r.s, r.queue_index, 2, CrStatus::kAckTimeout);
  const wire::Atah response = r.answer_in_context(1);
  AnsweredSegment a;
  EXPECT_FALSE(find_segment(*r.s, r.channel, response, &a));
}

TEST(ContextAnswer, completes_early_where_the_queue_does) {
  Ordered r({.completes_early = true});
  r.post(WrOp::kWrite, 8, kNo);
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  r.grant();
  EXPECT_EQ(r.completions().size(), 1u) << "of the one that asked";
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  r.answer_number(1);
  EXPECT_EQ(r.completions().size(), 1u);
  r.answer_number(0);
  EXPECT_EQ(r.completions().size(), 1u);
}

TEST(ContextAnswer, to_a_request_that_waits_to_be_sent_is_stale) {
  Ordered r;
  r.ch().so_credit = 1;
  r.get_context();
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite, 8, kSo);
  ASSERT_EQ(r.context_numbers(r.sent()), Numbers{0});
  r.answer_number(1);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 1u);
  EXPECT_TRUE(r.outcomes().empty());
  EXPECT_EQ(r.q().unanswered_segments, 1u);
  r.answer_number(0);
  EXPECT_EQ(r.context_numbers(r.sent()), Numbers{1});
  EXPECT_EQ(r.context().strong_unanswered, 1u);
  r.answer_number(1);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk}));
  EXPECT_EQ(r.context().strong_unanswered, 0u);
}

TEST(ContextAnswer, to_a_request_that_was_refused_and_waits_to_go_again_is_stale) {
  for (const uint8_t rspst : {wire::kRspOk, wire::kRspRnr}) {
    Ordered r;
    r.get_context();
    r.post(WrOp::kRead, 8, kRo);
    r.post(WrOp::kWrite, 8, kRo);
    r.sent();
    r.answer_number(0, wire::kRspRnr, 5);
    r.answer_number(0, rspst);
    EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 1u);
    EXPECT_EQ(r.count(Counter::kTaRxRnr), 1u);
    EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 1u) << "the WRITE";
  }
}

// 7.3.1.1: the page is on its way, or is there by now.
TEST(ContextAnswer, a_page_fault_is_a_refusal) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  r.answer_number(0, wire::kRspPageFault, 0);
  EXPECT_EQ(r.count(Counter::kTaRxError), 0u);
  EXPECT_EQ(r.context().answered.first(), Tassn(0));
  EXPECT_EQ(r.context_numbers(r.sent()), Numbers{0});
  r.answer_number(0);
  EXPECT_EQ(r.outcomes(), Outcomes{kOk});
}

TEST(ContextAnswer, a_response_is_for_the_request_of_its_number_if_that_is_the_peer_who_was_asked) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kRead, 8, kRo);
  r.sent();
  const wire::Atah response = r.answer_in_context(0);
  AnsweredSegment a;
  ASSERT_TRUE(find_segment(*r.s, r.channel, response, &a));
  EXPECT_EQ(a.number, 1u) << "the first request asked for the context";
  EXPECT_EQ(a.segment, 0u);
  r.context().peer += 1;
  EXPECT_FALSE(find_segment(*r.s, r.channel, response, &a));
}

TEST(ContextAnswer, of_a_number_that_nobody_has_is_stale) {
  Ordered r;
  r.answer_number(0);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 1u) << "no context";
  r.get_context();
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  r.answer_number(1);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 2u) << "not given out yet";
  r.context().peer += 1;
  r.answer_number(0);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 3u) << "by another peer";
  r.context().peer -= 1;
  r.answer_number(0);
  r.answer_number(0);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 4u) << "twice";
}

}  // namespace
}  // namespace ub::ta
