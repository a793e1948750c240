// SPDX-License-Identifier: Apache-2.0
//
// What queue pairs tell of their network, and how they heed it.
#include "lib/transport/roce/congestion.h"

#include "lib/impair/congestion_mark.h"
#include "tests/unit/roce/engine_pair.h"

namespace ub::roce {
namespace {

class CongestionTest : public EnginePair {
 protected:
  CongestionTest() {
    const RoceConfig with{.max_qps = 8, .dcqcn = true};
    slow_a = std::make_unique<TestNode>(uint8_t{1}, with, 8u, false, kLine);
    slow_b = std::make_unique<TestNode>(uint8_t{2}, with, 8u, false, kLine);
  }
  static constexpr uint64_t kLine = 1'000'000'000;
  void slow_down(QpType type);

  std::unique_ptr<TestNode> slow_a, slow_b;
};

void CongestionTest::slow_down(QpType type) {
  TestQp x(*slow_a, {.type = type}), y(*slow_b, {.type = type});
  connect(x, y);
  x.post(WrOp::kWrite, 0, 32'768, y.rkey);
  x.ring(now);
  ASSERT_EQ(slow_a->core->poll_packets(now, 2), 2u);
  while (!slow_a->host.frames.empty()) {
    Bytes frame = slow_a->host.frames.front();
    slow_a->host.frames.pop_front();
    EXPECT_EQ(static_cast<uint8_t>(frame[15]) & 3, wire::kEcnEct0);
    EXPECT_TRUE(mark_congestion(frame));
    slow_b->core->on_packet(now, slow_b->link, frame);
  }
  drain(*slow_b);
  EXPECT_EQ(count(*slow_b, Counter::kRoceTxCnp), 1u);  // one in 50 us
  deliver(*slow_b, *slow_a);
  EXPECT_EQ(count(*slow_a, Counter::kRoceRxCnp), 1u);
  EXPECT_EQ(slow_a->core->poll_packets(now, 64), 1u);  // and the next one when the rate allows it
  const Instant next = slow_a->core->next_deadline();
  EXPECT_GT(next, now);
  EXPECT_LE(next, now + microseconds(3));  // 1 KB at half of 1 GB/s
  for (int i = 0; i < 200; ++i) {
    now = later(now, earlier(slow_a->core->next_deadline(), slow_b->core->next_deadline()));
    slow_a->core->on_timer(now);
    slow_b->core->on_timer(now);
    drain(*slow_a);
    deliver(*slow_a, *slow_b);
    drain(*slow_b);
    deliver(*slow_b, *slow_a);
  }
  const auto done = x.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kSuccess);
}

TEST_F(CongestionTest, a_mark_slows_the_sender_down) { slow_down(QpType::kRc); }

TEST_F(CongestionTest, a_mark_slows_an_unreliable_sender_down) { slow_down(QpType::kUc); }

TEST_F(CongestionTest, a_datagram_sender_heeds_only_whom_it_sends_to) {
  TestQp x(*slow_b, {.type = QpType::kUd});
  Engine<TestHost>& roce = slow_b->roce();
  QpAttributes to;
  to.qp_state = QpState::kInit;
  ASSERT_EQ(roce.modify_qp(now, x.qpn, to, kQpPkey | kQpPort | kQpQkey), Status::kOk);
  to.qp_state = QpState::kRtr;
  ASSERT_EQ(roce.modify_qp(now, x.qpn, to, 0), Status::kOk);
  to.qp_state = QpState::kRts;
  ASSERT_EQ(roce.modify_qp(now, x.qpn, to, kQpSendPsn), Status::kOk);
  Packet cnp{};
  cnp.bth.opcode = Opcode::kCnp;
  cnp.bth.becn = true;
  cnp.bth.dest_qp = x.qpn;
  const Bytes of_a = frame_of(packet_bytes(cnp));
  slow_b->core->on_packet(now, slow_b->link, of_a);
  EXPECT_EQ(count(*slow_b, Counter::kRoceRxDropWrongPeer), 1u);
  EXPECT_EQ(count(*slow_b, Counter::kRoceRxCnp), 0u);

  AddressHandleConfig path;
  path.attributes = {slow_b->link, slow_b->gid, slow_a->gid, 0};
  Wqe& w = x.post(WrOp::kSend, 0, 100);
  ASSERT_EQ(roce.create_ah(path, &w.target), Status::kOk);
  w.token_id = 17;
  x.ring(now);
  drain(*slow_b);
  slow_b->core->on_packet(now, slow_b->link, of_a);
  EXPECT_EQ(count(*slow_b, Counter::kRoceRxCnp), 1u);
}

// ---- what is heeded --------------------------------------------------------------------------------------------

/// A queue pair of `slow_b` whose rate is half of its line, 1 GB/s, and another one of `slow_a`.
class SlowTest : public CongestionTest {
 protected:
  static constexpr uint32_t kHalf = 500'000;

