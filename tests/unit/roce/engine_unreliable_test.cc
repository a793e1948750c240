// SPDX-License-Identifier: Apache-2.0
// Unreliable connections between two Cores: what arrives whole is delivered, what does not costs its message alone.
#include "tests/unit/roce/engine_pair.h"

namespace ub::roce {
namespace {

constexpr CrStatus kOk = CrStatus::kSuccess, kFlush = CrStatus::kWrFlush;
constexpr uint32_t kMtu = 1024;

class UnreliableTest : public EnginePair {
 protected:
  static constexpr TestQp::Options kUc{.type = QpType::kUc};

  static void expect_status(const std::vector<Cqe>& cqes, const std::vector<CrStatus>& wanted) {
    ASSERT_EQ(cqes.size(), wanted.size());
    for (size_t i = 0; i < cqes.size(); ++i) EXPECT_EQ(cqes[i].status, wanted[i]) << i;
  }
  Status to_state(TestQp& q, QpState state) {
    QpAttributes to;
    to.qp_state = state;
    return q.node.roce().modify_qp(now, q.qpn, to, 0);
  }
  void send(TestQp& x, uint32_t offset, uint32_t bytes) {
    x.post(WrOp::kSend, offset, bytes);
    x.ring(now);
  }
  void write(TestQp& x, uint32_t offset, uint32_t bytes, uint32_t rkey, uint64_t to = TestQp::kAddress) {
    x.post(WrOp::kWrite, offset, bytes, rkey, to);
    x.ring(now);
  }
  /// What node a has to send goes to node b, but for packets of these numbers, counted from 0.
  void carry(const std::vector<uint32_t>& lost = {}) {
    drain(a);
    for (uint32_t n = 0; !a.host.frames.empty(); ++n) {
      const Bytes frame = std::move(a.host.frames.front());
      a.host.frames.pop_front();
      if (std::find(lost.begin(), lost.end(), n) == lost.end()) b.core->on_packet(now, b.link, frame);
    }
  }
  void finish_copies() {
    while (b.host.finish_copies(*b.core, now)) continue;
  }
  /// y has got this message of x, and nothing else.
  void expect_message(TestQp& x, uint32_t from, TestQp& y, uint32_t to, uint32_t bytes) {
    const std::vector<Cqe> got = y.poll();
    expect_status(got, {kOk});
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].length, bytes);
    EXPECT_EQ(got[0].user_ctx, 1000u + to);
    EXPECT_TRUE(same(y, to, x, from, bytes));
  }
};

// ---- what goes well --------------------------------------------------------------------------------------------

TEST_F(UnreliableTest, packets_ask_for_nothing) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  x.post(WrOp::kSendImm, 0, 3000);
  x.post(WrOp::kWriteImm, 0, 10, y.rkey);
  x.post(WrOp::kWrite, 0, 2 * kMtu, y.rkey);
  x.ring(now);
  const std::vector<Packet> sent = sent_by(a);
  const Opcode wanted[] = {Opcode::kUcSendFirst,    Opcode::kUcSendMiddle, Opcode::kUcSendLastImm,
                           Opcode::kUcWriteOnlyImm, Opcode::kUcWriteFirst, Opcode::kUcWriteLast};
  ASSERT_EQ(sent.size(), std::size(wanted));
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i].bth.opcode, wanted[i]);
    EXPECT_EQ(sent[i].bth.psn, sent[0].bth.psn + static_cast<int64_t>(i));
    EXPECT_FALSE(sent[i].bth.ack_req);
  }
  EXPECT_EQ(a.core->next_deadline(), Instant::never());
}

