// SPDX-License-Identifier: Apache-2.0
// Answers to READs and atomics that wait for memory: in order, before what is acknowledged behind them, and none that
// the peer does not want any more.
#include "tests/unit/roce/held_pair.h"

namespace ub::roce {
namespace {

constexpr CrStatus kOk = CrStatus::kSuccess;

/// y reads from x, whose memory is slow, and keeps what it asked for in flight.
class AnswersTest : public HeldTest {
 protected:
  AnswersTest() : x(a), y(b) {
    connect(x, y);
    fill(x, 5);
    a.host.slow = true;
  }
  void ask() {
    drain(b);
    deliver(b, a);
    drain(a);
  }
  /// PSNs, of the requester, of the packets that x sends now; they reach y.
  Psns answered() {
    Psns all;
    for (const Packet& p : sent_by(a)) all.push_back(p.bth.psn.value());
    deliver(a, b);
    return counted(all, y);
  }

  /// Another packet of the same size takes the place of the one in this frame.
  static void replace_packet(Bytes& frame, const Packet& packet) {
    const Bytes bytes = packet_bytes(packet);
    const auto end = frame.end() - wire::kIcrcSize;
    std::copy(bytes.begin(), bytes.end(), end - static_cast<ptrdiff_t>(bytes.size()));
    const auto covered = static_cast<size_t>(end - frame.begin()) - wire::kEthSize;
    wire::icrc_store(&*end, icrc_compute(frame.data() + wire::kEthSize, covered, false));
  }