  CoreState& state() { return const_cast<CoreState&>(slow_b->core->state()); }
  State& roce_state() { return const_cast<State&>(*slow_b->core->roce_state()); }
  const cc::Flow& flow() { return roce_state().qps[1].flow; }
  uint32_t rate() { return flow().dcqcn.rate_kbytes_per_second; }
  void mark(const TestQp& q) {
    Packet cnp{};
    cnp.bth.opcode = Opcode::kCnp;
    cnp.bth.becn = true;
    cnp.bth.dest_qp = q.qpn;
    slow_b->core->on_packet(now, slow_b->link, frame_of(packet_bytes(cnp)));
  }
  Duration time_of_last_frame() { return cc::time_of(slow_b->host.frames.back().size(), uint64_t{kHalf} * 1000); }
  void late_packets_of(WrOp op);
};

// The memory of three packets answers at once, and they leave one by one.
void SlowTest::late_packets_of(WrOp op) {
  TestQp x(*slow_b), y(*slow_a);
  connect(x, y);
  mark(x);
  slow_b->host.slow = true;
  TestQp &asks = op == WrOp::kRead ? y : x, &asked = op == WrOp::kRead ? x : y;
  asks.post(op, 0, 3 * 1024, asked.rkey);
  asks.ring(now);
  drain(*slow_a);
  deliver(*slow_a, *slow_b);
  drain(*slow_b);
  ASSERT_EQ(slow_b->host.pending_copies(), 3u);
  slow_b->host.finish_copies(*slow_b->core, now);
  for (size_t left = 1; left <= 3; ++left) {
    drain(*slow_b);
    EXPECT_EQ(slow_b->host.frames.size(), left);
    now = flow().next_packet;
    slow_b->core->on_timer(now);
  }
}

// Nobody acknowledges its packets, so no timer of theirs would wake it either.
TEST_F(SlowTest, whatever_an_unreliable_one_tells_it_is_woken_when_its_flow_says) {
  TestQp x(*slow_b, {.type = QpType::kUc}), y(*slow_a, {.type = QpType::kUc});
  connect(x, y);
  tell_marked(state(), roce_state(), 1);
  EXPECT_EQ(slow_b->core->next_deadline(), flow().timer_at);
  tell_sent(state(), roce_state(), 1, Psn(0), 1000, false);
  EXPECT_EQ(slow_b->core->next_deadline(), now + microseconds(2));
  EXPECT_EQ(flow().next_packet, now + microseconds(2));
}

TEST_F(SlowTest, a_window_that_grows_gives_it_its_turn) {
  TestQp x(*slow_b), y(*slow_a);
  connect(x, y);
  drain(*slow_b);
  const auto look = [&](uint16_t window) {
    roce_state().qps[1].flow.window_packets = window;
    look_at_flow(state(), roce_state(), 1);
    const bool has_turn = slow_b->core->has_packets(Acks::kNow);
    drain(*slow_b);
    return has_turn;
  };
  EXPECT_FALSE(look(8));
  EXPECT_TRUE(look(9));
  EXPECT_FALSE(look(9));
}

TEST_F(SlowTest, a_rate_that_was_cut_stays_on_every_way_to_rts) {
  TestQp x(*slow_b), y(*slow_a);
  const auto go = [&](QpState state, uint32_t mask) {
    return slow_b->roce().modify_qp(now, x.qpn, usual(state, x, y), mask);
  };
  ASSERT_EQ(go(QpState::kInit, kToInit), Status::kOk);
  ASSERT_EQ(go(QpState::kRtr, kToRtr), Status::kOk);
  mark(x);  // answers to READs leave from now on
  EXPECT_EQ(rate(), kHalf);
  ASSERT_EQ(go(QpState::kRts, kToRts), Status::kOk);
  EXPECT_EQ(rate(), kHalf);
  ASSERT_EQ(go(QpState::kRts, 0), Status::kOk);
  EXPECT_EQ(rate(), kHalf);
  ASSERT_EQ(go(QpState::kSqd, 0), Status::kOk);
  ASSERT_EQ(go(QpState::kRts, 0), Status::kOk);
  EXPECT_EQ(rate(), kHalf);
  ASSERT_EQ(go(QpState::kReset, 0), Status::kOk);
  to_rts(x, y);
  EXPECT_EQ(rate(), 0u) << "that is another connection";
}

TEST_F(SlowTest, an_answer_is_charged_with_the_bytes_that_it_has) {
  TestQp x(*slow_b), y(*slow_a);
  connect(x, y);
  mark(x);
  y.post(WrOp::kRead, 0, 100, x.rkey);
  y.ring(now);
  drain(*slow_a);
  deliver(*slow_a, *slow_b);
  drain(*slow_b);
  ASSERT_EQ(slow_b->host.frames.size(), 1u);
  EXPECT_EQ(flow().next_packet, now + time_of_last_frame());
}

TEST_F(SlowTest, so_is_an_answer_whose_memory_is_late) {
  TestQp x(*slow_b), y(*slow_a);
  connect(x, y);
  mark(x);
  slow_b->host.slow = true;
  y.post(WrOp::kRead, 0, 100, x.rkey);
  y.ring(now);
  drain(*slow_a);
  deliver(*slow_a, *slow_b);
  drain(*slow_b);
  ASSERT_EQ(slow_b->host.frames.size(), 0u);
  slow_b->host.finish_copies(*slow_b->core, now);
  drain(*slow_b);
  ASSERT_EQ(slow_b->host.frames.size(), 1u);
  EXPECT_EQ(flow().next_packet, now + time_of_last_frame());
}

TEST_F(SlowTest, requests_whose_memory_is_late_leave_no_faster_than_others) { late_packets_of(WrOp::kWrite); }

TEST_F(SlowTest, answers_whose_memory_is_late_leave_no_faster_than_others) { late_packets_of(WrOp::kRead); }

// ---- what is told ----------------------------------------------------------------------------------------------

class ListeningTest : public EnginePair {
 protected:
  ListeningTest() : x_(listening_), y_(a) { connect(x_, y_); }

