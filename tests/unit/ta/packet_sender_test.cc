// SPDX-License-Identifier: Apache-2.0
//
// The packets of a channel as they leave (UB Base Specification Rev 2.0, 6.7.1): what each of them says, which goes
// next, what takes the place of bytes that are gone, and memory that answers later.
#include "lib/transport/tp/owed_ack.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/wire/response_status.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

constexpr uint32_t kMtu = 1024;
using Psns = std::vector<uint32_t>;

class PacketSenderTest : public UbPair {
 protected:
  explicit PacketSenderTest(const UbOptions& o = {}) : UbPair(o) {}
  void SetUp() override { connect(); }
  // Everything is answered, and the bytes are there.
  void expect_success(uint32_t length) {
    settle(milliseconds(100));
    const std::vector<Cqe> done = a.poll();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, CrStatus::kSuccess);
    EXPECT_TRUE(arrived(length));
  }
  void deliver_only(UbNode& from, UbNode& to, std::initializer_list<size_t> which) {
    for (size_t i : which) to.core->on_packet(now, to.link, from.host.frames[i]);
    (&from == &a ? delivered_of_a : delivered_of_b).assign(from.host.frames.begin(), from.host.frames.end());
    from.host.frames.clear();
  }
  // What deliver_only() saw of it, delivered or not.
  const std::vector<Bytes>& frames_of(const UbNode& node) const {
    return &node == &a ? delivered_of_a : delivered_of_b;
  }
  std::vector<Bytes> delivered_of_a, delivered_of_b;
};

// ---- what packets say ------------------------------------------------------------------------------------------

// 6.7.1: MTU packets, Last on the last, one TPMSN.
TEST_F(PacketSenderTest, a_message_is_cut_into_numbered_packets) {
  request(WrOp::kWrite, 2 * kMtu + 5);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(p[i].psn(), 100 + i);
    EXPECT_EQ(p[i].rtp.tpmsn, Tpmsn(0));
    EXPECT_EQ(p[i].rtp.last, i == 2);
    EXPECT_EQ(p[i].rtp.src_tpn, channel(a).tpn);
    EXPECT_EQ(p[i].rtp.dst_tpn, channel(b).tpn);
    EXPECT_EQ(p[i].ta.payload_len, i == 2 ? 5 : kMtu);
    EXPECT_EQ(p[i].rtp.padding, i == 2 ? 3 : 0);
    EXPECT_FALSE(p[i].rtp.fake || p[i].rtp.ack_req);
    EXPECT_TRUE(p[i].sealed);
  }
  expect_success(2 * kMtu + 5);
}

TEST_F(PacketSenderTest, messages_are_numbered_one_by_one) {
  request(WrOp::kWrite, kMtu + 1);
  request(WrOp::kWrite, 1);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 3u);
  EXPECT_EQ(p[1].rtp.tpmsn, Tpmsn(0));
  EXPECT_EQ(p[2].rtp.tpmsn, Tpmsn(1));
  EXPECT_TRUE(p[1].rtp.last && p[2].rtp.last);
}

// 6.7.1: a retransmission has the PSN, TPMSN and bytes of the first time, and demands an acknowledgement.
TEST_F(PacketSenderTest, a_packet_that_goes_again_is_the_same_packet) {
  request(WrOp::kWrite, 3 * kMtu + 1);
  const std::vector<SeenPacket> first = lost_from(a);
  retransmission_timeout(a);
  const std::vector<SeenPacket> again = sent_by(a);
  ASSERT_EQ(again.size(), first.size());
  for (size_t i = 0; i < first.size(); ++i) {
    wire::RtpHeader expected = first[i].rtp;
    expected.ack_req = true;
    EXPECT_EQ(again[i].rtp, expected) << i;
    EXPECT_EQ(again[i].ta.req, first[i].ta.req) << i;
    ASSERT_EQ(again[i].ta.payload_len, first[i].ta.payload_len);
    EXPECT_EQ(std::memcmp(again[i].ta.payload, first[i].ta.payload, first[i].ta.payload_len), 0) << i;
  }
  EXPECT_EQ(channel(a).next_psn, Psn(104)) << "no new number was used";
  expect_success(3 * kMtu + 1);
}