  TestQp x, y;
};

TEST_F(AnswersTest, are_gathered_together_and_leave_in_order) {
  read(y, 0, 2 * kMtu, x);
  read(y, 4096, 3 * kMtu, x);
  ask();
  EXPECT_EQ(a.host.pending_copies(), 5u);
  EXPECT_EQ(held_answers(x, y), (Psns{0, 1, 2, 3, 4}));
  for (size_t i = 4; i != 0; --i) finish(x, i);
  EXPECT_EQ(answered(), Psns{});
  finish(x, 0);
  EXPECT_EQ(answered(), (Psns{0, 1, 2, 3, 4}));
  expect_status(y, {kOk, kOk});
  EXPECT_TRUE(same(y, 0, x, 0, 2 * kMtu));
  EXPECT_TRUE(same(y, 4096, x, 4096, 3 * kMtu));
  expect_nothing_held();
}

TEST_F(AnswersTest, of_which_there_are_many_are_built_as_they_leave) {
  read(y, 0, 20 * kMtu, x);
  ask();
  EXPECT_EQ(held_answers(x, y).size(), kHeldOfSender);
  finish_all(x);
  EXPECT_EQ(answered().size(), kHeldOfSender);
  EXPECT_EQ(held_answers(x, y), (Psns{16, 17, 18, 19}));
  finish_all(x);
  EXPECT_EQ(answered().size(), 4u);
  expect_status(y, {kOk});
  EXPECT_TRUE(same(y, 0, x, 0, 20 * kMtu));
}

// What is acknowledged behind a READ says that its answer is lost, if that has not come before.
TEST_F(AnswersTest, nothing_behind_them_is_acknowledged_before_they_have_left) {
  read(y, 0, 100, x);
  x.node.host.slow = true;
  y.post(WrOp::kWrite, 0, 0, x.rkey, kThere);
  y.ring(now);
  ask();
  EXPECT_EQ(held_answers(x, y), Psns{0});
  EXPECT_EQ(answered(), Psns{});
  finish_all(x);
  EXPECT_EQ(answered(), (Psns{0, 1}));
  expect_status(y, {kOk, kOk});
}

TEST_F(AnswersTest, an_atomic_answers_behind_them) {
  read(y, 0, 100, x);
  ask();
  y.post(WrOp::kFetchAdd, 4096, 8, x.rkey, kThere + 4096).immediate = 1;
  y.ring(now);
  ask();
  ASSERT_EQ(a.host.pending_copies(), 2u);
  finish(x, 1);
  EXPECT_EQ(answered(), Psns{});
  EXPECT_EQ(held_answers(x, y), (Psns{0, 1}));
  finish_all(x);
  EXPECT_EQ(answered(), (Psns{0, 1}));
  expect_status(y, {kOk, kOk});
}

TEST_F(AnswersTest, requests_do_not_wait_for_them_nor_they_for_requests) {
  read(y, 0, 100, x);
  ask();
  write(x, 8192, 100, y);
  drain(a);
  ASSERT_EQ(a.host.pending_copies(), 2u);
  finish(x, 1);
  drain(a);
  ASSERT_EQ(a.host.frames.size(), 1u);
  EXPECT_EQ(parse(a.host.frames.front()).bth.opcode, Opcode::kRcWriteOnly);
  EXPECT_EQ(held_answers(x, y), Psns{0});
}

TEST_F(AnswersTest, asked_for_again_from_the_same_place_they_are_not_gathered_again) {
  read(y, 0, 3 * kMtu, x);
  ask();
  timeout(y);
  ask();
  EXPECT_EQ(held_answers(x, y), (Psns{0, 1, 2}));
  EXPECT_EQ(a.host.pending_copies(), 3u);
  finish_all(x);
  EXPECT_EQ(answered(), (Psns{0, 1, 2}));
  expect_status(y, {kOk});
}

TEST_F(AnswersTest, asked_for_again_from_another_place_others_are_given_up) {
  read(y, 0, 3 * kMtu, x);
  ask();
  finish(x, 0);
  EXPECT_EQ(answered(), Psns{0}) << "y has it";
  ASSERT_EQ(held_answers(x, y), (Psns{1, 2}));
  finish(x, 0);
  drain(a);
  a.host.frames.clear();  // the second one is lost
  ASSERT_EQ(held_answers(x, y), Psns{2});
  timeout(y);
  ask();
  EXPECT_EQ(held_answers(x, y), (Psns{1, 2}));
  fail(x, 0);  // of the one that was given up
  finish_all(x);
  EXPECT_EQ(answered(), (Psns{1, 2}));
  expect_status(y, {kOk});
  EXPECT_TRUE(same(y, 0, x, 0, 3 * kMtu));
}

// The answer to what is asked for begins with the first packet of an answer, whatever was built for that PSN before.
TEST_F(AnswersTest, asked_for_again_from_the_next_one_that_waits_that_one_begins_an_answer) {
  for (const uint32_t packets : {2u, 3u}) {
    read(y, 0, packets * kMtu, x);
    ask();
    finish(x, 0);
    ASSERT_EQ(answered().size(), 1u) << "y has it";
    timeout(y);
    ask();
    finish_all(x);
    std::vector<Opcode> opcodes;
    for (const Packet& p : sent_by(a)) opcodes.push_back(p.bth.opcode);
    if (packets == 2) {
      EXPECT_EQ(opcodes, std::vector{Opcode::kRcReadReplyOnly});
    } else {
      EXPECT_EQ(opcodes, (std::vector{Opcode::kRcReadReplyFirst, Opcode::kRcReadReplyLast}));
    }
    deliver(a, b);
    expect_status(y, {kOk});
    EXPECT_TRUE(same(y, 0, x, 0, packets * kMtu));
    expect_nothing_held();
  }
}

// The peer may ask for less than before. Nothing is built behind what it wants no more.
TEST_F(AnswersTest, asked_for_again_in_part_they_end_where_that_part_ends) {
  read(y, 0, 3 * kMtu, x);
  ask();
  timeout(y);
  filter = [](TestNode&, Bytes& frame) {
    Packet p = parse(frame);
    EXPECT_EQ(p.bth.opcode, Opcode::kRcReadRequest);
    p.reth.length = 2 * kMtu;
    replace_packet(frame, p);
    return true;
  };
  ask();
  EXPECT_EQ(held_answers(x, y), (Psns{0, 1}));
  finish_all(x);
  std::vector<Opcode> opcodes;
  for (const Packet& p : sent_by(a)) opcodes.push_back(p.bth.opcode);
  EXPECT_EQ(opcodes, (std::vector{Opcode::kRcReadReplyFirst, Opcode::kRcReadReplyLast}));
  expect_nothing_held();
}

TEST_F(AnswersTest, one_whose_bytes_do_not_come_is_refused_when_those_before_it_have_left) {
  read(y, 0, 2 * kMtu, x);
  read(y, 4096, 2 * kMtu, x);
  ask();
  fail(x, 2);
  EXPECT_EQ(answered(), Psns{});
  finish_all(x);
  const Psns all = answered();
  EXPECT_EQ(all, (Psns{0, 1, 2})) << "the last one refuses";
  expect_status(y, {kOk, CrStatus::kRemOperation});
  EXPECT_EQ(state_of(x), QpState::kError);
  expect_nothing_held();
}

TEST_F(AnswersTest, one_that_cannot_be_built_is_refused_when_those_before_it_have_left) {
  read(y, 0, (kHeldOfSender + 1) * kMtu, x);
  ask();
  ASSERT_EQ(held_answers(x, y).size(), kHeldOfSender);
  ASSERT_EQ(a.core->unregister_segment(now, x.segment), Status::kOk);
  finish(x, 0);
  EXPECT_EQ(answered(), Psns{0});
  EXPECT_EQ(state_of(x), QpState::kRts);
  finish_all(x);
  EXPECT_EQ(answered().size(), kHeldOfSender);
  expect_status(y, {CrStatus::kRemAccessAbort});
  EXPECT_EQ(state_of(x), QpState::kError);
}

// A request that is refused does not take the answers before it along: they are built once more and leave first.
TEST_F(AnswersTest, those_before_a_refusal_still_leave) {
  read(y, 0, 2 * kMtu, x);
  ask();
  y.post(WrOp::kWrite, 0, 8, x.rkey ^ 1, kThere);
  y.ring(now);
  ask();
  EXPECT_EQ(state_of(x), QpState::kError);
  EXPECT_EQ(held_answers(x, y), (Psns{0, 1}));
  finish_all(x);
  EXPECT_EQ(answered(), (Psns{0, 1, 2}));
  expect_status(y, {kOk, CrStatus::kRemAccessAbort});
  expect_nothing_held();
}

// As in UB: a fence holds until the results of READs are in memory, and not only in packets.
TEST_F(HeldTest, a_fenced_request_waits_for_the_bytes_of_earlier_reads) {
  TestQp x(a), y(b);
  connect(x, y);
  fill(y, 5);
  read(x, 0, 8, y);
  drain(a);
  deliver(a, b);
  drain(b);
  a.host.slow = true;
  deliver(b, a);
  a.host.slow = false;
  ASSERT_EQ(a.host.pending_copies(), 1u);
  x.post(WrOp::kWrite, 64, 8, y.rkey, kThere + 64).flags |= kWrFence;
  x.ring(now);
  EXPECT_EQ(sent(x), Psns{});
  finish(x, 0);
  EXPECT_EQ(sent(x), Psns{1});
  EXPECT_TRUE(same(x, 0, y, 0, 8));
}

}  // namespace
}  // namespace ub::roce
