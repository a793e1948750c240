// SPDX-License-Identifier: Apache-2.0
// Two Cores, one queue pair each: what is sent arrives, is completed, and looks on the wire as it should.
#include "tests/unit/roce/engine_pair.h"

namespace ub::roce {
namespace {

using EngineTest = EnginePair;

void expect_status(const std::vector<Cqe>& cqes, std::vector<CrStatus> wanted) {
  ASSERT_EQ(cqes.size(), wanted.size());
  for (size_t i = 0; i < cqes.size(); ++i) EXPECT_EQ(cqes[i].status, wanted[i]) << i;
}
constexpr CrStatus kOk = CrStatus::kSuccess, kFlush = CrStatus::kWrFlush;

TEST_F(EngineTest, off_unless_configured) {
  TestNode off(3, {.max_qps = 0});
  EXPECT_EQ(off.core->roce(), nullptr);
}

TEST_F(EngineTest, send_takes_a_receive) {
  TestQp x(a), y(b);
  connect(x, y);
  fill(x, 1);
  y.post_receive(4096, 8192);
  Wqe& w = x.post(WrOp::kSendImm, 0, 3000);
  w.immediate = 0xABCD1234;
  x.ring(now);
  const std::vector<Packet> sent = sent_by(a);
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0].bth.opcode, Opcode::kRcSendFirst);
  EXPECT_FALSE(sent[0].bth.ack_req);
  EXPECT_EQ(sent[1].bth.opcode, Opcode::kRcSendMiddle);
  EXPECT_EQ(sent[2].bth.opcode, Opcode::kRcSendLastImm);
  EXPECT_TRUE(sent[2].bth.ack_req);
  EXPECT_EQ(sent[2].payload_bytes, 3000u - 2048);
  exchange();
  const auto received = y.poll();
  expect_status(received, {kOk});
  EXPECT_EQ(received[0].opcode, CrOpcode::kSendImm);
  EXPECT_EQ(received[0].immediate, 0xABCD1234u);
  EXPECT_EQ(received[0].length, 3000u);
  EXPECT_EQ(received[0].local_id, y.qpn);
  EXPECT_EQ(received[0].remote_id, x.qpn);
  EXPECT_EQ(received[0].user_data, 99u);
  EXPECT_EQ(received[0].user_ctx, 1000u + 4096);
  EXPECT_TRUE(same(y, 4096, x, 0, 3000));
  const auto done = x.poll();
  expect_status(done, {kOk});
  EXPECT_EQ(done[0].remote_id, static_cast<uint32_t>(WrOp::kSendImm));
  EXPECT_EQ(count(b, Counter::kRoceTxAck), 1u);
}

TEST_F(EngineTest, write_read_atomics) {
  TestQp x(a), y(b);
  connect(x, y);
  fill(x, 1);
  x.post(WrOp::kWrite, 0, 5000, y.rkey, TestQp::kAddress + 100);
  x.post(WrOp::kRead, 8192, 5000, y.rkey, TestQp::kAddress + 100);
  Wqe& add = x.post(WrOp::kFetchAdd, 16384, 8, y.rkey, TestQp::kAddress + 8192);
  add.immediate = 5;
  Wqe& swap = x.post(WrOp::kCompareSwap, 16392, 8, y.rkey, TestQp::kAddress + 8192);
  swap.immediate = 11;
  reinterpret_cast<WqeExtra&>(*(&swap + 1)).compare = 6;
  uint64_t one = 1;
  std::memcpy(&y.memory[8192], &one, 8);
  x.ring(now);
  exchange();
  expect_status(x.poll(), {kOk, kOk, kOk, kOk});
  EXPECT_TRUE(same(y, 100, x, 0, 5000));
  EXPECT_TRUE(same(x, 8192, x, 0, 5000));
  uint64_t words[2], now_there;
  std::memcpy(words, &x.memory[16384], 16);
  std::memcpy(&now_there, &y.memory[8192], 8);
  EXPECT_EQ(words[0], 1u);
  EXPECT_EQ(words[1], 6u);
  EXPECT_EQ(now_there, 11u);
  EXPECT_EQ(count(a, Counter::kRoceTxRetransmit), 0u);
}