TEST_F(UnreliableTest, every_length_arrives_and_nothing_is_answered) {
  for (bool slow : {false, true}) {
    a.host.slow = b.host.slow = slow;
    for (uint8_t mtu : {uint8_t{1}, uint8_t{3}, uint8_t{5}}) {
      TestQp x(a, kUc), y(b, kUc);
      connect(x, y, mtu);
      fill(x, mtu);
      for (uint32_t bytes : {0u, 1u, 255u, 256u, 1024u, 1025u, 4097u, 12288u}) {
        y.post_receive(0, 16384);
        x.post(WrOp::kSend, 100, bytes);
        x.ring(now);
        exchange();  // the next message would not wait for slow memory of its target
        x.post(WrOp::kWrite, 300, bytes, y.rkey, TestQp::kAddress + 20000);
        x.ring(now);
        exchange();
        expect_status(x.poll(), {kOk, kOk});
        expect_message(x, 100, y, 0, bytes);
        EXPECT_TRUE(same(y, 20000, x, 300, bytes));
      }
      EXPECT_EQ(a.roce().destroy_qp(now, x.qpn), Status::kOk);
      EXPECT_EQ(b.roce().destroy_qp(now, y.qpn), Status::kOk);
    }
  }
  EXPECT_EQ(count(b, Counter::kTxPackets), 0u);
  EXPECT_EQ(count(a, Counter::kRoceTxRetransmit), 0u);
}

TEST_F(UnreliableTest, a_request_is_complete_when_its_last_packet_has_left) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  send(x, 0, 3000);
  EXPECT_EQ(a.core->poll_packets(now, 2), 2u);
  EXPECT_TRUE(x.poll().empty());
  EXPECT_EQ(a.core->poll_packets(now, 2), 1u);
  expect_status(x.poll(), {kOk});
}

TEST_F(UnreliableTest, no_window_stops_a_long_request) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y, 1);
  fill(x, 1);
  write(x, 0, 50'000, y.rkey);
  drain(a);
  EXPECT_EQ(a.host.frames.size(), 196u);  // of 256 bytes
  expect_status(x.poll(), {kOk});
  carry();
  EXPECT_TRUE(same(y, 0, x, 0, 50'000));
}

TEST_F(UnreliableTest, immediate_data_takes_a_receive) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  y.post_receive(40000, 0);
  y.post_receive(50000, 100);
  x.post(WrOp::kWriteImm, 0, 3000, y.rkey).immediate = 0x12345678;
  Wqe& second = x.post(WrOp::kSendImm, 0, 100);
  second.immediate = 77;
  second.flags |= kWrSolicited;
  x.ring(now);
  exchange();
  const std::vector<Cqe> got = y.poll();
  expect_status(got, {kOk, kOk});
  EXPECT_EQ(got[0].opcode, CrOpcode::kWriteImm);
  EXPECT_EQ(got[0].immediate, 0x12345678u);
  EXPECT_EQ(got[0].length, 3000u);
  EXPECT_EQ(got[0].remote_id, x.qpn);
  EXPECT_EQ(got[0].flags & kCqeSolicited, 0);
  EXPECT_EQ(got[1].opcode, CrOpcode::kSendImm);
  EXPECT_EQ(got[1].immediate, 77u);
  EXPECT_NE(got[1].flags & kCqeSolicited, 0);
  EXPECT_TRUE(same(y, 0, x, 0, 3000));
}

// ---- what is lost, doubled or late ---------------------------------------------------------------------------------

// Whichever packet of the first message is lost, the next one gets the only receive, whole.
TEST_F(UnreliableTest, a_loss_costs_its_message_only) {
  for (uint32_t lost : {0u, 1u, 2u}) {
    TestQp x(a, kUc), y(b, kUc);
    connect(x, y);
    fill(x, 1);
    y.post_receive(4096, 4096);
    send(x, 0, 3000);
    send(x, 10000, 2500);
    carry({lost});
    expect_status(x.poll(), {kOk, kOk});
    expect_message(x, 10000, y, 4096, 2500);
    EXPECT_EQ(state_of(y), QpState::kRts);
  }
  EXPECT_EQ(count(b, Counter::kRoceRxOutOfSequence), 3u);
  EXPECT_EQ(count(b, Counter::kRoceRxDropIncomplete), 2u);  // the one without its first packet never began
  EXPECT_EQ(count(b, Counter::kRoceRxDropRefused), 3u);     // two packets, one, and none
}

TEST_F(UnreliableTest, a_write_with_a_gap_goes_no_further) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  write(x, 0, 4 * kMtu, y.rkey);
  write(x, 8192, 10, y.rkey, TestQp::kAddress + 20000);
  carry({1});
  EXPECT_TRUE(same(y, 0, x, 0, kMtu));
  EXPECT_TRUE(std::all_of(y.memory.begin() + kMtu, y.memory.begin() + 4 * kMtu,
                          [](std::byte byte) { return byte == std::byte{}; }));
  EXPECT_TRUE(same(y, 20000, x, 8192, 10));
}