TEST_F(PacketSenderTest, only_what_was_lost_goes_again_and_before_what_is_new) {
  request(WrOp::kWrite, 4 * kMtu);
  sent_by(a);
  deliver_only(a, b, {0, 2, 3});
  request(WrOp::kWrite, 1);
  sent_by(b);
  deliver(b, a);
  EXPECT_EQ(psns(sent_by(a)), (Psns{101, 104}));
}

TEST_F(PacketSenderTest, an_answer_that_was_lost_goes_again) {
  request(WrOp::kWrite, 1);
  sent_by(a);
  deliver(a, b);
  const std::vector<SeenPacket> first = lost_from(b);
  ASSERT_EQ(first.size(), 2u) << "the answer, then the acknowledgement";
  EXPECT_EQ(first[0].ta.rsp.opcode, wire::TaOpcode::kTaack);
  EXPECT_EQ(first[1].rtp.opcode, wire::TpOpcode::kAck);
  retransmission_timeout(b);
  const std::vector<SeenPacket> again = sent_by(b);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].psn(), first[0].psn());
  EXPECT_EQ(again[0].ta.rsp, first[0].ta.rsp);
}

TEST_F(PacketSenderTest, a_response_of_a_read_goes_again_from_its_memory) {
  request(WrOp::kRead, 3 * kMtu);
  sent_by(a);
  deliver(a, b);
  sent_by(b);
  deliver_only(b, a, {0, 2});
  sent_by(a);
  deliver(a, b);
  const std::vector<SeenPacket> again = sent_by(b);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].psn(), 101u);
  EXPECT_EQ(std::memcmp(again[0].ta.payload, b.memory.data() + UbNode::kMemory / 2 + kMtu, kMtu), 0);
}

// ---- how much may leave ----------------------------------------------------------------------------------------

class SmallWindow : public PacketSenderTest {
 protected:
  static UbOptions options() {
    UbOptions o;
    o.core.window_packets = 128;
    o.core.max_channels = 16;  // so that the pool of descriptors has some to spare for answers
    o.core.first_psn = 0xFFFFC0;
    return o;
  }
  SmallWindow() : PacketSenderTest(options()) {}
};

// 6.7.1
TEST_F(SmallWindow, no_more_leaves_than_it_holds_and_the_rest_when_it_opens) {
  request(WrOp::kWrite, 64 * 1024);
  request(WrOp::kWrite, 64 * 1024);
  request(WrOp::kWrite, 64 * 1024);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 128u);
  EXPECT_EQ(channel(a).outstanding(), 128u);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_EQ(p[i].rtp.ack_req, i >= 95) << i;
  deliver(a, b);
  sent_by(b);
  deliver(b, a);
  const std::vector<SeenPacket> rest = sent_by(a);
  EXPECT_EQ(rest.size(), 65u) << "64 of data, and an acknowledgement";
}

class LossyLink : public PacketSenderTest {
 protected:
  static UbOptions options() {
    UbOptions o;
    o.link.lossless = false;
    return o;
  }
  LossyLink() : PacketSenderTest(options()) {}
};

TEST_F(LossyLink, no_more_leaves_than_the_congestion_window_holds) {
  request(WrOp::kWrite, 64 * 1024);
  EXPECT_EQ(sent_by(a).size(), 32u);
}

TEST_F(PacketSenderTest, a_budget_is_kept) {
  request(WrOp::kWrite, 10 * kMtu);
  EXPECT_EQ(a.core->poll_packets(now, 3), 3u);
  EXPECT_EQ(a.core->poll_packets(now, 100), 7u);
  EXPECT_FALSE(a.core->has_packets());
}

TEST_F(PacketSenderTest, without_room_in_the_port_nothing_is_lost_or_numbered) {
  request(WrOp::kWrite, 3 * kMtu);
  a.host.full = true;
  EXPECT_EQ(a.core->poll_packets(now, 64), 0u);
  EXPECT_EQ(channel(a).next_psn, Psn(100));
  EXPECT_TRUE(a.core->has_packets()) << "it comes back";
  a.host.full = false;
  EXPECT_EQ(psns(sent_by(a)), (Psns{100, 101, 102}));
  expect_success(3 * kMtu);
}

TEST_F(PacketSenderTest, without_room_in_the_port_an_acknowledgement_stays_owed) {
  request(WrOp::kWrite, 1);
  sent_by(a);
  deliver(a, b);
  b.host.full = true;
  EXPECT_EQ(b.core->poll_packets(now, 64), 0u);
  EXPECT_TRUE(channel(b).on_ack_list);
  b.host.full = false;
  EXPECT_EQ(sent_by(b).size(), 2u);
}