TEST_F(EngineTest, every_mtu) {
  for (uint8_t mtu = 1; mtu <= 5; ++mtu) {
    TestQp x(a), y(b);
    connect(x, y, mtu);
    fill(x, mtu);
    for (uint32_t bytes : {0u, 1u, 255u, 256u, 257u, 4096u, 4097u, 12288u}) {
      y.post_receive(0, 16384);
      x.post(WrOp::kSend, 0, bytes);
      x.post(WrOp::kWrite, 0, bytes, y.rkey, TestQp::kAddress + 20000);
      x.post(WrOp::kRead, 32768, bytes, y.rkey, TestQp::kAddress + 20000);
      x.ring(now);
      exchange();
      expect_status(x.poll(), {kOk, kOk, kOk});
      expect_status(y.poll(), {kOk});
      EXPECT_TRUE(same(y, 0, x, 0, bytes));
      EXPECT_TRUE(same(y, 20000, x, 0, bytes));
      EXPECT_TRUE(same(x, 32768, x, 0, bytes));
    }
    EXPECT_EQ(x.node.roce().destroy_qp(now, x.qpn), Status::kOk);
    EXPECT_EQ(y.node.roce().destroy_qp(now, y.qpn), Status::kOk);
  }
}

TEST_F(EngineTest, loss_is_repaired) {
  retries = 7;
  TestQp x(a), y(b);
  connect(x, y);
  fill(x, 3);
  uint32_t n = 0;  // packets
  filter = [&](TestNode&, Bytes&) { return ++n % 5 != 0; };
  for (uint32_t round = 0; round < 5; ++round) {
    y.post_receive(0, 8192);
    x.post(WrOp::kSend, 0, 8000);
    x.post(WrOp::kRead, 32768, 8000, y.rkey, TestQp::kAddress);
    x.post(WrOp::kFetchAdd, 60000, 8, y.rkey, TestQp::kAddress + 40000).immediate = 1;
    x.ring(now);
    settle();
    expect_status(x.poll(), {kOk, kOk, kOk});
    expect_status(y.poll(), {kOk});
    EXPECT_TRUE(same(x, 32768, x, 0, 8000));
  }
  EXPECT_GT(count(a, Counter::kRoceTxRetransmit), 0u);
}

TEST_F(EngineTest, nobody_answers) {
  TestQp x(a), y(b);
  connect(x, y);
  uint32_t frames = 0;
  filter = [&](TestNode&, Bytes&) { return ++frames, false; };
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.post_receive(0, 8);
  x.ring(now);
  settle();
  EXPECT_EQ(frames, 2u * 4);  // retry_cnt 3
  expect_status(x.poll(), {CrStatus::kAckTimeout, kFlush, kFlush});
  EXPECT_EQ(state_of(x), QpState::kError);
  Event event;
  ASSERT_EQ(a.core->poll_events({&event, 1}), 1u);
  EXPECT_EQ(event.kind, EventKind::kQpError);
  EXPECT_EQ(event.object, 99u);
  x.post(WrOp::kWrite, 0, 8, y.rkey);  // ERROR flushes what is posted now, too
  x.post_receive(0, 8);
  x.ring(now);
  exchange();
  expect_status(x.poll(), {kFlush, kFlush});
}

TEST_F(EngineTest, receiver_not_ready) {
  TestQp x(a), y(b);
  connect(x, y);
  fill(x, 1);
  x.post(WrOp::kSend, 0, 100);
  x.ring(now);
  exchange();
  EXPECT_EQ(count(b, Counter::kRoceTxRnr), 1u);
  y.post_receive(0, 100);
  settle();
  expect_status(x.poll(), {kOk});
  expect_status(y.poll(), {kOk});
  x.post(WrOp::kSend, 0, 100);
  x.ring(now);
  settle();
  expect_status(x.poll(), {CrStatus::kRnrRetryExceeded});
  EXPECT_EQ(state_of(x), QpState::kError);
  EXPECT_EQ(state_of(y), QpState::kRts);
}

