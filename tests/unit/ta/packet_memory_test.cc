// SPDX-License-Identifier: Apache-2.0
//
// Where packets get their bytes from: memory that answers at once or later, memory that is gone, and what may wait in
// the port.
#include "lib/transport/ta/request_state.h"
#include "lib/transport/wire/response_status.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

class PacketMemory : public UbPair {
 protected:
  explicit PacketMemory(const UbOptions& o = {}) : UbPair(o) {}
  void SetUp() override { connect(); }
  CoreState& state_of(UbNode& n) { return const_cast<CoreState&>(n.core->state()); }
  std::vector<CrStatus> outcomes() {
    settle(milliseconds(100));
    std::vector<CrStatus> all;
    for (const Cqe& c : a.poll()) all.push_back(c.status);
    return all;
  }
};
using Outcomes = std::vector<CrStatus>;

// ---- memory that answers at once -------------------------------------------------------------------------------

class FastMemory : public PacketMemory {
 protected:
  static UbOptions options() {
    UbOptions o;
    o.core.slow_memory = false;
    return o;
  }
  FastMemory() : PacketMemory(options()) {}
};

TEST_F(FastMemory, packets_leave_at_once_with_their_bytes) {
  a.core->look(true);
  request(WrOp::kWrite, 1024 + 5);
  EXPECT_EQ(sent_by(a).size(), 2u);
  EXPECT_EQ(a.host.noted(Stage::kPayloadGathered),
            (std::vector<Note>{{Stage::kPayloadGathered, 1, 100}, {Stage::kPayloadGathered, 1, 101}}));
  EXPECT_EQ(outcomes(), Outcomes{CrStatus::kSuccess});
  EXPECT_TRUE(arrived(1024 + 5));
}

TEST_F(FastMemory, bytes_that_are_gone_end_their_request_and_a_fake_takes_the_place_of_the_packet) {
  request(WrOp::kWrite, 8);
  a.sends.slots[0].sge.segment = 0;
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_TRUE(p[0].rtp.fake);
  EXPECT_EQ(p[0].psn(), 100u);
  EXPECT_EQ(a.host.open_frames(), 0u);
  EXPECT_EQ(outcomes(), Outcomes{CrStatus::kLocAccess});
}

// ---- memory that is gone ---------------------------------------------------------------------------------------

TEST_F(PacketMemory, a_response_that_loses_its_bytes_before_its_turn_is_one_fake) {
  request(WrOp::kRead, 8);
  sent_by(a);
  deliver(a, b);
  ASSERT_EQ(b.core->unregister_segment(now, b.segment.handle), Status::kOk);
  std::vector<SeenPacket> p = sent_by(b);
  std::erase_if(p, [](const SeenPacket& seen) { return !seen.data(); });
  ASSERT_EQ(p.size(), 2u);
  EXPECT_TRUE(p[0].rtp.fake && p[0].rtp.last);
  EXPECT_EQ(p[1].ta.rsp.rspst, wire::kRspError);
  EXPECT_EQ(outcomes(), Outcomes{CrStatus::kRemAccessAbort});
}

TEST_F(PacketMemory, who_looks_is_told_of_a_response_that_stops) {
  request(WrOp::kRead, 8 * 1024);
  sent_by(a);
  deliver(a, b);
  ASSERT_EQ(b.core->poll_packets(now, 3), 4u) << "three of data, and an acknowledgement";
  b.core->look(true);
  ASSERT_EQ(b.core->unregister_segment(now, b.segment.handle), Status::kOk);
  EXPECT_EQ(b.host.noted(Stage::kMessageStopped), (std::vector<Note>{{Stage::kMessageStopped, 1, 0}}));
}

class LargestWindow : public PacketMemory {
 protected:
  static UbOptions options() {
    UbOptions o;
    o.core.window_packets = tp::kMaxWindow;
    return o;
  }
  LargestWindow() : PacketMemory(options()) {}
};
TEST_F(LargestWindow, a_fake_waits_for_an_acknowledgement_where_each_place_is_taken) {
  for (uint32_t packets = 0; packets <= tp::kMaxWindow; packets += 60) request(WrOp::kWrite, 60 * 1024);
  drain(a);
  ASSERT_EQ(a.host.frames.size(), tp::kMaxWindow);
  ASSERT_TRUE(channel(a).mid_message);
  const Bytes first = a.host.frames[0];
  a.host.frames.clear();
  ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kError), Status::kOk);
  EXPECT_TRUE(sent_by(a).empty());
  b.core->on_packet(now, b.link, first);
  settle(milliseconds(100));
  EXPECT_FALSE(channel(a).mid_message);
  EXPECT_EQ(channel(a).outstanding(), 0u);
}

// ---- memory that answers later ---------------------------------------------------------------------------------