// Who has datagrams without end takes no turn of a channel, and the other way round.
TEST_F(PacketSenderTest, channels_and_datagrams_go_first_in_turn) {
  const uint32_t target = a.import(now, b, Mode::kUm);
  request(WrOp::kWrite, 20 * kMtu);
  for (int i = 0; i < 20; ++i) a.post(a.datagrams, WrOp::kSend, target, 16);
  a.core->on_posted(now, a.datagram_jetty);
  std::vector<bool> unreliable;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(a.core->poll_packets(now, 1), 1u);
    unreliable.push_back(parse(a.host.frames.back()).rtp.opcode == wire::TpOpcode::kUnreliable);
  }
  for (int i = 2; i < 8; ++i) EXPECT_EQ(unreliable[i], !unreliable[i - 1]) << i;
}

// ---- acknowledgements ------------------------------------------------------------------------------------------

TEST_F(PacketSenderTest, one_acknowledgement_covers_the_packets_of_a_drive) {
  request(WrOp::kWrite, 20 * kMtu);
  sent_by(a);
  deliver(a, b);
  const std::vector<SeenPacket> p = sent_by(b);
  ASSERT_EQ(p.size(), 2u);
  EXPECT_EQ(p[1].rtp.opcode, wire::TpOpcode::kAck);
  EXPECT_EQ(p[1].psn(), 119u);
  EXPECT_EQ(p[1].rtp.tpmsn, Tpmsn(0)) << "the newest complete message";
  EXPECT_EQ(p[1].rtp.rspst, wire::kRspOk);
  EXPECT_TRUE(p[1].sealed);
}

// 6.2.1: before the first complete message.
TEST_F(PacketSenderTest, before_the_first_message_is_complete_acknowledgements_name_none) {
  request(WrOp::kWrite, 2 * kMtu);
  sent_by(a);
  deliver_only(a, b, {0});
  const std::vector<SeenPacket> p = sent_by(b);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].rtp.tpmsn, Tpmsn(wire::kTpmsnNone));
}

// 6.2.3
TEST_F(PacketSenderTest, a_gap_is_told_by_a_selective_acknowledgement) {
  request(WrOp::kWrite, 6 * kMtu);
  sent_by(a);
  deliver_only(a, b, {0, 1, 3, 5});
  const std::vector<SeenPacket> p = sent_by(b);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].rtp.opcode, wire::TpOpcode::kSack);
  EXPECT_EQ(p[0].psn(), 101u);
  EXPECT_EQ(p[0].sack.max_rcv_psn, Psn(105));
  EXPECT_EQ(p[0].sack.bit_count(), 512u);
  EXPECT_EQ(p[0].sack.word(0), 0b10101u);
  EXPECT_TRUE(p[0].sealed);
}

TEST_F(PacketSenderTest, an_acknowledgement_that_may_wait_waits) {
  request(WrOp::kWrite, 2 * kMtu);
  sent_by(a);
  deliver_only(a, b, {0});
  EXPECT_TRUE(sent_by(b, Acks::kMayWait).empty());
  EXPECT_TRUE(channel(b).on_ack_list);
  wake(b);
  EXPECT_EQ(sent_by(b, Acks::kMayWait).size(), 1u) << "100 us are over";
  EXPECT_FALSE(channel(b).on_ack_list);
}

// Whoever drives sleeps until then: a deadline that is over would wake it for nothing.
TEST_F(PacketSenderTest, an_acknowledgement_that_left_leaves_no_deadline) {
  request(WrOp::kWrite, 2 * kMtu);
  sent_by(a);
  const Instant before = b.core->next_deadline();
  deliver_only(a, b, {0});
  EXPECT_EQ(b.core->next_deadline(), now + tp::kAckDelay);
  EXPECT_EQ(b.core->next_deadline(Acks::kMayWait), before) << "for whoever looks soon enough anyway";
  now += tp::kAckDelay / 2;
  EXPECT_TRUE(sent_by(b, Acks::kMayWait).empty());
  EXPECT_EQ(b.core->next_deadline(), now + tp::kAckDelay / 2) << "it still waits";
  EXPECT_EQ(sent_by(b).size(), 1u);
  EXPECT_EQ(b.core->next_deadline(), before);
}

