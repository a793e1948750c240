// SPDX-License-Identifier: Apache-2.0
// Packets of queue pairs that wait for memory: several of them together, in order, and none that nobody wants any more.
#include "tests/unit/roce/held_pair.h"

namespace ub::roce {
namespace {

constexpr CrStatus kOk = CrStatus::kSuccess, kFlush = CrStatus::kWrFlush, kAccess = CrStatus::kLocAccess;

// ---- requests --------------------------------------------------------------------------------------------------

TEST_F(HeldTest, requests_are_gathered_together_and_leave_in_order) {
  TestQp x(a), y(b);
  connect(x, y);
  fill(x, 1);
  a.host.slow = true;
  write(x, 0, 2 * kMtu, y);
  write(x, 4096, 100, y);
  EXPECT_EQ(sent(x), Psns{});
  EXPECT_EQ(a.host.pending_copies(), 3u);
  EXPECT_EQ(a.host.open_frames(), 0u) << "nobody waits behind them";
  finish(x, 1);
  EXPECT_FALSE(a.core->has_packets()) << "the first one is awaited";
  finish(x, 1);
  EXPECT_EQ(sent(x), Psns{});
  finish(x, 0);
  exchange();
  expect_status(x, {kOk, kOk});
  EXPECT_TRUE(same(y, 0, x, 0, 2 * kMtu));
  EXPECT_TRUE(same(y, 4096, x, 4096, 100));
  expect_nothing_held();
}

TEST_F(HeldTest, a_queue_pair_has_so_many_and_builds_others_as_they_leave) {
  TestQp x(a), y(b);
  connect(x, y);
  a.host.slow = true;
  write(x, 0, 20 * kMtu, y);
  sent(x);
  EXPECT_EQ(held(x).size(), kHeldOfSender);
  finish(x, 0);
  EXPECT_EQ(sent(x), Psns{0});
  EXPECT_EQ(held(x).size(), kHeldOfSender);
  EXPECT_EQ(held(x).front(), 1u);
}

TEST_F(HeldTest, without_room_in_the_port_the_first_one_waits) {
  TestQp x(a), y(b);
  connect(x, y);
  a.host.slow = true;
  write(x, 0, 2 * kMtu, y);
  sent(x);
  finish_all(x);
  a.host.full = true;
  EXPECT_EQ(sent(x), Psns{});
  EXPECT_TRUE(a.core->has_packets());
  a.host.full = false;
  EXPECT_EQ(sent(x), (Psns{0, 1}));
}

TEST_F(HeldTest, a_read_and_what_asks_for_an_acknowledgement_keep_their_place) {
  TestQp x(a), y(b);
  connect(x, y);
  a.host.slow = true;
  write(x, 0, 8, y);
  read(x, 4096, 2 * kMtu, y);
  write(x, 8192, 8, y);
  EXPECT_EQ(sent(x), Psns{});
  EXPECT_EQ(held(x), (Psns{0, 1, 3})) << "the answer to the READ has two numbers";
  finish_all(x);
  const std::vector<Packet> all = sent_by(a);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_FALSE(all[0].bth.ack_req);
  EXPECT_TRUE(all[1].bth.ack_req);
  EXPECT_TRUE(all[2].bth.ack_req) << "nothing follows";
}

TEST_F(HeldTest, what_waits_takes_room_in_the_window) {
  TestNode narrow(3, {.max_qps = 8, .window_packets = 2});
  TestQp x(narrow), y(b);
  connect(x, y);
  narrow.host.slow = true;
  write(x, 0, 4 * kMtu, y);
  sent(x);
  EXPECT_EQ(held(x), (Psns{0, 1}));
}

// ---- going back ------------------------------------------------------------------------------------------------

/// The first packet of three is lost, two more wait for memory.
class GoingBackTest : public HeldTest {
 protected:
  GoingBackTest() : x(a), y(b) {
    connect(x, y);
    fill(x, 1);
    write(x, 0, 3 * kMtu, y);
    drain(a);
    a.host.frames.pop_front();
    a.host.slow = true;
    write(x, 8192, 2 * kMtu, y);
    drain(a);
    EXPECT_EQ(held(x), (Psns{3, 4}));
    EXPECT_EQ(a.host.pending_copies(), 2u);
  }
  /// What waits goes again from the first packet on, and everything ends well.
  void expect_all_again() {
    drain(a);
    EXPECT_EQ(held(x), (Psns{0, 1, 2, 3, 4}));
    EXPECT_EQ(a.host.pending_copies(), 7u);
    a.host.lost = true;  // nobody waits for these any more
    finish(x, 0);
    finish(x, 0);
    a.host.lost = false;
    finish_all(x);
    quicken();
    expect_status(x, {kOk, kOk});
    EXPECT_TRUE(same(y, 0, x, 0, 3 * kMtu));
    EXPECT_TRUE(same(y, 8192, x, 8192, 2 * kMtu));
    expect_nothing_held();
  }