TEST_F(EngineTest, refusals_and_what_is_behind_them) {
  struct Case {
    const char* what;
    WrOp op;
    uint32_t length;
    bool bad_key;
    uint64_t address;
    CrStatus wanted;
  };
  const Case cases[] = {
      {"key", WrOp::kWrite, 8, true, TestQp::kAddress, CrStatus::kRemAccessAbort},
      {"bounds", WrOp::kRead, 8, false, TestQp::kAddress + (1 << 16) - 7, CrStatus::kRemAccessAbort},
      {"atomic alignment", WrOp::kFetchAdd, 8, false, TestQp::kAddress + 4, CrStatus::kRemUnsupported},
      {"too long for the receive", WrOp::kSend, 2000, false, 0, CrStatus::kRemUnsupported},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    TestQp x(a), y(b);
    connect(x, y);
    y.post_receive(0, 1500);
    x.post(WrOp::kWrite, 0, 8, y.rkey);
    x.post(c.op, 0, c.length, c.bad_key ? y.rkey ^ 1 : y.rkey, c.address);
    x.post(WrOp::kWrite, 0, 8, y.rkey);
    x.ring(now);
    settle();
    expect_status(x.poll(), {kOk, c.wanted, kFlush});
    EXPECT_EQ(state_of(x), QpState::kError);
    EXPECT_EQ(state_of(y), QpState::kError);
    expect_status(y.poll(), {c.op == WrOp::kSend ? CrStatus::kLocLen : kFlush});
    EXPECT_EQ(a.roce().destroy_qp(now, x.qpn), Status::kOk);
    EXPECT_EQ(b.roce().destroy_qp(now, y.qpn), Status::kOk);
  }
}

TEST_F(EngineTest, local_fault_fails_in_its_turn) {
  TestQp x(a), y(b);
  connect(x, y);
  x.post(WrOp::kWrite, 0, 3000, y.rkey);
  x.post(WrOp::kWrite, 0, 8, y.rkey).sge.segment ^= 1;
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.ring(now);
  exchange();
  expect_status(x.poll(), {kOk, CrStatus::kLocAccess, kFlush});
}

TEST_F(EngineTest, slow_memory) {
  a.host.slow = b.host.slow = true;
  TestQp x(a), y(b);
  connect(x, y);
  fill(x, 5);
  for (uint32_t round = 0; round < 4; ++round) {
    y.post_receive(0, 8192);
    x.post(WrOp::kSend, 0, 8000);
    x.post(WrOp::kWrite, 0, 3000, y.rkey, TestQp::kAddress + 10000);
    x.post(WrOp::kRead, 32768, 3000, y.rkey, TestQp::kAddress + 10000);
    x.post(WrOp::kFetchAdd, 60000, 8, y.rkey, TestQp::kAddress + 40000).immediate = 1;
    x.ring(now);
    settle();
    expect_status(x.poll(), {kOk, kOk, kOk, kOk});
    expect_status(y.poll(), {kOk});
    EXPECT_TRUE(same(x, 32768, x, 0, 3000));
    EXPECT_TRUE(same(y, 0, x, 0, 8000));
  }
}

TEST_F(EngineTest, nothing_is_acknowledged_before_it_is_in_memory) {
  b.host.slow = true;
  hold_copies = true;
  TestQp x(a), y(b);
  connect(x, y);
  x.post(WrOp::kWrite, 0, 3000, y.rkey);
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.ring(now);
  exchange();
  EXPECT_EQ(count(b, Counter::kRoceTxAck), 0u);
  hold_copies = false;
  exchange();
  expect_status(x.poll(), {kOk, kOk});
}

TEST_F(EngineTest, memory_that_is_gone_when_it_answers) {
  b.host.slow = b.host.lost = true;
  TestQp x(a), y(b);
  connect(x, y);
  y.post_receive(0, 100);
  x.post(WrOp::kSend, 0, 100);
  x.ring(now);
  settle();
  expect_status(x.poll(), {CrStatus::kRemOperation});
  expect_status(y.poll(), {CrStatus::kLocAccess});
}

TEST_F(EngineTest, destroy_while_memory_answers) {
  a.host.slow = b.host.slow = true;
  hold_copies = true;
  TestQp x(a), y(b);
  connect(x, y);
  y.post_receive(0, 100);
  x.post(WrOp::kSend, 0, 100);
  x.ring(now);
  drain(a);
  a.host.finish_copies(*a.core, now);
  exchange();
  EXPECT_EQ(b.host.pending_copies(), 1u);
  EXPECT_EQ(b.roce().destroy_qp(now, y.qpn), Status::kOk);
  EXPECT_EQ(b.core->destroy_jfr(now, y.jfr), Status::kOk);
  EXPECT_EQ(b.core->destroy_jfc(y.jfc), Status::kOk);
  x.post(WrOp::kRead, 0, 100, y.rkey);
  drain(a);
  EXPECT_EQ(a.roce().destroy_qp(now, x.qpn), Status::kOk);
  hold_copies = false;
  settle();
  EXPECT_EQ(a.host.open_frames(), 0u);
  TestQp again(b);
  EXPECT_EQ(b.core->counters()[Counter::kRoceRxDropUnknownQp], 0u);
}

