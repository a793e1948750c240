// SPDX-License-Identifier: Apache-2.0
//
// What queue pairs tell of their network, and how they heed it.
#include "lib/transport/roce/congestion.h"

#include "tests/unit/roce/engine_pair.h"

namespace ub::roce {
namespace {

class CongestionTest : public EnginePair {
 protected:
  CongestionTest() {
    const RoceConfig with{.max_qps = 8, .dcqcn = true, .line_bytes_per_second = 1'000'000'000};
    slow_a = std::make_unique<TestNode>(uint8_t{1}, with);
    slow_b = std::make_unique<TestNode>(uint8_t{2}, with);
  }
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
    EXPECT_EQ(static_cast<uint8_t>(frame[15]) & 3, 2);  // ECT(0)
    frame[15] |= std::byte{3};                          // congestion was met
    store_be16(frame.data() + 24, 0);
    uint32_t sum = 0;
    for (size_t i = 14; i < 34; i += 2) sum += load_be16(frame.data() + i);
    while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
    store_be16(frame.data() + 24, static_cast<uint16_t>(~sum));
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
      any = drain(listening_) | drain(a);
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
