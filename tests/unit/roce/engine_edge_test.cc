// SPDX-License-Identifier: Apache-2.0
// Where two things meet: a gap and its repair in one burst, a READ and what follows it, memory that answers when the
// queue pair has moved on, a pool that is used up.
#include "lib/transport/resource/owner_limits.h"
#include "tests/unit/roce/engine_pair.h"

namespace ub::roce {
namespace {

constexpr CrStatus kOk = CrStatus::kSuccess;

class EdgeTest : public EnginePair {
 protected:
  static void expect_status(const std::vector<Cqe>& cqes, const std::vector<CrStatus>& wanted) {
    ASSERT_EQ(cqes.size(), wanted.size());
    for (size_t i = 0; i < cqes.size(); ++i) EXPECT_EQ(cqes[i].status, wanted[i]) << i;
  }
  static Status to_state(TestQp& q, Instant now, QpState state, QpAttributes a = {}, uint32_t mask = 0) {
    a.qp_state = state;
    return q.node.roce().modify_qp(now, q.qpn, a, mask);
  }
  /// A packet from node a to node b, right in everything but what the test says.
  static Bytes request_for(const TestQp& y, Opcode op, Psn psn, size_t bytes = 0) {
    Packet p{};
    p.bth.opcode = op;
    p.bth.dest_qp = y.qpn;
    p.bth.psn = psn;
    p.reth = {TestQp::kAddress, y.rkey, static_cast<uint32_t>(bytes)};
    p.atomic = {TestQp::kAddress, y.rkey, 1, 0};
    return frame_of(packet_bytes(p, Bytes(bytes)));
  }
};

// ---- order -----------------------------------------------------------------------------------------------------

TEST_F(EdgeTest, what_follows_a_read_is_acknowledged_too) {
  TestQp x(a), y(b);
  connect(x, y);
  y.post_receive(0, 100);
  x.post(WrOp::kRead, 0, 3000, y.rkey);
  x.post(WrOp::kSend, 0, 100);
  x.ring(now);
  exchange();  // no time passes
  expect_status(x.poll(), {kOk, kOk});
}

TEST_F(EdgeTest, a_gap_that_closes_before_it_is_reported_still_tells_what_was_dropped) {
  TestQp x(a), y(b);
  connect(x, y);
  fill(x, 1);
  x.post(WrOp::kWrite, 0, 3000, y.rkey);
  x.ring(now);
  drain(a);
  ASSERT_EQ(a.host.frames.size(), 3u);
  std::swap(a.host.frames[1], a.host.frames[2]);
  exchange();  // no time passes
  expect_status(x.poll(), {kOk});
  EXPECT_TRUE(same(y, 0, x, 0, 3000));
}

TEST_F(EdgeTest, credits_are_receives_not_slots) {
  TestQp x(a), y(b, {.receive_slots = 4});
  connect(x, y);
  for (int slot = 0; slot < 8; ++slot) y.post_receive(0, 100);
  x.post(WrOp::kWrite, 0, 100, y.rkey);
  x.ring(now);
  drain(a);
  deliver(a, b);
  const auto answers = sent_by(b);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].aeth.syndrome, Syndrome::ack(credit_code(2)));
}

TEST_F(EdgeTest, a_receive_posted_in_error_is_announced_and_comes_back) {
  TestQp x(a), y(b);
  connect(x, y);
  x.post(WrOp::kWrite, 0, 100, y.rkey ^ 1);
  x.ring(now);
  EXPECT_EQ(x.rq.armed.load(), 0u);
  exchange();
  expect_status(x.poll(), {CrStatus::kRemAccessAbort});
  EXPECT_NE(x.rq.armed.load(), 0u);  // who posts sees it, also before an event has told of the error
  x.post_receive(0, 100);
  x.ring(now);
  expect_status(x.poll(), {CrStatus::kWrFlush});
  ASSERT_EQ(to_state(x, now, QpState::kReset), Status::kOk);
  EXPECT_EQ(x.rq.armed.load(), 0u);
}

