// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/roce/dcqcn.h"

#include "tests/unit/roce/engine_pair.h"

namespace ub::roce {
namespace {

constexpr uint32_t kLine = 1'000'000;  // KB/s: 1 byte in a nanosecond

TEST(Dcqcn, unlimited_until_told_otherwise) {
  RateState s;
  on_paced(s, {}, 1 << 30, kLine);
  on_rate_timer(s, {1'000'000'000}, kLine);
  EXPECT_TRUE(may_leave(s, {}));
  EXPECT_TRUE(rate_deadline(s, {}).is_never());
}

TEST(Dcqcn, the_first_cut_is_by_half) {
  RateState s;
  on_cnp(s, {1000}, kLine);
  EXPECT_EQ(s.rate, kLine / 2);
  EXPECT_TRUE(may_leave(s, {1000}));
  on_paced(s, {1000}, 1000, kLine);
  EXPECT_FALSE(may_leave(s, {2999}));
  EXPECT_TRUE(may_leave(s, {3000}));
  EXPECT_EQ(rate_deadline(s, {1000}), Instant{3000});
}

TEST(Dcqcn, comes_back_half_of_the_way_five_times_then_beyond) {
  RateState s;
  on_cnp(s, {}, kLine);
  on_cnp(s, {}, kLine);  // target: half of the line
  const uint32_t target = s.target;
  EXPECT_EQ(target, kLine / 2);
  Instant now{};
  for (int i = 0; i < 5; ++i) {
    const uint32_t before = s.rate;
    on_rate_timer(s, now, kLine);
    EXPECT_EQ(s.rate, before);  // early
    now = s.next_step;
    on_rate_timer(s, now, kLine);
    EXPECT_EQ(s.rate, before + (target - before + 1) / 2);
  }
  EXPECT_EQ(s.target, target);
  on_rate_timer(s, s.next_step, kLine);
  EXPECT_GT(s.target, target);
  for (int i = 0; i < 1000 && s.rate != 0; ++i) on_rate_timer(s, s.next_step, kLine);
  EXPECT_EQ(s.rate, 0u);  // as fast as the line
}

TEST(Dcqcn, bytes_count_too) {
  RateState s;
  on_cnp(s, {}, kLine);
  const uint32_t before = s.rate;
  on_paced(s, {}, 9'999'999, kLine);
  EXPECT_EQ(s.rate, before);
  on_paced(s, {}, 1, kLine);
  EXPECT_GT(s.rate, before);
}

TEST(Dcqcn, never_below_the_least) {
  RateState s;
  for (int i = 0; i < 1000; ++i) on_cnp(s, {}, kLine);
  EXPECT_EQ(s.rate, 1250u);
}

// ---- in the engine ---------------------------------------------------------------------------------------------

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

}  // namespace
}  // namespace ub::roce
