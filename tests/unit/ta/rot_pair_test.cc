// SPDX-License-Identifier: Apache-2.0
//
// Both ends of ROT: strong requests leave together, and the numbers of those whose bytes are gone are filled (UB Base
// Specification Rev 2.0, 7.3.3.3).
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

class RotPair : public UbPair {
 protected:
  RotPair() : UbPair({.rot = true}) {}
  void SetUp() override {
    connect();
    Wqe& first = request(WrOp::kWrite, 8);
    first.place_order = 2;
    settle(milliseconds(1));
    a.poll();
    ASSERT_EQ(state(b).contexts.in_use(), 1u);
  }
  void write(uint8_t place_order, uint32_t length = 8) {
    Wqe& w = a.post(a.sends, WrOp::kWrite, to_b, length);
    w.place_order = place_order;
    w.remote_address = b.address() + UbNode::kMemory / 2;
    w.token_id = b.segment.token_id;
    w.token_value = UbNode::kToken;
    a.core->on_posted(now, a.jetty);
  }
  std::vector<CrStatus> outcomes() {
    std::vector<CrStatus> all;
    for (const Cqe& c : a.poll()) all.push_back(c.status);
    return all;
  }
};

TEST_F(RotPair, strong_requests_leave_together_and_all_are_executed) {
  for (int i = 0; i < 20; ++i) write(2);
  EXPECT_EQ(sent_by(a).size(), 20u);
  settle(milliseconds(1));
  EXPECT_EQ(outcomes(), std::vector<CrStatus>(20, CrStatus::kSuccess));
}

TEST_F(RotPair, the_number_of_a_request_whose_bytes_are_gone_is_filled) {
  for (const uint32_t length : {8u, 3 * 1024u}) {
    write(1, length);
    lost_from(a);
    ASSERT_EQ(a.core->unregister_segment(now, a.segment.handle), Status::kOk);
    a.register_memory();
    write(2);
    settle(seconds(1));
    EXPECT_EQ(outcomes(), (std::vector<CrStatus>{CrStatus::kLocAccess, CrStatus::kSuccess})) << length;
    EXPECT_EQ(count(a, Counter::kTpTxFake), 0u);
  }
}

TEST_F(RotPair, what_fills_a_number_asks_for_an_acknowledgement) {
  write(1);
  ASSERT_EQ(a.core->unregister_segment(now, a.segment.handle), Status::kOk);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].ta.opcode(), wire::TaOpcode::kWrite);
  EXPECT_EQ(p[0].ta.ma.length, 0u);
  EXPECT_TRUE(p[0].rtp.ack_req);
}

TEST_F(RotPair, a_half_sent_request_whose_bytes_are_gone_fails_at_the_target_too) {
  write(1, 8 * 1024);
  ASSERT_EQ(a.core->poll_packets(now, 3), 3u);
  ASSERT_EQ(a.core->unregister_segment(now, a.segment.handle), Status::kOk);
  a.register_memory();
  write(2);
  settle(seconds(1));
  EXPECT_EQ(outcomes(), (std::vector<CrStatus>{CrStatus::kLocAccess, CrStatus::kSuccess}));
}

TEST_F(RotPair, the_target_forgets_a_context_that_is_no_longer_used) {
  ASSERT_EQ(a.core->destroy_jetty(now, a.jetty), Status::kOk);
  settle(milliseconds(1));
  EXPECT_EQ(state(b).contexts.in_use(), 0u);
}

}  // namespace
}  // namespace ub