TEST_F(UnreliableTest, what_comes_twice_or_late_is_dropped) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  y.post_receive(4096, 4096);
  y.post_receive(12288, 4096);
  send(x, 0, 3000);
  drain(a);
  const std::deque<Bytes> frames = a.host.frames;
  a.host.frames.clear();
  for (const Bytes& frame : frames) {
    b.core->on_packet(now, b.link, frame);
    b.core->on_packet(now, b.link, frame);
  }
  b.core->on_packet(now, b.link, frames[0]);
  expect_message(x, 0, y, 4096, 3000);
  EXPECT_EQ(count(b, Counter::kRoceRxDuplicate), 4u);
  send(x, 0, 100);
  send(x, 100, 100);
  drain(a);
  std::swap(a.host.frames[0], a.host.frames[1]);
  carry();
  expect_message(x, 100, y, 12288, 100);
  EXPECT_EQ(count(b, Counter::kRoceRxDuplicate), 5u);
}

// ---- what cannot be ------------------------------------------------------------------------------------------------

TEST_F(UnreliableTest, without_a_receive_a_message_is_dropped) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  send(x, 0, 3000);
  x.post(WrOp::kWriteImm, 0, 2000, y.rkey);
  x.ring(now);
  carry();
  EXPECT_EQ(count(b, Counter::kRoceRxDropNoReceive), 2u);
  EXPECT_EQ(count(b, Counter::kRoceRxDropRefused), 2u);
  y.post_receive(4096, 4096);
  send(x, 0, 3000);
  carry();
  expect_message(x, 0, y, 4096, 3000);
  EXPECT_EQ(state_of(y), QpState::kRts);
}

TEST_F(UnreliableTest, a_short_receive_stays_for_the_next) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  y.post_receive(4096, 1500);
  send(x, 0, 3000);
  send(x, 5000, 1501);
  send(x, 8000, 1500);
  carry();
  expect_message(x, 8000, y, 4096, 1500);
  EXPECT_EQ(count(b, Counter::kRoceRxDropNoFit), 2u);
}

TEST_F(UnreliableTest, a_receive_that_names_no_memory_fails) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  y.post_receive(4096, 4096);
  y.rqes[0].sge[0].segment = 9999;
  y.post_receive(8192, 4096);
  send(x, 0, 3000);
  send(x, 5000, 1500);
  carry();
  expect_status(y.poll(), {CrStatus::kLocAccess, kOk});
  EXPECT_TRUE(same(y, 8192, x, 5000, 1500));
  EXPECT_EQ(state_of(y), QpState::kRts);
}

TEST_F(UnreliableTest, memory_that_is_not_for_the_peer_is_not_written) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  write(x, 0, 3000, y.rkey + 1);
  write(x, 0, 3000, y.rkey, TestQp::kAddress + y.memory.size() - 2999);
  carry();
  EXPECT_EQ(count(b, Counter::kRoceRxDropBadAccess), 2u);
  QpAttributes closed;
  closed.qp_state = QpState::kRts;
  ASSERT_EQ(b.roce().modify_qp(now, y.qpn, closed, kQpAccess), Status::kOk);
  write(x, 0, 3000, y.rkey);
  carry();
  EXPECT_EQ(count(b, Counter::kRoceRxDropBadAccess), 3u);
  EXPECT_TRUE(std::all_of(y.memory.begin(), y.memory.end(), [](std::byte byte) { return byte == std::byte{}; }));
  EXPECT_EQ(state_of(y), QpState::kRts);
  expect_status(x.poll(), {kOk, kOk, kOk});
  closed.qp_access_flags = kAccessWrite;
  ASSERT_EQ(b.roce().modify_qp(now, y.qpn, closed, kQpAccess), Status::kOk);
  write(x, 0, 3000, y.rkey);
  carry();
  EXPECT_TRUE(same(y, 0, x, 0, 3000));
}

