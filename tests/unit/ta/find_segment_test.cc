// SPDX-License-Identifier: Apache-2.0
//
// Which segment of which request an answer is for, and which answers are for none (UB Base Specification Rev 2.0,
// 7.3.1.1).
#include "tests/unit/ta/requests.h"

namespace ub::ta {
namespace {

// An answer to this initiator about this TASSN.
wire::Atah about(uint32_t rcid, Tassn tassn) {
  return {.tassn = tassn, .rc_id = rcid};
}

// Another channel than that by which requests left, of another peer.
uint32_t another_channel(Requests& r) {
  const uint32_t other = r.s->channels.alloc();
  r.s->channels[other] = tp::Channel{};
  return other;
}

TEST(FindSegment, among_many_requests_the_one_of_its_tassn) {
  Requests r;
  for (int i = 0; i < 5; ++i) r.post(WrOp::kWrite, i % 2 == 0 ? 8 : 3 * kSegment);
  ASSERT_EQ(r.sent().size(), 9u);
  const uint32_t number_of[] = {0, 1, 1, 1, 2, 3, 3, 3, 4};
  for (uint32_t tassn = 0; tassn < 9; ++tassn) {
    AnsweredSegment a;
    ASSERT_TRUE(find_segment(*r.s, r.channel, about(r.id, Tassn(tassn)), &a)) << tassn;
    EXPECT_EQ(a.queue, r.queue_index);
    EXPECT_EQ(a.number, number_of[tassn]) << tassn;
    EXPECT_EQ(a.wr, &r.state_of(number_of[tassn]));
    EXPECT_EQ(a.segment, tassn - r.state_of(number_of[tassn]).first_tassn.value());
  }
  AnsweredSegment a;
  EXPECT_FALSE(find_segment(*r.s, r.channel, about(r.id, Tassn(9)), &a)) << "never sent";
  EXPECT_FALSE(find_segment(*r.s, r.channel, about(r.id, Tassn(0) - 1), &a));
}

TEST(FindSegment, an_answer_counts_once) {
  Requests r;
  r.post(WrOp::kWrite, 2 * kSegment);
  r.sent();
  AnsweredSegment a;
  r.answer(1);
  EXPECT_FALSE(find_segment(*r.s, r.channel, about(r.id, Tassn(1)), &a)) << "answered ahead of the other";
  r.answer(1);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 1u);
  EXPECT_EQ(r.q().unanswered_segments, 1u);
  r.answer(0);
  r.answer(0);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 2u);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

TEST(FindSegment, an_answer_in_its_turn_counts_once_too) {
  Requests r;
  r.post(WrOp::kWrite, 3 * kSegment);
  r.sent();
  for (int i = 0; i < 2; ++i) r.answer(0);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 1u);
  EXPECT_EQ(r.q().unanswered_segments, 2u);
}

TEST(FindSegment, a_request_that_was_given_up_is_not_answered_any_more) {
  Requests r;
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite);
  r.sent();
  give_up(*r.s, r.queue_index, 1, CrStatus::kAckTimeout);
  r.answer(1);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 1u);
  EXPECT_EQ(r.q().unanswered_segments, 1u);
  EXPECT_EQ(lane_of(*r.s, r.ch()).unanswered, 1u);
}

TEST(FindSegment, by_any_channel_of_the_peer_that_was_asked) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  AnsweredSegment a;
  const uint32_t other = another_channel(r);
  EXPECT_FALSE(find_segment(*r.s, other, about(r.id, Tassn(0)), &a)) << "of another peer";
  r.s->channels[other].peer = r.ch().peer;
  EXPECT_TRUE(find_segment(*r.s, other, about(r.id, Tassn(0)), &a));
  EXPECT_TRUE(find_segment(*r.s, r.channel, about(r.id, Tassn(0)), &a));
}

TEST(FindSegment, rtp_answers_nothing_that_went_by_ctp_and_the_reverse) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  AnsweredSegment a;
  const uint32_t other = another_channel(r);
  r.s->channels[other].peer = r.ch().peer;
  for (const bool compact : {true, false}) {
    r.ch().compact = compact;
    r.s->channels[other].compact = !compact;
    EXPECT_FALSE(find_segment(*r.s, other, about(r.id, Tassn(0)), &a));
    r.s->channels[other].compact = compact;
    EXPECT_TRUE(find_segment(*r.s, other, about(r.id, Tassn(0)), &a));
  }
}

TEST(FindSegment, the_initiator_is_named_by_a_jetty_or_a_jfs) {
  Requests r;
  r.post(WrOp::kWrite);
  r.sent();
  AnsweredSegment a;
  EXPECT_FALSE(find_segment(*r.s, r.channel, about(r.id + 1, Tassn(0)), &a)) << "nobody";
  r.s->ids[r.id].kind = ObjectKind::kJfs;
  EXPECT_TRUE(find_segment(*r.s, r.channel, about(r.id, Tassn(0)), &a));
  EXPECT_TRUE(find_segment(*r.s, r.channel, about(r.id | kIdSpace, Tassn(0)), &a)) << "20 bits count";
  for (ObjectKind kind : {ObjectKind::kJfr, ObjectKind::kGroup, ObjectKind::kNone}) {
    r.s->ids[r.id].kind = kind;
    EXPECT_FALSE(find_segment(*r.s, r.channel, about(r.id, Tassn(0)), &a));
  }
}

TEST(FindSegment, with_nothing_under_way_there_is_none) {
  Requests r;
  AnsweredSegment a;
  EXPECT_FALSE(find_segment(*r.s, r.channel, about(r.id, Tassn(0)), &a));
  r.answer(0);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 1u);
}

}  // namespace
}  // namespace ub::ta