TEST_F(PacketSenderTest, an_acknowledgement_without_room_in_the_port_is_tried_again_after_its_delay) {
  request(WrOp::kWrite, 2 * kMtu);
  sent_by(a);
  deliver_only(a, b, {0});
  now += tp::kAckDelay * 2;
  b.host.full = true;
  EXPECT_EQ(b.core->poll_packets(now, 64, Acks::kMayWait), 0u);
  EXPECT_EQ(b.core->next_deadline(), now + tp::kAckDelay);
}

TEST_F(PacketSenderTest, one_that_is_demanded_does_not_wait) {
  request(WrOp::kWrite, 2 * kMtu);
  sent_by(a);
  deliver_only(a, b, {0, 0});
  EXPECT_EQ(sent_by(b, Acks::kMayWait).size(), 1u) << "of a duplicate";
}

TEST_F(PacketSenderTest, one_that_tells_of_a_gap_waits_1_us) {
  request(WrOp::kWrite, 2 * kMtu);
  sent_by(a);
  deliver_only(a, b, {1});
  EXPECT_TRUE(sent_by(b, Acks::kMayWait).empty());
  now += tp::kAckDelayAtGap;
  EXPECT_EQ(sent_by(b, Acks::kMayWait).size(), 1u);
}

// ---- bytes that are gone: fake packets (6.2.1, F) --------------------------------------------------------------

TEST_F(PacketSenderTest, packets_whose_bytes_are_gone_are_replaced_each_under_its_number) {
  request(WrOp::kWrite, 3 * kMtu);
  lost_from(a);
  ASSERT_EQ(a.core->unregister_segment(now, a.segment.handle), Status::kOk);
  retransmission_timeout(a);
  const std::vector<SeenPacket> p = sent_by(a);
  EXPECT_EQ(psns(p), (Psns{100, 101, 102})) << "the last one, too";
  for (const SeenPacket& fake : p) {
    EXPECT_TRUE(fake.rtp.fake && fake.rtp.last && fake.rtp.ack_req);
    EXPECT_EQ(fake.rtp.tpmsn, Tpmsn(0));
    EXPECT_EQ(fake.transport_bytes, 0u);
    EXPECT_TRUE(fake.sealed);
  }
  EXPECT_EQ(channel(a).next_psn, Psn(103));
  settle(milliseconds(100));
  EXPECT_EQ(channel(a).outstanding(), 0u);
  EXPECT_EQ(count(b, Counter::kRxMessageVanished), 1u) << "once, with all its fakes";
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kLocAccess);
}

TEST_F(PacketSenderTest, a_half_sent_message_whose_bytes_are_gone_ends_with_one_fake) {
  request(WrOp::kWrite, 8 * kMtu);
  ASSERT_EQ(a.core->poll_packets(now, 3), 3u);
  ASSERT_EQ(a.core->unregister_segment(now, a.segment.handle), Status::kOk);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 4u);
  EXPECT_TRUE(p[3].rtp.fake && p[3].rtp.last);
  EXPECT_EQ(p[3].psn(), 103u);
  EXPECT_EQ(p[3].rtp.tpmsn, Tpmsn(0));
  a.register_memory();
  request(WrOp::kWrite, 1);
  EXPECT_EQ(lost_from(a).back().rtp.tpmsn, Tpmsn(1)) << "the fake used up its message's number";
}

TEST_F(SmallWindow, a_fake_is_exempt_from_it) {
  for (int i = 0; i < 3; ++i) request(WrOp::kWrite, 50 * kMtu);
  ASSERT_EQ(lost_from(a).size(), 128u);
  ASSERT_TRUE(channel(a).mid_message);
  ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kError), Status::kOk);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_TRUE(p[0].rtp.fake);
  EXPECT_EQ(channel(a).outstanding(), 129u);
}

TEST_F(PacketSenderTest, a_half_sent_message_that_is_flushed_ends_with_a_fake) {
  request(WrOp::kWrite, 8 * kMtu);
  ASSERT_EQ(a.core->poll_packets(now, 3), 3u);
  ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kError), Status::kOk);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 4u);
  EXPECT_TRUE(p[3].rtp.fake && p[3].rtp.last);
  EXPECT_FALSE(channel(a).mid_message);
}