TEST_F(UnreliableTest, memory_that_goes_in_the_middle_ends_the_message) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  y.post_receive(0, 100);
  x.post(WrOp::kWriteImm, 0, 3000, y.rkey);
  x.ring(now);
  ASSERT_EQ(a.core->poll_packets(now, 2), 2u);
  deliver(a, b);
  ASSERT_EQ(b.core->unregister_segment(now, y.segment), Status::kOk);
  carry();
  EXPECT_EQ(count(b, Counter::kRoceRxDropBadAccess), 1u);
  EXPECT_TRUE(y.poll().empty());
}

// ---- the requester's own faults ------------------------------------------------------------------------------------

TEST_F(UnreliableTest, operations_that_need_an_answer_are_refused) {
  for (WrOp op : {WrOp::kRead, WrOp::kFetchAdd, WrOp::kCompareSwap, WrOp::kSendInvalidate}) {
    TestQp x(a, kUc), y(b, kUc);
    connect(x, y);
    x.post(op, 0, 8, y.rkey);
    x.ring(now);
    exchange();
    expect_status(x.poll(), {CrStatus::kUnsupportedOpcode});
    EXPECT_EQ(state_of(x), QpState::kSqe);
    EXPECT_EQ(a.roce().destroy_qp(now, x.qpn), Status::kOk);
    EXPECT_EQ(b.roce().destroy_qp(now, y.qpn), Status::kOk);
  }
  EXPECT_EQ(count(a, Counter::kTxPackets), 0u);
}

// 10.3.1.7, as for datagrams.
TEST_F(UnreliableTest, a_failed_send_ends_sending_for_a_while) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  fill(y, 9);
  send(x, 0, 10);
  x.post(WrOp::kSend, 0, 3000).sge.segment = 9999;
  send(x, 0, 10);
  y.post_receive(4096, 4096);
  exchange();
  expect_status(x.poll(), {kOk, CrStatus::kLocAccess, kFlush});
  EXPECT_EQ(state_of(x), QpState::kSqe);
  expect_message(x, 0, y, 4096, 10);
  send(x, 0, 10);
  expect_status(x.poll(), {kFlush});

  x.post_receive(4096, 4096);  // it receives as before
  send(y, 20000, 2000);
  exchange();
  expect_message(y, 20000, x, 4096, 2000);
  expect_status(y.poll(), {kOk});

  ASSERT_EQ(to_state(x, QpState::kRts), Status::kOk);
  y.post_receive(8192, 4096);
  send(x, 100, 2000);
  exchange();
  expect_status(x.poll(), {kOk});
  expect_message(x, 100, y, 8192, 2000);
  EXPECT_EQ(count(b, Counter::kRoceRxOutOfSequence), 0u);
}

// Half of a message has left when its memory goes. The peer sees a beginning where it awaits the rest.
TEST_F(UnreliableTest, a_message_that_is_half_sent_is_given_up_by_both) {
  for (bool slow : {false, true}) {
    a.host.slow = slow;
    TestQp x(a, kUc), y(b, kUc), other(a);
    connect(x, y);
    fill(x, 1);
    fill(other, 2);
    y.post_receive(4096, 4096);
    send(x, 0, 3000);
    while (a.host.frames.size() < 2) {
      if (a.core->poll_packets(now, 1) == 0) a.host.finish_copy(*a.core, now);
    }
    ASSERT_EQ(a.core->unregister_segment(now, x.segment), Status::kOk);
    a.host.lose_pending();
    exchange();
    expect_status(x.poll(), {CrStatus::kLocAccess});
    ASSERT_EQ(state_of(x), QpState::kSqe);
    ASSERT_EQ(to_state(x, QpState::kRts), Status::kOk);
    x.post(WrOp::kSend, 0, 2000).sge = other.sge(0, 2000);
    x.ring(now);
    exchange();
    expect_status(x.poll(), {kOk});
    expect_message(other, 0, y, 4096, 2000);
  }
  EXPECT_EQ(count(b, Counter::kRoceRxOutOfSequence), 0u);
  EXPECT_EQ(count(b, Counter::kRoceRxDropIncomplete), 2u);
}