  TestQp x, y;
};

TEST_F(GoingBackTest, after_a_nak_they_are_built_again) {
  deliver(a, b);
  drain(b);
  deliver(b, a);
  ASSERT_EQ(count(b, Counter::kRoceTxNakSequence), 1u);
  expect_all_again();
}

TEST_F(GoingBackTest, after_a_timeout_they_are_built_again) {
  a.host.frames.clear();
  timeout(x);
  ASSERT_EQ(count(a, Counter::kRoceTimeout), 1u);
  expect_all_again();
}

// A retransmission that waits is not begun anew because memory is slower than the peer's patience.
TEST_F(GoingBackTest, another_timeout_gives_up_nothing_that_still_goes_next) {
  a.host.frames.clear();
  timeout(x);
  drain(a);
  ASSERT_EQ(held(x), (Psns{0, 1, 2, 3, 4}));
  timeout(x);
  ASSERT_EQ(count(a, Counter::kRoceTimeout), 2u);
  drain(a);
  EXPECT_EQ(held(x), (Psns{0, 1, 2, 3, 4}));
  EXPECT_EQ(a.host.pending_copies(), 7u) << "nothing was gathered again";
}

TEST_F(HeldTest, retransmissions_that_were_acknowledged_meanwhile_do_not_leave_and_those_behind_them_do) {
  TestQp x(a), y(b);
  connect(x, y);
  write(x, 0, 2 * kMtu, y);
  drain(a);
  deliver(a, b);
  drain(b);  // its acknowledgement is late
  write(x, 8192, 3 * kMtu, y);
  drain(a);
  a.host.frames.clear();
  a.host.slow = true;
  timeout(x);
  drain(a);
  ASSERT_EQ(held(x), (Psns{0, 1, 2, 3, 4}));
  deliver(b, a);
  drain(a);
  EXPECT_EQ(held(x), (Psns{2, 3, 4}));
  EXPECT_EQ(a.host.pending_copies(), 5u) << "nothing was gathered again";
  fail(x, 0);
  finish_all(x);
  EXPECT_EQ(sent(x), (Psns{2, 3, 4}));
}

TEST_F(HeldTest, after_an_rnr_nak_nothing_waits_until_the_time_has_come) {
  TestQp x(a), y(b);
  connect(x, y);
  fill(x, 1);
  x.post(WrOp::kSend, 0, 100);
  x.ring(now);
  drain(a);
  a.host.slow = true;
  write(x, 4096, 100, y);
  drain(a);
  ASSERT_EQ(held(x), Psns{1});
  deliver(a, b);
  drain(b);
  deliver(b, a);
  ASSERT_EQ(count(b, Counter::kRoceTxRnr), 1u);
  drain(a);
  EXPECT_EQ(held(x), Psns{});
  y.post_receive(8192, 4096);
  timeout(x);
  drain(a);
  EXPECT_EQ(held(x), (Psns{0, 1}));
  quicken();
  expect_status(x, {kOk, kOk});
  EXPECT_TRUE(same(y, 8192, x, 0, 100));
  EXPECT_TRUE(same(y, 4096, x, 4096, 100));
  expect_nothing_held();
}

// ---- without credits -------------------------------------------------------------------------------------------

// SENDs were built while nothing was known of receives; then it becomes known that there are none.
TEST_F(HeldTest, a_packet_that_became_a_probe_is_built_again_and_asks) {
  TestQp x(a), y(b);
  connect(x, y);
  write(x, 4096, 8, y);
  drain(a);
  a.host.slow = true;
  for (int i = 0; i < 2; ++i) x.post(WrOp::kSend, 0, 8);
  x.ring(now);
  drain(a);
  ASSERT_EQ(held(x), (Psns{1, 2}));
  deliver(a, b);
  drain(b);
  deliver(b, a);
  expect_status(x, {kOk});
  drain(a);
  EXPECT_EQ(held(x), Psns{1}) << "a probe goes alone";
  finish_all(x);
  const std::vector<Packet> all = sent_by(a);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].bth.ack_req);
}

// ---- another path, another state -------------------------------------------------------------------------------

