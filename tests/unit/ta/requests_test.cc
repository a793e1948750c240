// SPDX-License-Identifier: Apache-2.0
//
// Requests between two Cores: refusals, errors and order (UB Base Specification Rev 2.0, 7.3).
#include "lib/transport/wire/response_status.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

constexpr uint32_t kMtu = 1024;

class RequestTest : public UbPair {
 protected:
  void SetUp() override { connect(); }
  CrStatus outcome() {
    settle(milliseconds(100));
    const std::vector<Cqe> done = a.poll();
    EXPECT_EQ(done.size(), 1u);
    return done.empty() ? CrStatus::kWrUnhandled : done[0].status;
  }
  void receive_at_b(uint32_t offset, uint32_t length) {
    b.post_receive(b.receive_indices[0], b.receives[0], offset, length);
  }
  // Delivers what a has to say, and back.
  void round_trip() {
    sent_by(a);
    deliver(a, b);
    sent_by(b);
    deliver(b, a);
  }
};

TEST_F(RequestTest, write_read_and_atomic_do_what_they_say) {
  request(WrOp::kWrite, 5000);
  EXPECT_EQ(outcome(), CrStatus::kSuccess);
  EXPECT_TRUE(arrived(5000));
  std::fill_n(a.memory.begin(), 5000, std::byte{0});
  request(WrOp::kRead, 5000);
  EXPECT_EQ(outcome(), CrStatus::kSuccess);
  EXPECT_TRUE(arrived(5000));
  uint64_t word = 40;
  std::memcpy(b.memory.data() + UbNode::kMemory / 2, &word, sizeof word);
  request(WrOp::kFetchAdd, 8).immediate = 2;
  EXPECT_EQ(outcome(), CrStatus::kSuccess);
  std::memcpy(&word, a.memory.data(), sizeof word);
  EXPECT_EQ(word, 40u) << "the former value";
  std::memcpy(&word, b.memory.data() + UbNode::kMemory / 2, sizeof word);
  EXPECT_EQ(word, 42u);
}

TEST_F(RequestTest, what_the_target_does_not_allow_ends_with_an_error) {
  request(WrOp::kWrite, 8).token_value = UbNode::kToken + 1;
  EXPECT_EQ(outcome(), CrStatus::kRemAccessAbort);
  request(WrOp::kWrite, 8).remote_address += UbNode::kMemory / 2 - 7;
  EXPECT_EQ(outcome(), CrStatus::kRemAccessAbort);
  request(WrOp::kFetchAdd, 8).remote_address += 4;
  EXPECT_EQ(outcome(), CrStatus::kRemUnsupported);
}

TEST_F(RequestTest, a_send_goes_into_the_oldest_receive) {
  receive_at_b(0, 100);
  receive_at_b(200, 100);
  request(WrOp::kSend, 60);
  EXPECT_EQ(outcome(), CrStatus::kSuccess);
  const std::vector<Cqe> received = b.poll();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].user_ctx, 1000u);
  EXPECT_EQ(received[0].length, 60u);
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + 60, b.memory.begin()));
}

TEST_F(RequestTest, a_send_longer_than_its_receive_ends_both_with_an_error) {
  receive_at_b(0, 10);
  request(WrOp::kSend, 60);
  EXPECT_EQ(outcome(), CrStatus::kRemOperation);
  EXPECT_EQ(b.poll().at(0).status, CrStatus::kLocLen);
}