// ---- memory that answers later -----------------------------------------------------------------------------------

TEST_F(EdgeTest, a_response_that_cannot_be_placed_fails_its_request_in_error_too) {
  a.host.slow = true;
  hold_copies = true;
  TestQp x(a), y(b);
  connect(x, y);
  x.post(WrOp::kRead, 0, 100, y.rkey);
  x.post(WrOp::kRead, 100, 100, y.rkey);
  x.ring(now);
  exchange();
  ASSERT_EQ(a.host.pending_copies(), 2u);
  EXPECT_EQ(to_state(x, now, QpState::kError), Status::kOk);
  a.host.lost = true;
  a.host.finish_copies(*a.core, now);
  expect_status(x.poll(), {CrStatus::kLocAccess, CrStatus::kWrFlush});
}

// The peer refuses the last request while the answer to the first one is being placed, which then fails.
TEST_F(EdgeTest, a_request_that_fails_late_flushes_what_had_failed_behind_it) {
  a.host.slow = true;
  hold_copies = true;
  TestQp x(a), y(b);
  connect(x, y);
  x.post(WrOp::kRead, 0, 100, y.rkey);
  x.post(WrOp::kWrite, 0, 0, y.rkey);
  x.post(WrOp::kRead, 0, 100, y.rkey ^ 1);
  x.ring(now);
  exchange();
  ASSERT_EQ(a.host.pending_copies(), 1u);
  expect_status(x.poll(), {});
  a.host.lost = true;
  a.host.finish_copies(*a.core, now);
  expect_status(x.poll(), {CrStatus::kLocAccess, CrStatus::kWrFlush, CrStatus::kWrFlush});
}

TEST_F(EdgeTest, read_slots_stay_while_an_atomic_needs_one) {
  b.host.slow = true;
  hold_copies = true;
  TestQp x(a), y(b);
  connect(x, y);
  x.post(WrOp::kFetchAdd, 0, 8, y.rkey).immediate = 1;
  x.ring(now);
  exchange();
  ASSERT_EQ(b.host.pending_copies(), 1u);
  ASSERT_EQ(to_state(y, now, QpState::kSqd), Status::kOk);
  EXPECT_EQ(to_state(y, now, QpState::kSqd, {}, kQpReadsServed), Status::kBusy);
  hold_copies = false;
  exchange();
  expect_status(x.poll(), {kOk});
  EXPECT_EQ(to_state(y, now, QpState::kSqd, {}, kQpReadsServed), Status::kOk);
}

TEST_F(EdgeTest, read_slots_stay_until_their_answers_have_left) {
  TestQp x(a), y(b);
  connect(x, y);
  fill(y, 3);
  x.post(WrOp::kRead, 0, 3000, y.rkey);
  x.ring(now);
  drain(a);
  deliver(a, b);
  ASSERT_EQ(to_state(y, now, QpState::kSqd), Status::kOk);
  QpAttributes one;
  one.max_dest_rd_atomic = 1;
  EXPECT_EQ(to_state(y, now, QpState::kSqd, one, kQpReadsServed), Status::kBusy);
  exchange();
  expect_status(x.poll(), {kOk});
  EXPECT_TRUE(same(x, 0, y, 0, 3000));
  EXPECT_EQ(to_state(y, now, QpState::kSqd, one, kQpReadsServed), Status::kOk);
}

TEST_F(EdgeTest, a_request_that_waits_for_its_rate_does_not_put_off_a_retransmission) {
  OwnerLimits limits;
  limits.pacer.bytes_per_second = 100'000;
  TestQp x(a, {.limits = &limits}), y(b);
  connect(x, y);
  bool lost = false;
  filter = [&](TestNode& from, Bytes&) { return &from != &a || std::exchange(lost, true); };
  x.post(WrOp::kWrite, 0, 1000, y.rkey);
  x.post(WrOp::kWrite, 0, 1000, y.rkey);
  x.ring(now);
  exchange();
  const Instant second = limits.pacer.ready_at();
  ASSERT_GT(second, now + milliseconds(5));
  EXPECT_LE(a.core->next_deadline(), now + milliseconds(2));
  settle();
  expect_status(x.poll(), {kOk, kOk});
  EXPECT_GE(now, second);
}