// ---- states --------------------------------------------------------------------------------------------------------

TEST_F(UnreliableTest, error_gives_everything_back) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  y.post_receive(4096, 4096);
  y.post_receive(8192, 4096);
  send(x, 0, 3000);
  send(x, 0, 100);
  ASSERT_EQ(a.core->poll_packets(now, 1), 1u);
  deliver(a, b);
  ASSERT_EQ(to_state(x, QpState::kError), Status::kOk);
  ASSERT_EQ(to_state(y, QpState::kError), Status::kOk);
  exchange();
  expect_status(x.poll(), {kFlush, kFlush});
  expect_status(y.poll(), {kFlush, kFlush});
  EXPECT_EQ(b.core->state().receives.in_use(), 0u);
}

TEST_F(UnreliableTest, a_link_that_goes_takes_its_queue_pairs) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  send(x, 0, 3000);
  ASSERT_EQ(a.core->poll_packets(now, 1), 1u);
  a.core->link_down(now, a.link);
  EXPECT_EQ(state_of(x), QpState::kError);
  expect_status(x.poll(), {kFlush});
}

TEST_F(UnreliableTest, drained_when_what_was_begun_has_left) {
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  send(x, 0, 3000);
  ASSERT_EQ(a.core->poll_packets(now, 1), 1u);
  ASSERT_EQ(to_state(x, QpState::kSqd), Status::kOk);
  QpAttributes at;
  ASSERT_EQ(a.roce().query_qp(x.qpn, &at), Status::kOk);
  EXPECT_TRUE(at.sq_draining);
  send(x, 0, 10);
  drain(a);
  expect_status(x.poll(), {kOk});
  ASSERT_EQ(a.roce().query_qp(x.qpn, &at), Status::kOk);
  EXPECT_FALSE(at.sq_draining);
  ASSERT_EQ(to_state(x, QpState::kRts), Status::kOk);
  drain(a);
  expect_status(x.poll(), {kOk});
}

TEST_F(UnreliableTest, a_shared_receive_goes_back_to_all) {
  TestQp x1(a, kUc), x2(a, kUc), owner(b);
  TestQp y1(b, {.type = QpType::kUc, .shared_jfr = owner.jfr}), y2(b, {.type = QpType::kUc, .shared_jfr = owner.jfr});
  connect(x1, y1);
  connect(x2, y2);
  fill(x2, 1);
  owner.post_receive(4096, 4096);
  send(x1, 0, 3000);
  carry({1});
  send(x2, 0, 3000);
  carry();
  expect_status(y2.poll(), {kOk});
  EXPECT_TRUE(same(owner, 4096, x2, 0, 3000));

  b.host.slow = true;  // and not before the last byte of the message that was given up is written
  owner.post_receive(12288, 4096);
  send(x1, 0, 3000);
  carry({1});
  ASSERT_EQ(b.host.pending_copies(), 1u);
  send(x2, 0, 10);
  carry();
  EXPECT_EQ(count(b, Counter::kRoceRxDropNoReceive), 1u);
  finish_copies();
  send(x2, 0, 10);
  carry();
  finish_copies();
  expect_status(y2.poll(), {kOk});
}

// ---- memory that answers later -------------------------------------------------------------------------------------

TEST_F(UnreliableTest, messages_wait_for_memory_in_order) {
  b.host.slow = true;
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  const uint32_t lengths[] = {2000, 1500, 500};
  for (uint32_t i = 0; i < 3; ++i) {
    y.post_receive(4096 * (i + 1), 4096);
    send(x, 5000 * i, lengths[i]);
  }
  carry();
  EXPECT_TRUE(y.poll().empty());
  finish_copies();
  const std::vector<Cqe> got = y.poll();
  expect_status(got, {kOk, kOk, kOk});
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].length, lengths[i]);
    EXPECT_TRUE(same(y, 4096 * (i + 1), x, 5000 * i, lengths[i]));
  }
  EXPECT_EQ(b.core->roce_state()->kept.in_use(), 0u);
  EXPECT_EQ(count(b, Counter::kRoceRxDropNoKept), 0u);
}