TEST_F(EngineTest, send_with_invalidate) {
  TestQp x(a), y(b);
  connect(x, y);
  y.post_receive(0, 100);
  TestQp other(b);  // whose memory goes
  x.post(WrOp::kSendInvalidate, 0, 10, other.rkey);
  x.post(WrOp::kWrite, 0, 8, other.rkey);
  x.ring(now);
  exchange();
  expect_status(x.poll(), {kOk, CrStatus::kRemAccessAbort});
  const auto received = y.poll();
  expect_status(received, {kOk});
  EXPECT_EQ(received[0].opcode, CrOpcode::kSendInvalidate);
  EXPECT_EQ(received[0].immediate, other.rkey);
}

TEST_F(EngineTest, shared_receives) {
  TestQp x1(a), x2(a), owner(b);
  TestQp y1(b, {.shared_jfr = owner.jfr}), y2(b, {.shared_jfr = owner.jfr});
  connect(x1, y1);
  connect(x2, y2);
  owner.post_receive(0, 100);
  owner.post_receive(100, 100);
  owner.post_receive(200, 100);
  x1.post(WrOp::kSend, 0, 10);
  x1.ring(now);
  x2.post(WrOp::kSend, 0, 20);
  x2.ring(now);
  exchange();
  expect_status(y1.poll(), {kOk});
  expect_status(y2.poll(), {kOk});
  QpAttributes to_error;
  to_error.qp_state = QpState::kError;
  EXPECT_EQ(b.roce().modify_qp(now, y1.qpn, to_error, 0), Status::kOk);
  Event event;
  ASSERT_EQ(b.core->poll_events({&event, 1}), 1u);
  EXPECT_EQ(event.kind, EventKind::kQpLastReceive);
  x2.post(WrOp::kSend, 0, 20);  // the third receive is still there for the other one
  x2.ring(now);
  exchange();
  expect_status(y2.poll(), {kOk});
}

TEST_F(EngineTest, reset_forgets) {
  TestQp x(a), y(b);
  connect(x, y);
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.ring(now);
  drain(a);
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.post_receive(0, 8);
  QpAttributes reset;
  EXPECT_EQ(a.roce().modify_qp(now, x.qpn, reset, 0), Status::kOk);
  EXPECT_EQ(x.sq.consumed.load(), 2u);
  EXPECT_EQ(x.sq.retired.load(), 2u);
  EXPECT_EQ(x.rq.consumed.load(), 1u);
  a.host.frames.clear();
  to_rts(x, y);
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.ring(now);
  exchange();
  expect_status(x.poll(), {kOk});
}

TEST_F(EngineTest, drains_in_sqd) {
  TestQp x(a), y(b);
  connect(x, y);
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.ring(now);
  drain(a);
  QpAttributes to;
  to.qp_state = QpState::kSqd;
  EXPECT_EQ(a.roce().modify_qp(now, x.qpn, to, 0), Status::kOk);
  x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.ring(now);
  Event event;
  EXPECT_EQ(a.core->poll_events({&event, 1}), 0u);
  exchange();
  expect_status(x.poll(), {kOk});
  ASSERT_EQ(a.core->poll_events({&event, 1}), 1u);
  EXPECT_EQ(event.kind, EventKind::kQpDrained);
  to.qp_state = QpState::kRts;
  EXPECT_EQ(a.roce().modify_qp(now, x.qpn, to, 0), Status::kOk);
  exchange();
  expect_status(x.poll(), {kOk});
}

TEST_F(EngineTest, full_completion_queue_loses_nothing) {
  TestQp x(a, {.cq_depth = 2}), y(b);
  connect(x, y);
  for (int i = 0; i < 6; ++i) x.post(WrOp::kWrite, 0, 8, y.rkey);
  x.ring(now);
  exchange();
  size_t all = 0;
  for (int i = 0; i < 10; ++i) {
    const auto some = x.poll();
    EXPECT_LE(some.size(), 2u);
    all += some.size();
    a.core->on_completions_read(now, x.jfc);
    exchange();
  }
  EXPECT_EQ(all, 6u);
}