TEST_F(EdgeTest, a_frame_that_waits_for_memory_does_not_outlive_its_path) {
  a.host.slow = true;
  hold_copies = true;
  TestQp x(a), y(b);
  connect(x, y);
  x.post(WrOp::kWrite, 0, 1, y.rkey);
  x.ring(now);
  drain(a);
  ASSERT_EQ(a.host.pending_copies(), 1u);
  ASSERT_EQ(to_state(x, now, QpState::kSqd), Status::kOk);
  QpAttributes other;
  other.ah_attr = {a.link, wire::v6_address(1), wire::v6_address(2), 0};
  ASSERT_EQ(to_state(x, now, QpState::kSqd, other, kQpPath), Status::kOk);
  for (bool any = true; any;) {
    any = drain(a);
    any |= a.host.finish_copies(*a.core, now);
  }
  ASSERT_EQ(a.host.frames.size(), 1u);
  EXPECT_EQ(parse(a.host.frames[0]).payload_bytes, 1u);  // and the ICRC fits
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network(a.host.frames[0], net), wire::Drop::kNone);
  EXPECT_TRUE(net.v6);
}

// ---- the pool of kept packets ------------------------------------------------------------------------------------

TEST_F(EdgeTest, one_queue_pair_does_not_take_the_whole_pool) {
  b.host.slow = true;
  hold_copies = true;
  TestQp x1(a), y1(b), x2(a), y2(b);
  connect(x1, y1);
  connect(x2, y2);
  for (int i = 0; i < 16; ++i) x1.post(WrOp::kWrite, 0, 8, y1.rkey);
  x1.ring(now);
  exchange();
  EXPECT_EQ(count(b, Counter::kRoceRxDropNoKept), 16u - 4);  // half of eight
  x2.post(WrOp::kWrite, 0, 8, y2.rkey);
  x2.post(WrOp::kWrite, 0, 8, y2.rkey);
  x2.ring(now);
  exchange();
  EXPECT_EQ(count(b, Counter::kRoceRxDropNoKept), 16u - 4);
  EXPECT_EQ(b.core->state().kept.in_use(), 0u) << "UB has a pool of its own";
  hold_copies = false;
  settle();
  EXPECT_EQ(x1.poll().size(), 16u);
  EXPECT_EQ(x2.poll().size(), 2u);
  EXPECT_EQ(b.core->roce_state()->kept.in_use(), 0u);
}

TEST_F(EdgeTest, what_waits_for_memory_is_finished_by_the_same_packet_alone) {
  TestNode full(2, {.max_qps = 8}, 0);  // nothing can be kept
  full.host.slow = true;
  TestQp x(a), y(full);
  to_rts(y, x);
  QpAttributes at;
  ASSERT_EQ(full.roce().query_qp(y.qpn, &at), Status::kOk);
  y.post_receive(0, 100);
  full.core->on_packet(now, full.link, request_for(y, Opcode::kRcSendOnly, Psn(at.rq_psn), 10));
  EXPECT_EQ(count(full, Counter::kRoceRxDropNoKept), 1u);
  ASSERT_EQ(full.host.pending_copies(), 1u);
  full.core->on_packet(now, full.link, request_for(y, Opcode::kRcFetchAdd, Psn(at.rq_psn)));
  full.host.finish_copies(*full.core, now);
  full.core->on_packet(now, full.link, request_for(y, Opcode::kRcFetchAdd, Psn(at.rq_psn)));
  EXPECT_EQ(state_of(y), QpState::kError);
  const std::vector<Packet> sent = sent_by(full);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].bth.opcode, Opcode::kRcAck);
  EXPECT_EQ(sent[0].aeth.syndrome, Syndrome::nak(NakCode::kInvalidRequest));
}

}  // namespace
}  // namespace ub::roce