TEST_F(UnreliableTest, what_cannot_be_kept_is_lost) {
  b.host.slow = true;
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  for (uint32_t i = 0; i < 8; ++i) {
    y.post_receive(4096 * (i + 1), 4096);
    send(x, 5000 * i, 2000);
  }
  carry();
  const uint64_t lost = count(b, Counter::kRoceRxDropNoKept);
  EXPECT_GT(lost, 0u);
  finish_copies();
  const std::vector<Cqe> got = y.poll();
  EXPECT_GT(got.size(), 0u);
  EXPECT_LT(got.size(), 8u);
  for (uint32_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same(y, 4096 * (i + 1), x, 5000 * i, 2000)) << i;
  send(x, 100, 2000);
  carry();
  finish_copies();
  const std::vector<Cqe> next = y.poll();
  expect_status(next, {kOk});
  EXPECT_TRUE(same(y, static_cast<size_t>(next[0].user_ctx - 1000), x, 100, 2000));
}

// Bytes of a message that was given up do not land in the one that has its receive now.
TEST_F(UnreliableTest, a_receive_is_used_again_when_nothing_is_written_there_any_more) {
  b.host.slow = true;
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  y.post_receive(4096, 4096);
  send(x, 0, 3000);
  carry({1});
  ASSERT_EQ(b.host.pending_copies(), 1u);
  send(x, 10000, 500);
  carry();
  EXPECT_EQ(b.host.pending_copies(), 1u);
  finish_copies();
  expect_message(x, 10000, y, 4096, 500);
  EXPECT_EQ(b.core->state().receives.in_use(), 0u);
}

TEST_F(UnreliableTest, memory_that_fails_late_costs_the_message) {
  b.host.slow = true;
  TestQp x(a, kUc), y(b, kUc);
  connect(x, y);
  fill(x, 1);
  y.post_receive(4096, 4096);
  y.post_receive(8192, 4096);
  send(x, 0, 1500);
  carry();
  b.host.lose_pending();  // the first packet of the two
  finish_copies();
  expect_status(y.poll(), {CrStatus::kLocAccess});
  EXPECT_EQ(count(b, Counter::kRoceRxDropNoFit), 1u);
  x.post(WrOp::kWriteImm, 0, 10, y.rkey);
  x.ring(now);
  carry();
  b.host.lose_pending();
  finish_copies();
  EXPECT_TRUE(y.poll().empty());
  EXPECT_EQ(count(b, Counter::kRoceRxDropBadAccess), 1u);
  EXPECT_EQ(state_of(y), QpState::kRts);
  send(x, 0, 1500);
  carry();
  finish_copies();
  expect_message(x, 0, y, 8192, 1500);
}

TEST_F(UnreliableTest, ends_while_memory_is_awaited) {
  b.host.slow = true;
  for (int how = 0; how < 3; ++how) {
    TestQp x(a, kUc), y(b, kUc);
    connect(x, y);
    y.post_receive(4096, 4096);
    send(x, 0, 3000);
    send(x, 0, 3000);
    carry(how == 2 ? std::vector<uint32_t>{1} : std::vector<uint32_t>{});
    ASSERT_GT(b.host.pending_copies(), 0u);
    EXPECT_EQ(to_state(y, QpState::kReset), Status::kBusy);
    const bool destroyed = how == 1;
    ASSERT_EQ(destroyed ? b.roce().destroy_qp(now, y.qpn) : to_state(y, QpState::kError), Status::kOk);
    EXPECT_TRUE(y.poll().empty());
    finish_copies();
    expect_status(y.poll(), destroyed ? std::vector<CrStatus>{} : std::vector{kFlush});
    EXPECT_EQ(b.core->roce_state()->kept.in_use(), 0u);
    ASSERT_EQ(a.roce().destroy_qp(now, x.qpn), Status::kOk);
    EXPECT_EQ(b.roce().destroy_qp(now, y.qpn), destroyed ? Status::kInvalid : Status::kOk);
  }
}

}  // namespace
}  // namespace ub::roce