// Two processes that find each other at the same time have two links, and each may send by another one.
TEST_F(EngineTest, links_may_cross) {
  TestQp x(a), y(b);
  connect(x, y, 1);
  for (TestNode* n : {&a, &b}) n->link = n->core->add_link({.mtu = 4096});  // what comes does so by this one
  fill(x, 3);
  x.post(WrOp::kWrite, 0, 5000, y.rkey);
  x.post(WrOp::kRead, 8000, 5000, y.rkey);
  x.ring(now);
  exchange();
  expect_status(x.poll(), {kOk, kOk});
  EXPECT_TRUE(same(x, 8000, x, 0, 5000));
}

// Packets for the queue pair that an address had before find nobody in the next instance there.
TEST_F(EngineTest, numbers_begin_anywhere_and_follow_each_other) {
  TestQp x(a), y(b), next(a);
  EXPECT_GE(x.qpn, kFirstDynamicId);
  EXPECT_NE(x.qpn, y.qpn);
  EXPECT_EQ(next.qpn, x.qpn + 1);
}

TEST_F(EngineTest, wrong_steps_change_nothing) {
  TestQp x(a), y(b);
  QpAttributes to = usual(QpState::kRtr, x, y);
  EXPECT_EQ(a.roce().modify_qp(now, x.qpn, to, kToRtr), Status::kInvalid);
  to.qp_state = QpState::kInit;
  EXPECT_EQ(a.roce().modify_qp(now, x.qpn, to, kToInit & ~kQpPort), Status::kInvalid);
  EXPECT_EQ(a.roce().modify_qp(now, x.qpn, to, kToInit), Status::kOk);
  to.qp_state = QpState::kRtr;
  for (auto spoil : std::vector<std::function<void(QpAttributes&)>>{
           [](QpAttributes& q) { q.path_mtu = 6; }, [](QpAttributes& q) { q.path_mtu = 0; },
           [](QpAttributes& q) { q.dest_qp_num = 1 << 24; }, [](QpAttributes& q) { q.rq_psn = 1 << 24; },
           [](QpAttributes& q) { q.max_dest_rd_atomic = 17; }, [](QpAttributes& q) { q.min_rnr_timer = 32; },
           [](QpAttributes& q) { q.ah_attr.link = 3; }}) {
    QpAttributes bad = to;
    spoil(bad);
    EXPECT_EQ(a.roce().modify_qp(now, x.qpn, bad, kToRtr), Status::kInvalid);
    EXPECT_EQ(state_of(x), QpState::kInit);
  }
  EXPECT_EQ(a.roce().modify_qp(now, 4711, to, kToRtr), Status::kInvalid);
}

// A NIC on the other side writes an IPv4 identification, which the sum covers and a socket does not hand over.
TEST_F(EngineTest, link_of_sockets) {
  for (bool lost : {true, false}) {
    for (TestNode* n : {&a, &b})
      n->link = n->core->add_link({.mtu = 4096, .roce_port = kUdpPort, .identification_lost = lost});
    filter = [&](TestNode&, Bytes& frame) {
      EXPECT_EQ(source_port(frame), kUdpPort);
      std::byte* l3 = &frame[wire::kEthSize];
      std::byte* end = &frame[frame.size() - wire::kIcrcSize];
      set_identification(&frame, 0xA6B9);
      wire::icrc_store(end, icrc_compute(l3, static_cast<size_t>(end - l3), false));
      set_identification(&frame, 0);
      return true;
    };
    TestQp x(a), y(b);
    connect(x, y);
    fill(x, 1);
    x.post(WrOp::kWrite, 0, 5000, y.rkey);
    x.ring(now);
    settle();
    expect_status(x.poll(), {lost ? kOk : CrStatus::kAckTimeout});
    EXPECT_EQ(same(x, 0, y, 0, 5000), lost);
    EXPECT_EQ(count(b, Counter::kRoceRxDropBadIcrc) == 0, lost);
  }
}

TEST_F(EngineTest, a_million_bytes_and_many_windows) {
  TestQp x(a, {.memory_bytes = 1 << 21}), y(b, {.memory_bytes = 1 << 21});
  connect(x, y, 1);
  fill(x, 9);
  x.post(WrOp::kWrite, 0, 1'000'001, y.rkey);
  x.post(WrOp::kRead, 1 << 20, 1'000'001, y.rkey);
  x.ring(now);
  exchange();
  expect_status(x.poll(), {kOk, kOk});
  EXPECT_TRUE(same(y, 0, x, 0, 1'000'001));
  EXPECT_TRUE(same(x, 1 << 20, x, 0, 1'000'001));
}

}  // namespace
}  // namespace ub::roce