TEST_F(HeldTest, with_another_path_they_are_built_again) {
  TestQp x(a), y(b);
  connect(x, y);
  a.host.slow = true;
  write(x, 0, 2 * kMtu, y);
  drain(a);
  ASSERT_EQ(go(x, QpState::kSqd), Status::kOk);
  QpAttributes other;
  other.ah_attr = {a.link, a.gid, b.gid, 0x20};
  ASSERT_EQ(go(x, QpState::kSqd, kQpPath, other), Status::kOk);
  EXPECT_EQ(held(x), Psns{});
  drain(a);
  EXPECT_EQ(held(x), (Psns{0, 1}));
  finish_all(x);
  drain(a);
  ASSERT_EQ(a.host.frames.size(), 2u);
  for (const Bytes& frame : a.host.frames) EXPECT_EQ(frame[15], std::byte{0x20}) << "the traffic class of the new path";
}

TEST_F(HeldTest, whoever_leaves_rts_gives_them_up) {
  for (QpState end : {QpState::kReset, QpState::kError}) {
    TestQp x(a), y(b);
    connect(x, y);
    a.host.slow = b.host.slow = true;
    write(x, 0, 2 * kMtu, y);
    read(y, 0, 2 * kMtu, x);
    drain(b);
    deliver(b, a);
    drain(a);
    ASSERT_EQ(held(x).size() + held_answers(x, y).size(), 4u);
    ASSERT_EQ(go(x, end), Status::kOk);
    EXPECT_EQ(frames(x).in_use_count(), 0u);
    drain(a);
    expect_nothing_held();
    a.host.finish_copies(*a.core, now);
    drain(a);
    EXPECT_TRUE(a.host.frames.empty());
    EXPECT_EQ(a.roce().destroy_qp(now, x.qpn), Status::kOk);
    EXPECT_EQ(b.roce().destroy_qp(now, y.qpn), Status::kOk);
  }
}

// Its successor has the same record and the same places.
TEST_F(HeldTest, what_was_awaited_for_a_destroyed_one_is_not_its_successors) {
  auto first = std::make_unique<TestQp>(a);
  TestQp y(b);
  connect(*first, y);
  a.host.slow = true;
  write(*first, 0, 2 * kMtu, y);
  drain(a);
  ASSERT_EQ(a.roce().destroy_qp(now, first->qpn), Status::kOk);
  TestQp x(a), z(b);
  connect(x, z);
  fill(x, 9);
  write(x, 0, 2 * kMtu, z);
  drain(a);
  ASSERT_EQ(a.host.pending_copies(), 4u);
  fail(x, 0);
  fail(x, 0);
  EXPECT_EQ(sent(x), Psns{});
  quicken();
  expect_status(x, {kOk});
  EXPECT_TRUE(same(z, 0, x, 0, 2 * kMtu));
}

TEST_F(HeldTest, those_of_a_link_that_goes_down_go_with_it) {
  TestQp x(a), y(b);
  connect(x, y);
  a.host.slow = true;
  write(x, 0, 2 * kMtu, y);
  drain(a);
  a.core->link_down(now, a.link);
  EXPECT_EQ(state_of(x), QpState::kError);
  expect_nothing_held();
}

// ---- memory that fails -----------------------------------------------------------------------------------------

TEST_F(HeldTest, a_request_whose_bytes_do_not_come_fails_when_those_before_it_are_complete) {
  TestQp x(a), y(b), other(a);
  connect(x, y);
  fill(x, 3);
  a.host.slow = true;
  for (uint32_t i = 0; i < 3; ++i) x.post(WrOp::kWrite, i * 4096, 2 * kMtu, y.rkey, kThere + i * 4096);
  x.wqes[1].sge = other.sge(0, 2 * kMtu);
  x.ring(now);
  drain(a);
  ASSERT_EQ(a.host.pending_copies(), 6u);
  fail(x, 3);
  ASSERT_EQ(a.core->unregister_segment(now, other.segment), Status::kOk);
  finish(x, 0);
  finish(x, 0);
  finish(x, 0);
  EXPECT_EQ(sent(x), (Psns{0, 1, 2})) << "up to the first half of the second request";
  EXPECT_EQ(held(x), (Psns{0, 1})) << "these go again, so that they are acknowledged";
  finish_all(x);
  const std::vector<Packet> again = sent_by(a);
  ASSERT_EQ(again.size(), 2u);
  for (const Packet& p : again) EXPECT_TRUE(p.bth.ack_req);
  hold_copies = false;
  settle();
  expect_status(x, {kOk, kAccess, kFlush});
  EXPECT_TRUE(same(y, 0, x, 0, 2 * kMtu));
  expect_nothing_held();
}