TEST_F(PacketSenderTest, a_response_that_loses_its_bytes_ends_with_a_fake_and_an_error) {
  request(WrOp::kRead, 8 * kMtu);
  sent_by(a);
  deliver(a, b);
  ASSERT_EQ(b.core->poll_packets(now, 3), 4u) << "three of data, and an acknowledgement";
  ASSERT_EQ(b.core->unregister_segment(now, b.segment.handle), Status::kOk);
  std::vector<SeenPacket> p = sent_by(b);
  std::erase_if(p, [](const SeenPacket& seen) { return !seen.data(); });
  ASSERT_EQ(p.size(), 5u);
  EXPECT_TRUE(p[3].rtp.fake && p[3].rtp.last);
  EXPECT_EQ(p[3].rtp.tpmsn, Tpmsn(0));
  EXPECT_EQ(p[4].rtp.tpmsn, Tpmsn(1));
  EXPECT_EQ(p[4].ta.rsp.rspst, wire::kRspError);
  settle(milliseconds(100));
  EXPECT_EQ(a.poll().at(0).status, CrStatus::kRemAccessAbort);
  EXPECT_EQ(state(b).jobs.in_use(), 0u);
}

// ---- what acknowledgements mean to requests --------------------------------------------------------------------

TEST_F(PacketSenderTest, a_read_is_done_with_when_its_whole_response_is_acknowledged) {
  request(WrOp::kRead, 2 * kMtu);
  sent_by(a);
  deliver(a, b);
  ASSERT_EQ(sent_by(b).size(), 3u);
  deliver_only(b, a, {0});
  sent_by(a);
  deliver(a, b);
  EXPECT_EQ(state(b).jobs.in_use(), 1u);
  settle(milliseconds(100));
  EXPECT_EQ(state(b).jobs.in_use(), 0u);
  EXPECT_EQ(channel(b).read_jobs, 0u);
}

TEST_F(PacketSenderTest, acknowledged_packets_put_off_the_deadline_of_their_request) {
  request(WrOp::kWrite, 4 * kMtu);
  const SendQueue& q = state(a).queues[state(a).jettys[state(a).ids[a.jetty].record].queue];
  sent_by(a);
  const Instant first = q.work[0].deadline;
  EXPECT_EQ(first, now + q.request_timeout);
  deliver_only(a, b, {0, 1});
  now += milliseconds(1);
  lost_from(b);  // its 100 us are over, and it is lost
  EXPECT_EQ(q.work[0].deadline, first);
  b.core->on_packet(now, b.link, frames_of(a)[0]);
  sent_by(b);
  deliver(b, a);
  EXPECT_EQ(q.work[0].deadline, first + milliseconds(1)) << "half of it is acknowledged";
  now += milliseconds(1);
  retransmission_timeout(a);
  sent_by(a);
  deliver(a, b);
  sent_by(b);
  deliver_only(b, a, {b.host.frames.size() - 1});  // the acknowledgement, and not the answer
  EXPECT_EQ(channel(a).outstanding(), 0u);
  EXPECT_EQ(q.work[0].deadline, now + q.request_timeout);
  EXPECT_EQ(q.unanswered_segments, 1u);
}

// ---- keep-alive ------------------------------------------------------------------------------------------------

TEST_F(PacketSenderTest, after_the_idle_time_one_fake_asks_whether_the_peer_lives) {
  const Instant idle_at = now + a.core->config().keepalive_idle;
  while (count(a, Counter::kTpTxKeepalive) == 0) {
    wake(a);
    ASSERT_LE(now, idle_at);
    a.core->poll_packets(now, 64);
  }
  EXPECT_EQ(now, idle_at);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_TRUE(p[0].rtp.fake && p[0].rtp.last && p[0].rtp.ack_req);
  EXPECT_EQ(p[0].psn(), 100u);
  EXPECT_EQ(p[0].rtp.tpmsn, Tpmsn(wire::kTpmsnNone)) << "no message was sent yet";
  EXPECT_EQ(channel(a).next_tpmsn, Tpmsn(0)) << "it uses no number of its own";
  exchange();
  EXPECT_EQ(channel(a).outstanding(), 0u);
  EXPECT_EQ(count(b, Counter::kRxMessageVanished), 0u);
}

TEST_F(PacketSenderTest, a_keepalive_has_the_number_of_the_newest_message) {
  request(WrOp::kWrite, 1);
  exchange();
  while (count(a, Counter::kTpTxKeepalive) == 0) {
    wake(a);
    a.core->poll_packets(now, 64);
  }
  EXPECT_EQ(sent_by(a).back().rtp.tpmsn, Tpmsn(0));
  exchange();
  a.poll();
  request(WrOp::kWrite, 2);
  EXPECT_EQ(sent_by(a).back().rtp.tpmsn, Tpmsn(1));
  expect_success(2);
}