class HeldPackets : public PacketMemory {
 protected:
  void SetUp() override {
    connect();
    hold_copies = true;
  }
  // b holds a response; what it answers behind that has no bytes of memory and is held, too.
  void hold_response() {
    request(WrOp::kRead, 8);
    sent_by(a);
    b.host.slow = true;
    deliver(a, b);
    sent_by(b);
    a.host.frames.clear();
    b.host.frames.clear();
    b.host.slow = false;
    ASSERT_EQ(channel(b).held.count, 1u);
  }
  // b answers what a asked for; an answer that is behind a held packet is held, too.
  void serve() {
    sent_by(a);
    deliver(a, b);
    sent_by(b, Acks::kMayWait);
  }
  // How many of the packets that b holds, and now may send, were said to be nobody's hurry.
  uint32_t may_wait_of_held(uint32_t held) {
    EXPECT_EQ(channel(b).held.count, held);
    const uint32_t before = b.host.may_wait;
    b.host.finish_copies(*b.core, now);
    const size_t sent = b.core->poll_packets(now, held, Acks::kMayWait);
    EXPECT_EQ(sent, held);
    return b.host.may_wait - before;
  }
};

TEST_F(HeldPackets, a_response_does_not_wait_in_the_port) {
  hold_response();
  EXPECT_EQ(may_wait_of_held(1), 0u);
}

TEST_F(HeldPackets, an_answer_without_bytes_may_wait_in_the_port) {
  hold_response();
  request(WrOp::kWrite, 8).token_value = UbNode::kToken + 1;
  serve();
  EXPECT_EQ(may_wait_of_held(2), 1u);
}

TEST_F(HeldPackets, an_answer_with_a_value_does_not_wait_in_the_port) {
  hold_response();
  request(WrOp::kFetchAdd, 8);
  serve();
  EXPECT_EQ(may_wait_of_held(2), 0u);
}

TEST_F(HeldPackets, an_answer_that_goes_again_does_not_wait_in_the_port) {
  hold_response();
  request(WrOp::kWrite, 8).token_value = UbNode::kToken + 1;
  serve();
  EXPECT_EQ(may_wait_of_held(2), 1u);
  lost_from(b);
  b.host.slow = true;
  retransmission_timeout(b);
  sent_by(b, Acks::kMayWait);
  b.host.slow = false;
  EXPECT_EQ(may_wait_of_held(2), 0u);
}

TEST_F(PacketMemory, a_request_without_bytes_does_not_wait_in_the_port) {
  const uint32_t before = a.host.may_wait;
  request(WrOp::kRead, 8);
  request(WrOp::kWrite, 0);
  EXPECT_EQ(sent_by(a).size(), 2u);
  EXPECT_EQ(a.host.may_wait, before);
}

// The peer is not to blame for what waits for memory here.
TEST_F(HeldPackets, a_channel_that_waits_for_memory_is_not_held_back_by_its_peer) {
  a.host.slow = true;
  request(WrOp::kWrite, 5);
  sent_by(a);
  ASSERT_EQ(channel(a).held.count, 1u);
  state_of(a).peers[channel(a).peer].lanes[0].unanswered = kLaneSegmentsInFlight;
  request(WrOp::kWrite, 6);
  sent_by(a);
  ASSERT_FALSE(channel(a).queues.empty());
  EXPECT_FALSE(channel(a).held_back);
  a.host.finish_copies(*a.core, now);
  EXPECT_EQ(sent_by(a).size(), 1u);
  EXPECT_TRUE(channel(a).held_back) << "now it is";
}

// The record of a send queue, and the numbers of its requests, may be those of another one meanwhile.
TEST_F(HeldPackets, bytes_that_do_not_come_for_a_queue_that_is_gone_are_no_loss_of_the_next_one) {
  a.host.slow = true;
  request(WrOp::kWrite, 5);
  sent_by(a);
  const uint32_t queue = state(a).jettys[state(a).ids[a.jetty].record].queue;
  ASSERT_EQ(a.core->destroy_jetty(now, a.jetty), Status::kOk);
  UbNode::Ring ring;
  const uint32_t next = a.make_jetty(Mode::kRm, a.jfr, ring);
  ASSERT_EQ(state(a).jettys[state(a).ids[next].record].queue, queue);
  Wqe& w = a.post(ring, WrOp::kWrite, to_b, 8);
  w.remote_address = b.address();
  w.token_id = b.segment.token_id;
  w.token_value = UbNode::kToken;
  a.core->on_posted(now, next);
  sent_by(a);
  ASSERT_EQ(a.host.pending_copies(), 2u);
  a.host.lost = true;
  a.host.finish_copy(*a.core, now);
  a.host.lost = false;
  a.host.finish_copies(*a.core, now);
  a.host.slow = false;
  EXPECT_EQ(outcomes(), Outcomes{CrStatus::kSuccess});
  ASSERT_EQ(a.core->destroy_jetty(now, next), Status::kOk);
}

}  // namespace
}  // namespace ub