// The segment of the second request is gone before its packet is built; the first one waits for its bytes.
TEST_F(HeldTest, a_request_that_cannot_be_built_does_not_take_those_before_it_along) {
  for (QpType type : {QpType::kRc, QpType::kUc}) {
    TestQp x(a, {.type = type}), y(b, {.type = type}), other(a);
    connect(x, y);
    fill(x, 3);
    a.host.slow = true;
    for (uint32_t i = 0; i < kHeldOfSender - 1; ++i) write(x, i * 8, 8, y);
    Wqe& w = x.post(WrOp::kWrite, 0, 2 * kMtu, y.rkey, kThere + 8192);
    w.sge = other.sge(0, 2 * kMtu);
    x.ring(now);
    drain(a);
    ASSERT_EQ(held(x).size(), kHeldOfSender) << "its first half";
    ASSERT_EQ(a.core->unregister_segment(now, other.segment), Status::kOk);
    std::vector<CrStatus> wanted(kHeldOfSender - 1, kOk);
    wanted.push_back(kAccess);
    hold_copies = false;
    settle();
    expect_status(x, wanted);
    EXPECT_TRUE(same(y, 0, x, 0, 8 * (kHeldOfSender - 1)));
    expect_nothing_held();
    hold_copies = true;
  }
}

// ---- unreliable ones -------------------------------------------------------------------------------------------

TEST_F(HeldTest, an_unreliable_request_is_complete_when_its_last_packet_has_left) {
  TestQp x(a, {.type = QpType::kUc}), y(b, {.type = QpType::kUc});
  connect(x, y);
  fill(x, 1);
  a.host.slow = true;
  write(x, 0, 2 * kMtu, y);
  write(x, 4096, 8, y);
  drain(a);
  ASSERT_EQ(a.host.pending_copies(), 3u);
  finish(x, 2);
  finish(x, 0);
  EXPECT_EQ(sent_by(a).size(), 1u);
  expect_status(x, {});
  finish_all(x);
  EXPECT_EQ(sent_by(a).size(), 3u);
  expect_status(x, {kOk, kOk});
  deliver(a, b);
  EXPECT_TRUE(same(y, 0, x, 0, 2 * kMtu));
  EXPECT_TRUE(same(y, 4096, x, 4096, 8));
}

/// Node a has a second link. Datagrams of one queue pair take both in turn.
class HeldDatagrams : public HeldTest {
 protected:
  static constexpr uint32_t kQkey = 7;

  HeldDatagrams() : second(a.core->add_link({.mtu = 4096})), x(a, {.type = QpType::kUd}), y(b, {.type = QpType::kUd}) {
    for (TestQp* q : {&x, &y}) {
      QpAttributes to;
      to.qkey = kQkey;
      EXPECT_EQ(go(*q, QpState::kInit, kQpPkey | kQpPort | kQpQkey, to), Status::kOk);
      EXPECT_EQ(go(*q, QpState::kRtr), Status::kOk);
      EXPECT_EQ(go(*q, QpState::kRts, kQpSendPsn), Status::kOk);
    }
    a.host.slow = true;
  }
  void send(uint32_t offset, uint32_t link, uint8_t traffic_class) {
    AddressHandleConfig config;
    config.attributes = {link, a.gid, b.gid, traffic_class};
    uint32_t ah = 0;
    EXPECT_EQ(a.roce().create_ah(config, &ah), Status::kOk);
    Wqe& w = x.post(WrOp::kSend, offset, 8);
    w.target = ah;
    w.token_id = y.qpn;
    w.token_value = kQkey;
    x.ring(now);
  }

  uint32_t second;
  TestQp x, y;
};

TEST_F(HeldDatagrams, each_goes_its_own_way) {
  send(0, a.link, 0x10);
  send(8, second, 0x20);
  drain(a);
  ASSERT_EQ(a.host.pending_copies(), 2u);
  std::vector<uint32_t> links;
  frames(x).each(record(x).held_requests, [&](const HeldFrame& h) { links.push_back(h.link); });
  EXPECT_EQ(links, (std::vector<uint32_t>{a.link, second}));
  finish_all(x);
  drain(a);
  ASSERT_EQ(a.host.frames.size(), 2u);
  EXPECT_EQ(a.host.frames[0][15], std::byte{0x10});
  EXPECT_EQ(a.host.frames[1][15], std::byte{0x20});
  for (const Bytes& frame : a.host.frames) parse(frame);
  expect_status(x, {kOk, kOk});
}

TEST_F(HeldDatagrams, a_link_that_goes_down_ends_only_those_who_hold_something_for_it) {
  send(0, a.link, 0);
  send(8, second, 0);
  drain(a);
  finish(x, 0);
  drain(a);
  expect_status(x, {kOk});
  a.core->link_down(now, a.link);
  EXPECT_EQ(state_of(x), QpState::kRts) << "that one has left";
  a.core->link_down(now, second);
  EXPECT_EQ(state_of(x), QpState::kSqe);
  expect_nothing_held();
}

}  // namespace
}  // namespace ub::roce