  const Qp& qp() { return listening_.core->roce_state()->qps[1]; }
  const cc::Listener& heard() { return qp().flow.listener; }
  void pass(Duration d) { now += d; }
  void write(uint32_t bytes) {
    x_.post(WrOp::kWrite, 0, bytes, y_.rkey);
    x_.ring(now);
    drain(listening_);
  }

  void go_on() {
    for (bool any = true; any;) {
      any = drain(listening_);
      any |= drain(a);
      any |= deliver(listening_, a);
      any |= deliver(a, listening_);
    }
  }

  TestNode listening_{2, {.max_qps = 8}, 8, true};
  TestQp x_, y_;
};

TEST_F(ListeningTest, every_packet_of_an_acknowledgement_tells_its_round_trip) {
  write(3 * 1024);
  deliver(listening_, a);
  pass(microseconds(7));
  go_on();
  EXPECT_EQ(heard().round_trips, 3u);
  EXPECT_EQ(heard().least_round_trip_ns, 7000u);
  EXPECT_EQ(heard().losses + heard().timeouts + heard().marks, 0u);
}

// Karn
TEST_F(ListeningTest, a_packet_that_went_again_tells_none) {
  write(3 * 1024);
  listening_.host.frames.clear();
  now = listening_.core->next_deadline();
  listening_.core->on_timer(now);
  EXPECT_EQ(heard().timeouts, 1u);
  go_on();
  ASSERT_EQ(x_.poll().size(), 1u);
  EXPECT_EQ(heard().round_trips, 0u);
  write(100);
  pass(microseconds(2));
  go_on();
  EXPECT_EQ(heard().round_trips, 1u);
  EXPECT_EQ(heard().least_round_trip_ns, 2000u);
}

TEST_F(ListeningTest, a_gap_is_a_loss_once) {
  write(6 * 1024);
  listening_.host.frames.erase(listening_.host.frames.begin() + 2);
  deliver(listening_, a);
  pass(microseconds(2));
  go_on();
  ASSERT_EQ(x_.poll().size(), 1u);
  EXPECT_EQ(heard().losses, 1u);
  EXPECT_EQ(heard().timeouts, 0u);
  EXPECT_EQ(heard().round_trips, 2u) << "those before the gap";
}

// The request of a READ left once, and the first of its responses answers it.
TEST_F(ListeningTest, a_read_tells_one_round_trip) {
  x_.post(WrOp::kRead, 0, 4 * 1024, y_.rkey);
  x_.ring(now);
  drain(listening_);
  deliver(listening_, a);
  pass(microseconds(4));
  go_on();
  ASSERT_EQ(x_.poll().size(), 1u);
  EXPECT_EQ(heard().round_trips, 1u);
  EXPECT_EQ(heard().least_round_trip_ns, 4000u);
}

TEST_F(ListeningTest, a_notification_is_a_mark) {
  Packet cnp{};
  cnp.bth.opcode = Opcode::kCnp;
  cnp.bth.becn = true;
  cnp.bth.dest_qp = x_.qpn;
  listening_.core->on_packet(now, listening_.link, frame_of(packet_bytes(cnp)));
  EXPECT_EQ(heard().marks, 1u);
}

TEST_F(ListeningTest, a_flow_ends_with_its_queue_pair) {
  EXPECT_EQ(listening_.core->roce_state()->send_times.blocks().in_use(), 1u);
  QpAttributes reset;
  reset.qp_state = QpState::kReset;
  ASSERT_EQ(listening_.roce().modify_qp(now, x_.qpn, reset, 0), Status::kOk);
  EXPECT_EQ(listening_.core->roce_state()->send_times.blocks().in_use(), 0u);
  EXPECT_FALSE(has_flow(qp()));
  to_rts(x_, y_);
  EXPECT_EQ(listening_.core->roce_state()->send_times.blocks().in_use(), 1u);
  ASSERT_EQ(listening_.roce().destroy_qp(now, x_.qpn), Status::kOk);
  EXPECT_EQ(listening_.core->roce_state()->send_times.blocks().in_use(), 0u);
}

using NoFlowTest = EnginePair;

TEST_F(NoFlowTest, without_a_choice_there_is_no_flow) {
  TestQp x(a), y(b);
  connect(x, y);
  EXPECT_FALSE(has_flow(a.core->roce_state()->qps[1]));
  EXPECT_EQ(a.core->roce_state()->send_times.blocks().capacity(), 0u);
}

}  // namespace
}  // namespace ub::roce
