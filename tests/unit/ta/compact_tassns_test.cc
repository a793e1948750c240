// SPDX-License-Identifier: Apache-2.0
//
// The compact transport on a wire that loses (UB Base Specification Rev 2.0, 7.3.1.1): requests that use TASSNs and are
// not on the target's record of results, because another transport carries them or because they are READs.
#include "tests/unit/ta/lossy_pair.h"

namespace ub {
namespace {

// The target compares TASSNs, which have 16 bits, with the newest one that came by this channel.
class RepeatsElsewhere : public RepeatsTest {
 protected:
  void SetUp() override {
    RepeatsTest::SetUp();
    request(WrOp::kRead, 4 * kMtu);  // sets up a channel of RTP
    settle(seconds(1));
    a.poll();
  }
  void write(uint32_t offset) {
    request(WrOp::kWrite, 8, offset);
    settle(seconds(1));
    EXPECT_EQ(only_status(a), CrStatus::kSuccess);
    EXPECT_TRUE(arrived(8, offset)) << offset;
  }
};
TEST_F(RepeatsElsewhere, a_write_behind_65536_others_is_not_taken_for_a_repeat_of_the_one_with_its_tassn) {
  write(0);
  send_elsewhere(0xFFFF);
  write(64);
}
TEST_F(RepeatsElsewhere, a_write_behind_40000_others_is_not_taken_for_an_old_one) {
  write(0);
  send_elsewhere(40'000);
  write(64);
  EXPECT_EQ(count(b, Counter::kCtpRxOld), 0u);
}
// READs are not on record, and use TASSNs all the same.
TEST_F(RepeatsTest, a_write_behind_40000_reads_is_not_taken_for_an_old_one) {
  request(WrOp::kWrite, 8);
  for (int i = 0; i < 40'000; ++i) {
    request(WrOp::kRead, 8);
    settle(microseconds(100));
    ASSERT_FALSE(a.poll().empty()) << i;
  }
  request(WrOp::kWrite, 8, 64);
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_TRUE(arrived(8, 64));
  EXPECT_EQ(count(b, Counter::kCtpRxOld), 0u);
  EXPECT_GT(count(a, Counter::kCtpTx), 40'000u);
}
// A request that does not leave uses its TASSN all the same, and the target never learns of it.
TEST_F(RepeatsElsewhere, a_write_behind_40000_that_do_not_leave_is_not_taken_for_an_old_one) {
  write(0);
  for (int i = 0; i < 40'000; ++i) {
    request(WrOp::kWrite, 8).sge.segment = 0;
    exchange();
    ASSERT_EQ(only_status(a), CrStatus::kLocAccess) << i;
  }
  write(64);
  EXPECT_EQ(count(b, Counter::kCtpRxOld), 0u);
}
// The peer lies about what it was sent. It is a TASSN of the next round, which the queue has not begun.
TEST_F(RepeatsElsewhere, an_answer_to_what_was_never_sent_does_not_keep_the_queue_from_ctp) {
  for (int i = 0; i < 3; ++i) {
    send_elsewhere(16'000);
    write(64);
  }
  answer(a.jetty, Tassn(3));
  write(128);
  EXPECT_EQ(count(a, Counter::kCtpTx), 4u);
}
TEST_F(RepeatsElsewhere, a_queue_that_used_many_tassns_elsewhere_stays_with_rtp) {
  write(0);
  send_elsewhere(ta::kMostBetween - 2);
  write(64);
  EXPECT_EQ(count(a, Counter::kCtpTx), 2u) << "not so many yet";
  send_elsewhere(ta::kMostBetween - 1);
  write(128);
  write(192);
  EXPECT_EQ(count(a, Counter::kCtpTx), 2u);
  send_elsewhere(0x10000 - ta::kMostBetween);
  write(256);
  EXPECT_EQ(count(a, Counter::kCtpTx), 2u) << "its TASSNs have come round";
}

// There are places for so many queues. A request that waits for the answer to an older one has its place already.
TEST_F(RepeatsElsewhere, a_request_that_waits_has_a_place) {
  bool lossy = true;
  filter = [&](UbNode& from, Bytes& frame) { return &from == &a || wire::has_link_header(frame) || !lossy; };
  request(WrOp::kRead, 4 * kMtu).place_order = 1;  // by RTP, and its answers are lost
  request(WrOp::kWrite, 8).place_order = 2;
  exchange();
  std::vector<UbNode::Ring> rings(ta::kRepeatQueues);
  for (UbNode::Ring& ring : rings) {
    write_from(ring, another_queue(ring));
    exchange();
  }
  EXPECT_EQ(count(a, Counter::kCtpTx), ta::kRepeatQueues - 1) << "RTP carries the last one";
  lossy = false;
  settle(seconds(1));
  EXPECT_EQ(a.poll().size(), 2 + ta::kRepeatQueues);
  EXPECT_EQ(count(a, Counter::kCtpTx), ta::kRepeatQueues);
}

}  // namespace
}  // namespace ub