TEST_F(PacketSenderTest, a_keepalive_that_nobody_answers_ends_the_channel) {
  const CoreConfig& c = a.core->config();
  const Instant asked = now + c.keepalive_idle;
  while (channel(a).is_up()) {
    wake(a);
    ASSERT_LE(now, asked + c.channel_timeout + c.rto_max);
    lost_from(a);
  }
  EXPECT_GE(now, asked + c.channel_timeout);
}

// ---- giving up -------------------------------------------------------------------------------------------------

TEST_F(PacketSenderTest, a_silent_peer_is_given_up_after_the_time_of_its_longest_request) {
  request(WrOp::kWrite, 1);
  lost_from(a);
  const Duration limit = channel(a).give_up_after;
  EXPECT_EQ(limit, nanoseconds(int64_t{4096} << 17) * 8) << "the request's deadline is longer than the channel's 4 s";
  const Instant since = now;
  while (channel(a).is_up()) {
    ASSERT_LE(now, since + limit + a.core->config().rto_max);
    wake(a);
    lost_from(a);
  }
  EXPECT_GE(now, since + limit - limit / 8);
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kAckTimeout);
}

// Its longest deadline does not outlive the request: the next one is not held up by it.
TEST_F(PacketSenderTest, with_no_request_left_the_time_to_give_up_is_the_channels) {
  request(WrOp::kWrite, 1);
  exchange();
  EXPECT_EQ(state(a).peers[channel(a).peer].lanes[0].unanswered, 0u);
  while (count(a, Counter::kTpTxKeepalive) == 0) {
    wake(a);
    a.core->poll_packets(now, 64);
  }
  EXPECT_EQ(channel(a).give_up_after, a.core->config().channel_timeout);
}

// ---- memory that answers later ---------------------------------------------------------------------------------

class SlowMemoryTest : public PacketSenderTest {
 protected:
  void SetUp() override {
    connect();
    a.host.slow = true;
    hold_copies = true;
  }
  void finish_copies() { a.host.finish_copies(*a.core, now); }
};

TEST_F(SlowMemoryTest, packets_leave_in_order_each_when_all_of_its_bytes_are_there) {
  request(WrOp::kWrite, 3 * kMtu);
  EXPECT_TRUE(sent_by(a).empty());
  EXPECT_EQ(a.host.pending_copies(), 3u) << "all of them are awaited together";
  EXPECT_EQ(channel(a).next_psn, Psn(100)) << "none is in flight";
  EXPECT_EQ(a.host.open_frames(), 0u) << "nobody waits behind them";
  a.host.finish_copy(*a.core, now, 1);
  EXPECT_TRUE(sent_by(a).empty());
  a.host.finish_copy(*a.core, now, 0);
  EXPECT_EQ(psns(sent_by(a)), (Psns{100, 101}));
  finish_copies();
  EXPECT_EQ(psns(sent_by(a)), (Psns{100, 101, 102}));
  a.host.slow = false;
  expect_success(3 * kMtu);
}

TEST_F(SlowMemoryTest, without_room_in_the_port_a_gathered_packet_waits) {
  request(WrOp::kWrite, 5);
  sent_by(a);
  finish_copies();
  a.host.full = true;
  EXPECT_TRUE(sent_by(a).empty());
  EXPECT_EQ(channel(a).held.count, 1u);
  a.host.full = false;
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_TRUE(p[0].rtp.last && p[0].sealed);
  EXPECT_EQ(std::memcmp(p[0].ta.payload, a.memory.data(), 5), 0);
  EXPECT_FALSE(channel(a).mid_message);
}

TEST_F(SlowMemoryTest, bytes_that_do_not_come_become_a_fake) {
  request(WrOp::kWrite, 2 * kMtu);
  sent_by(a);
  a.host.lose_pending();
  finish_copies();
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(psns(p), (Psns{100, 101}));
  for (const SeenPacket& fake : p) EXPECT_TRUE(fake.rtp.fake && fake.rtp.last);
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kLocAccess);
}

