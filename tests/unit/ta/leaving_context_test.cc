// SPDX-License-Identifier: Apache-2.0
//
// The end of a sequence context at its initiator: with a channel, with its queue, and what may follow it (UB Base
// Specification Rev 2.0, 7.3.3.3).
#include "tests/unit/ta/ordered.h"

namespace ub::ta {
namespace {

TEST(LeavingContext, with_the_channel_its_requests_end_and_another_may_be_asked_for) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kWrite, 8, kSo);
  r.post(WrOp::kWrite, 8, kRo);
  r.sent();
  setup::kill_channel(*r.s, r.channel);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kAckTimeout, CrStatus::kAckTimeout}));
  EXPECT_EQ(r.q().context, 0u);
  EXPECT_TRUE(r.q().rot);
  EXPECT_EQ(r.s->initiator_contexts.in_use(), 0u);
}

TEST(LeavingContext, with_one_of_several_channels_all_its_requests_end_and_no_other_one_is_asked_for) {
  Ordered r({.lanes = 2});
  r.get_context();
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  const uint32_t other = setup::channel_to(*r.s, r.s->targets[r.target].peer, kBulkLane);
  setup::kill_channel(*r.s, other);
  EXPECT_EQ(r.outcomes(), Outcomes{CrStatus::kAckTimeout});
  EXPECT_EQ(r.q().context, 0u);
  EXPECT_FALSE(r.q().rot) << "late answers by the first channel would look like those of a new context";
}

TEST(LeavingContext, the_next_one_begins_with_number_0) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kWrite, 8, kSo);
  r.sent();
  r.answer_number(0);
  reset_queue(*r.s, r.queue_index);
  r.q().state = QueueState::kReady;
  r.get_context();
  ASSERT_NE(r.q().context, 0u);
  r.post(WrOp::kWrite, 8, kSo);
  EXPECT_EQ(r.context_numbers(r.sent()), Numbers{0});
}

TEST(LeavingContext, a_channel_of_another_peer_takes_none_along) {
  Ordered r;
  r.get_context();
  const uint32_t other = r.s->targets[r.add(r.target_config(3))].peer;
  setup::kill_channel(*r.s, setup::channel_to(*r.s, other, kSmallLane));
  EXPECT_NE(r.q().context, 0u);
}

TEST(LeavingContext, a_queue_that_is_reset_asks_for_another_one_only_if_no_answer_may_come) {
  for (const auto order : {kSo, kRo}) {
    for (const bool answered : {true, false}) {
      Ordered r;
      r.get_context();
      r.post(WrOp::kWrite, 8, order);
      r.sent();
      if (answered) r.answer_number(0);
      reset_queue(*r.s, r.queue_index);
      r.q().state = QueueState::kReady;
      r.completions();
      r.post(WrOp::kWrite, 8, kSo);
      EXPECT_EQ(r.header_of(r.sent().at(0)).alloc, answered) << "a late answer would look like one of the new context";
    }
  }
}

// ---- a target that does not answer -----------------------------------------------------------------------------

// The target has acknowledged what was sent, so that its channel lives, and answers nothing.
struct Unanswered : Ordered {
  Unanswered() {
    ch().so_credit = 1;
    get_context();
    post(WrOp::kWrite, 8, kSo);
    sent();
    pass(q().request_timeout);
    timer();
    EXPECT_EQ(outcomes(), Outcomes{CrStatus::kAckTimeout});
    post(WrOp::kWrite, 8, kSo);
    EXPECT_TRUE(sent().empty());
  }
};

TEST(OverdueContext, ends_and_what_waits_in_it_does_too) {
  Unanswered r;
  r.pass(r.q().request_timeout - nanoseconds(1));
  r.timer();
  EXPECT_NE(r.q().context, 0u);
  r.pass(nanoseconds(1));
  EXPECT_EQ(r.q().deadline, r.s->now);
  r.timer();
  EXPECT_EQ(r.outcomes(), Outcomes{CrStatus::kAckTimeout});
  EXPECT_EQ(r.q().context, 0u);
  r.post(WrOp::kWrite, 8, kSo);
  EXPECT_EQ(r.sent().size(), 1u);
}

TEST(OverdueContext, stays_if_the_answer_comes_in_time) {
  Unanswered r;
  r.answer_number(0);
  EXPECT_EQ(r.context_numbers(r.sent()), Numbers{1});
  r.pass(r.q().request_timeout / 2);
  r.answer_number(1);
  r.pass(r.q().request_timeout);
  r.timer();
  EXPECT_EQ(r.outcomes(), Outcomes{kOk});
  EXPECT_NE(r.q().context, 0u);
}

TEST(OverdueContext, is_not_ended_by_a_request_that_has_a_deadline_of_its_own) {
  Unanswered r;
  r.pass(r.q().request_timeout - microseconds(1));
  r.answer_number(0);
  EXPECT_EQ(r.sent().size(), 1u);
  r.pass(microseconds(1));
  r.timer();
  EXPECT_NE(r.q().context, 0u);
  EXPECT_TRUE(r.outcomes().empty());
  r.pass(r.q().request_timeout);
  r.timer();
  EXPECT_EQ(r.outcomes(), Outcomes{CrStatus::kAckTimeout});
  EXPECT_NE(r.q().context, 0u);
  r.pass(r.q().request_timeout);
  r.timer();
  EXPECT_EQ(r.q().context, 0u) << "and then the same holds for that";
}

TEST(OverdueContext, has_the_same_time_for_each_number) {
  Ordered r;
  r.get_context();
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite, 8, kRo);
  r.sent();
  r.pass(r.q().request_timeout);
  r.timer();
  EXPECT_EQ(r.outcomes().size(), 3u);
  r.answer_number(0);
  r.answer_number(2);
  r.pass(r.q().request_timeout);
  r.timer();
  EXPECT_NE(r.q().context, 0u) << "number 0 was answered, and number 1 is next";
  r.pass(r.q().request_timeout);
  r.timer();
  EXPECT_EQ(r.q().context, 0u);
}

// What fills its number has to be answered, too.
TEST(OverdueContext, ends_whatever_its_request_ended_with) {
  Ordered r;
  r.get_context();
  r.post(WrOp::kWrite, 8, kRo);
  r.sent();
  give_up(*r.s, r.queue_index, 1, CrStatus::kLocAccess);
  EXPECT_EQ(r.q().deadline, r.s->now + r.q().request_timeout);
  r.pass(r.q().request_timeout);
  r.timer();
  EXPECT_EQ(r.q().context, 0u);
}

TEST(LeavingContext, the_target_is_told) {
  for (const bool destroyed : {false, true}) {
    Ordered r;
    r.get_context();
    const uint32_t before = r.s->outbox_tail;
    if (destroyed) {
      ASSERT_EQ(destroy_jetty(*r.s, r.id), Status::kOk);
    } else {
      flush_queue(*r.s, r.queue_index);
    }
    ASSERT_EQ(r.s->outbox_tail, before + 1);
    const wire::ControlRecord& record = r.s->outbox[before % kOutboxRing].record;
    EXPECT_EQ(record.type, wire::RecordType::kScFree);
    EXPECT_EQ(record.scid, kScid);
    EXPECT_EQ(r.s->initiator_contexts.in_use(), 0u);
  }
}

}  // namespace
}  // namespace ub::ta