// 7.3.1.1: refused for want of a receive, it goes again after the time that the answer names: Retry, the same TASSN, a
// new PSN.
TEST_F(RequestTest, a_refused_send_goes_again_after_the_time_it_was_told) {
  request(WrOp::kSend, 60);
  const SeenPacket first = sent_by(a).at(0);
  EXPECT_FALSE(first.ta.req.retry);
  const Tassn tassn = first.ta.req.tassn;
  deliver(a, b);
  const SeenPacket rnr = sent_by(b).at(0);
  EXPECT_EQ(rnr.ta.rsp.rspst, wire::kRspRnr);
  const Instant again_at = now + wire::rnr_duration(rnr.ta.rsp.rspinfo);
  deliver(b, a);
  receive_at_b(0, 100);
  lost_from(a);  // an acknowledgement
  EXPECT_EQ(count(a, Counter::kTaRxRnr), 1u);
  while (a.core->next_deadline() < again_at) {
    wake(a);
    for (const SeenPacket& p : lost_from(a)) ASSERT_FALSE(p.data()) << "too early";
  }
  now = again_at;
  a.core->on_timer(now);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_FALSE(p.empty());
  EXPECT_EQ(p.back().ta.req.tassn, tassn);
  EXPECT_EQ(p.back().psn(), 101u);
  EXPECT_EQ(outcome(), CrStatus::kSuccess);
}

TEST_F(RequestTest, a_strongly_ordered_request_waits_for_ordered_ones_before_it) {
  request(WrOp::kWrite, 8).place_order = 1;
  request(WrOp::kWrite, 8).place_order = 2;
  EXPECT_EQ(sent_by(a).size(), 1u);
  round_trip();
  EXPECT_EQ(sent_by(a).at(0).ta.req.odr & wire::kOdrExecutionMask, wire::kOdrStrong);
}

TEST_F(RequestTest, a_request_without_order_waits_for_nobody) {
  request(WrOp::kWrite, 8).place_order = 2;
  request(WrOp::kWrite, 8).place_order = 1;
  request(WrOp::kRead, 8);
  EXPECT_EQ(sent_by(a).size(), 3u);
}

TEST_F(RequestTest, a_fenced_request_waits_for_reads_before_it) {
  request(WrOp::kRead, 8);
  request(WrOp::kWrite, 8).flags |= kWrFence;
  EXPECT_EQ(sent_by(a).size(), 1u);
  round_trip();
  std::vector<SeenPacket> p = sent_by(a);
  std::erase_if(p, [](const SeenPacket& seen) { return !seen.data(); });
  EXPECT_EQ(p.size(), 1u);
}

// A WRITE that notifies: its last packet leaves when the rest was answered.
TEST_F(RequestTest, a_notification_waits_for_the_bytes_before_it) {
  receive_at_b(0, 0);
  request(WrOp::kWriteImm, 2 * kMtu);
  EXPECT_EQ(sent_by(a).size(), 1u);
  round_trip();
  std::vector<SeenPacket> p = sent_by(a);
  std::erase_if(p, [](const SeenPacket& seen) { return !seen.data(); });
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].ta.req.opcode, wire::TaOpcode::kWriteImmediate);
  EXPECT_EQ(outcome(), CrStatus::kSuccess);
  EXPECT_EQ(b.poll().at(0).length, 2 * kMtu);
}

TEST_F(RequestTest, requests_complete_in_the_order_in_which_they_were_posted) {
  request(WrOp::kRead, 3 * kMtu);
  request(WrOp::kWrite, 8);
  request(WrOp::kFetchAdd, 8);
  settle(milliseconds(100));
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(done[i].user_ctx, i + 1);
}

// An answer counts once, and none of a request that is over.
TEST_F(RequestTest, a_repeated_answer_is_stale) {
  request(WrOp::kWrite, 8);
  request(WrOp::kWrite, 8).place_order = 1;
  sent_by(a);
  deliver(a, b);
  ASSERT_EQ(sent_by(b).at(0).ta.rsp.rspinfo, 1) << "one for both";
  deliver(b, a);
  EXPECT_EQ(a.poll().size(), 2u);
  EXPECT_EQ(count(a, Counter::kTaRxStaleAnswer), 0u);
  EXPECT_EQ(state(a).peers[channel(a).peer].lanes[0].unanswered, 0u);
}

}  // namespace
}  // namespace ub