// Those that were built behind it have their numbers: each has a fake in its place.
TEST_F(SlowMemoryTest, bytes_that_do_not_come_take_the_rest_of_their_message_with_them_and_nothing_else) {
  request(WrOp::kWrite, 3 * kMtu);
  request(WrOp::kWrite, 7);
  sent_by(a);
  a.host.finish_copy(*a.core, now, 0);
  a.host.lost = true;
  a.host.finish_copy(*a.core, now, 0);
  a.host.lost = false;
  finish_copies();
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(psns(p), (Psns{100, 101, 102, 103}));
  EXPECT_FALSE(p[0].rtp.fake);
  EXPECT_TRUE(p[1].rtp.fake && p[2].rtp.fake);
  EXPECT_EQ(p[2].rtp.tpmsn, Tpmsn(0));
  EXPECT_EQ(p[3].ta.payload_len, 7u);
  EXPECT_EQ(p[3].rtp.tpmsn, Tpmsn(1));
  a.host.slow = false;
  settle(milliseconds(100));
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, CrStatus::kLocAccess);
  EXPECT_EQ(done[1].status, CrStatus::kSuccess);
}

// An answer that needs no memory does not leave before what was built before it.
TEST_F(SlowMemoryTest, what_needs_no_memory_keeps_its_place) {
  request(WrOp::kWrite, 8);
  sent_by(a);
  Wqe& w = request(WrOp::kWrite, 0);
  (void)w;
  EXPECT_TRUE(sent_by(a).empty());
  finish_copies();
  const std::vector<SeenPacket> p = sent_by(a);
  EXPECT_EQ(psns(p), (Psns{100, 101}));
  EXPECT_EQ(p[1].ta.payload_len, 0u);
}

TEST_F(SlowMemoryTest, a_failure_of_one_packet_is_not_that_of_the_next) {
  request(WrOp::kWrite, 5);
  sent_by(a);
  a.host.lose_pending();
  finish_copies();
  request(WrOp::kWrite, 6);
  sent_by(a);
  finish_copies();
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 2u);
  EXPECT_TRUE(p[0].rtp.fake);
  EXPECT_FALSE(p[1].rtp.fake);
}

TEST_F(SlowMemoryTest, what_was_flushed_meanwhile_does_not_leave) {
  request(WrOp::kWrite, 5);
  sent_by(a);
  ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kError), Status::kOk);
  finish_copies();
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_TRUE(p[0].rtp.fake);
  EXPECT_EQ(channel(a).held.count, 0u);
}

TEST_F(SlowMemoryTest, a_retransmission_that_was_acknowledged_meanwhile_does_not_leave) {
  request(WrOp::kWrite, 5);
  sent_by(a);
  finish_copies();
  sent_by(a);
  Bytes late = a.host.frames.front();
  a.host.frames.clear();
  retransmission_timeout(a);
  sent_by(a);
  ASSERT_EQ(channel(a).held.count, 1u);
  b.core->on_packet(now, b.link, late);
  drain(b);
  deliver(b, a);
  ASSERT_EQ(channel(a).outstanding(), 0u);
  a.host.frames.clear();
  finish_copies();
  for (const SeenPacket& p : sent_by(a)) EXPECT_NE(p.rtp.opcode, wire::TpOpcode::kData);
  EXPECT_EQ(channel(a).held.count, 0u);
}

TEST_F(SlowMemoryTest, a_retransmission_leaves_under_its_number) {
  request(WrOp::kWrite, 5);
  sent_by(a);
  finish_copies();
  lost_from(a);
  retransmission_timeout(a);
  sent_by(a);
  finish_copies();
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].psn(), 100u);
  EXPECT_TRUE(p[0].rtp.ack_req);
  EXPECT_EQ(channel(a).next_psn, Psn(101));
  EXPECT_EQ(channel(a).retransmits, 1u);
}

// The peer cannot acknowledge what waits for memory of this side.
TEST_F(SlowMemoryTest, while_a_packet_waits_for_it_the_peer_is_not_silent) {
  request(WrOp::kWrite, 5);
  sent_by(a);
  finish_copies();
  lost_from(a);
  retransmission_timeout(a);
  sent_by(a);
  ASSERT_EQ(channel(a).held.count, 1u);
  const Instant end = now + channel(a).give_up_after * 2;
  while (now < end) wake(a);
  EXPECT_TRUE(channel(a).is_up());
  finish_copies();
  EXPECT_LT(now - channel(a).progress_at, milliseconds(100)) << "but for the time before it waited";
}

}  // namespace
}  // namespace ub
