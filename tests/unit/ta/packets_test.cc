// SPDX-License-Identifier: Apache-2.0
//
// What lies in the packets of a channel, byte by byte where nothing else would tell (UB Base Specification Rev 2.0,
// 6.2, 6.7.1, 7.2); set-up records on their way out; and what is counted of all that.
#include "lib/transport/wire/icrc.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/utp_header.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

constexpr uint32_t kMtu = 1024;
using Psns = std::vector<uint32_t>;

class PacketsTest : public UbPair {
 protected:
  explicit PacketsTest(const UbOptions& o = {}) : UbPair(o) {}
  void SetUp() override { connect(); }
  // For what no packet of a peer brings about.
  CoreState& state_of(UbNode& n) { return const_cast<CoreState&>(n.core->state()); }
  tp::Channel& channel_of(UbNode& n) { return state_of(n).channels[1]; }
  static std::vector<std::byte> tail(const Bytes& frame, size_t bytes) {
    return {frame.end() - static_cast<ptrdiff_t>(bytes), frame.end()};
  }
  std::vector<SeenPacket> data_of(UbNode& n) {
    std::vector<SeenPacket> p = sent_by(n);
    std::erase_if(p, [](const SeenPacket& seen) { return !seen.data(); });
    return p;
  }
  void expect_success() {
    settle(milliseconds(100));
    const std::vector<Cqe> done = a.poll();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, CrStatus::kSuccess);
  }
};

// ---- padding and priorities ------------------------------------------------------------------------------------

TEST_F(PacketsTest, padding_is_zero) {
  request(WrOp::kWrite, 5);
  ASSERT_EQ(sent_by(a).size(), 1u);
  EXPECT_EQ(tail(a.host.frames[0], 3 + wire::kIcrcSize)[0], std::byte{0});
  EXPECT_EQ(tail(a.host.frames[0], 3 + wire::kIcrcSize)[2], std::byte{0});
}

TEST_F(PacketsTest, no_packet_asks_for_a_class_of_service) {
  request(WrOp::kWrite, 5);
  sent_by(a);
  deliver(a, b);
  sent_by(b);
  ASSERT_EQ(b.host.frames.size(), 2u);
  for (const Bytes& frame : b.host.frames) EXPECT_EQ(frame[wire::kEthSize + 1], std::byte{0});
}

class Unsealed : public PacketsTest {
 protected:
  static UbOptions options() {
    UbOptions o;
    o.link.icrc_optional = true;
    return o;
  }
  Unsealed() : PacketsTest(options()) {}
};

TEST_F(Unsealed, where_no_icrc_is_agreed_its_place_is_zero) {
  request(WrOp::kWrite, 8);
  ASSERT_EQ(sent_by(a).size(), 1u);
  EXPECT_EQ(tail(a.host.frames[0], wire::kIcrcSize), Bytes(wire::kIcrcSize));
  expect_success();
}

// ---- acknowledgements ------------------------------------------------------------------------------------------

TEST_F(PacketsTest, an_acknowledgement_is_no_longer_than_its_header) {
  request(WrOp::kWrite, 8);
  sent_by(a);
  deliver(a, b);
  const std::vector<SeenPacket> p = sent_by(b);
  ASSERT_EQ(p.size(), 2u);
  ASSERT_EQ(p[1].rtp.opcode, wire::TpOpcode::kAck);
  EXPECT_EQ(p[1].transport_bytes, 0u);
  EXPECT_EQ(channel(b).unacknowledged, 0u);
  EXPECT_EQ(count(b, Counter::kTpTxAck), 1u);
  EXPECT_EQ(count(b, Counter::kTpTxSack), 0u);
}

TEST_F(PacketsTest, selective_ones_are_counted_apart_and_end_the_demand) {
  request(WrOp::kWrite, 3 * kMtu);
  sent_by(a);
  a.host.frames.erase(a.host.frames.begin());
  deliver(a, b);
  sent_by(b);
  EXPECT_EQ(count(b, Counter::kTpTxSack), 1u);
  EXPECT_EQ(count(b, Counter::kTpTxAck), 0u);
  EXPECT_FALSE(channel(b).ack_wanted);
}

// A port may keep what nobody waits for: acknowledgements, and answers without bytes.
TEST_F(PacketsTest, acknowledgements_and_answers_without_bytes_may_wait_in_the_port) {
  const uint32_t of_a = a.host.may_wait;
  request(WrOp::kWrite, 8);
  sent_by(a);
  EXPECT_EQ(a.host.may_wait, of_a) << "somebody waits for a request";
  deliver(a, b);
  uint32_t before = b.host.may_wait;
  EXPECT_EQ(sent_by(b).size(), 2u);
  EXPECT_EQ(b.host.may_wait - before, 2u) << "an answer and an acknowledgement";
  deliver(b, a);
  request(WrOp::kFetchAdd, 8);
  sent_by(a);
  deliver(a, b);
  before = b.host.may_wait;
  EXPECT_EQ(sent_by(b).size(), 2u);
  EXPECT_EQ(b.host.may_wait - before, 1u) << "the old value is waited for";
}

TEST_F(PacketsTest, an_answer_that_goes_again_does_not_wait_in_the_port) {
  request(WrOp::kWrite, 8);
  sent_by(a);
  deliver(a, b);
  lost_from(b);
  const uint32_t before = b.host.may_wait;
  retransmission_timeout(b);
  EXPECT_EQ(sent_by(b).size(), 1u);
  EXPECT_EQ(b.host.may_wait, before);
}

TEST_F(PacketsTest, a_channel_that_died_owes_no_acknowledgement) {
  request(WrOp::kWrite, 8);
  sent_by(a);
  deliver(a, b);
  ASSERT_TRUE(channel(b).on_ack_list);
  b.core->link_down(now, b.link);
  for (Acks acks : {Acks::kMayWait, Acks::kNow}) EXPECT_TRUE(sent_by(b, acks).empty());
  EXPECT_FALSE(channel(b).on_ack_list);
}

// ---- requests --------------------------------------------------------------------------------------------------

TEST_F(PacketsTest, the_order_of_a_request_is_what_was_posted) {
  request(WrOp::kWrite, 8);
  request(WrOp::kWrite, 8).place_order = wire::kOdrRelaxed;
  Wqe& w = request(WrOp::kWrite, 8);
  w.place_order = wire::kOdrRelaxed;
  w.flags |= kWrCompOrder;
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 3u);
  EXPECT_EQ(p[0].ta.req.odr, wire::kOdrNone);
  EXPECT_EQ(p[1].ta.req.odr, wire::kOdrRelaxed);
  EXPECT_EQ(p[2].ta.req.odr, wire::kOdrRelaxed | wire::kOdrCompletion);
}

// 9.4: of every packet, whatever it is part of.
TEST_F(PacketsTest, a_request_that_is_exclusive_says_so_in_all_its_packets) {
  request(WrOp::kWrite, 3 * kMtu);
  request(WrOp::kWrite, 3 * kMtu).exclusive = 1;
  request(WrOp::kRead, 8).exclusive = 1;
  request(WrOp::kRead, 8);
  request(WrOp::kFetchAdd, 8).exclusive = 1;
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 9u);
  std::vector<bool> exclusive;
  for (const SeenPacket& seen : p) {
    exclusive.push_back(seen.ta.req.e_bit);
    EXPECT_EQ(seen.ta.req.rc_type, p[0].ta.req.rc_type) << "of no sequence context";
    EXPECT_EQ(seen.ta.req.rc_id, a.jetty);
  }
  EXPECT_EQ(exclusive, (std::vector<bool>{false, false, false, true, true, true, true, false, true}));
  settle(milliseconds(100));
  for (const Cqe& c : a.poll()) EXPECT_EQ(c.status, CrStatus::kSuccess) << "memory that is not exclusive takes both";
}

// 7.2: TVETAH, where the application presents a token.
TEST_F(PacketsTest, a_write_without_a_token_has_none) {
  request(WrOp::kWrite, 8).flags &= static_cast<uint8_t>(~kWrToken);
  request(WrOp::kWrite, 8);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 2u);
  EXPECT_FALSE(p[0].ta.tv);
  EXPECT_TRUE(p[1].ta.tv);
  EXPECT_EQ(p[1].ta.token_value, UbNode::kToken);
}

TEST_F(PacketsTest, the_token_of_a_send_is_that_of_its_target) {
  request(WrOp::kSend, 8);
  const std::vector<SeenPacket> p = lost_from(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_FALSE(p[0].ta.tv) << "it needs none, whatever was posted";
  state_of(a).targets[to_b].token = {true, 0x777};
  request(WrOp::kSend, 8).flags &= static_cast<uint8_t>(~kWrToken);
  const std::vector<SeenPacket> with = sent_by(a);
  ASSERT_EQ(with.size(), 1u);
  EXPECT_TRUE(with[0].ta.tv);
  EXPECT_EQ(with[0].ta.token_value, 0x777u);
}

TEST_F(PacketsTest, the_immediate_of_a_send_brings_no_token_and_no_length) {
  request(WrOp::kSendImm, 8).immediate = 0x1234;
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].ta.imm.immediate, 0x1234u);
  EXPECT_EQ(p[0].ta.imm.token_value, 0u);
  EXPECT_EQ(p[0].ta.imm.msg_length, 0u);
}

TEST_F(PacketsTest, both_operands_of_an_atomic_travel) {
  Wqe& w = a.post(a.sends, WrOp::kCompareSwap, to_b, 8);
  w.remote_address = b.address() + UbNode::kMemory / 2;
  w.token_id = b.segment.token_id;
  w.token_value = UbNode::kToken;
  w.immediate = 0x1111;
  reinterpret_cast<WqeExtra*>(&w + 1)->compare = 0x2222;
  a.core->on_posted(now, a.jetty);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  ASSERT_EQ(p[0].ta.payload_len, 16u);
  uint64_t operands[2];
  std::memcpy(operands, p[0].ta.payload, sizeof operands);
  EXPECT_EQ(operands[0], 0x1111u);
  EXPECT_EQ(operands[1], 0x2222u);
}

// ---- READs -----------------------------------------------------------------------------------------------------

TEST_F(PacketsTest, reads_and_their_responses_say_where_they_are_in_the_request) {
  request(WrOp::kRead, 64 * 1024 + 2 * kMtu);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(p[i].ta.has_taid && p[i].ta.has_ofst);
    EXPECT_EQ(p[i].ta.taid, 0);
    EXPECT_EQ(p[i].ta.ofst.offset_kib, i * 64);
  }
  deliver(a, b);
  state_of(b).jobs[2].taid = 7;
  const std::vector<SeenPacket> r = data_of(b);
  ASSERT_EQ(r.size(), 66u);
  EXPECT_EQ(r[0].ta.taid, 0);
  EXPECT_EQ(r[1].ta.ofst.offset_kib, 1u);
  EXPECT_EQ(r[65].ta.taid, 7) << "what the request said";
  EXPECT_EQ(r[65].ta.ofst.offset_kib, 65u);
}

TEST_F(PacketsTest, a_read_that_fails_is_answered_in_the_form_of_its_response) {
  request(WrOp::kRead, 64 * 1024 + 8).token_value = UbNode::kToken + 1;
  sent_by(a);
  deliver(a, b);
  const std::vector<SeenPacket> p = data_of(b);
  ASSERT_EQ(p.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(p[i].ta.rsp.opcode, wire::TaOpcode::kReadResponse);
    EXPECT_EQ(p[i].ta.rsp.rspst, wire::kRspError);
    EXPECT_TRUE(p[i].ta.has_taid && p[i].ta.has_ofst);
    EXPECT_EQ(p[i].ta.taid, 0);
    EXPECT_EQ(p[i].ta.ofst.offset_kib, i * 64) << "what the request said";
  }
}

// Where it was not agreed that they say so, they are placed in order.
TEST_F(PacketsTest, reads_work_without_saying_where_they_are) {
  channel_of(a).read_meta = channel_of(b).read_meta = false;
  request(WrOp::kRead, 3 * kMtu);
  while (a.core->poll_packets(now, 64) != 0) {
  }
  ASSERT_EQ(a.host.frames.size(), 1u);
  const size_t with_meta = wire::request_header_size(wire::TaOpcode::kRead, {.tv = true, .read_meta = true});
  const size_t without = wire::request_header_size(wire::TaOpcode::kRead, {.tv = true});
  ASSERT_LT(without, with_meta);
  EXPECT_EQ(a.host.frames[0].size(), channel(a).headers.size + wire::RtpHeader::kSize + without + wire::kIcrcSize);
  deliver(a, b);
  while (b.core->poll_packets(now, 64) != 0) {
  }
  std::swap(b.host.frames[0], b.host.frames[1]);
  expect_success();
  EXPECT_TRUE(arrived(3 * kMtu));
  request(WrOp::kRead, 8).token_value = UbNode::kToken + 1;
  settle(milliseconds(100));
  EXPECT_EQ(a.poll().at(0).status, CrStatus::kRemAccessAbort) << "an error says nothing either";
}

// ---- bytes that do not come ------------------------------------------------------------------------------------

class SlowReads : public PacketsTest {
 protected:
  void SetUp() override {
    connect();
    hold_copies = true;
  }
};

TEST_F(SlowReads, a_read_whose_bytes_do_not_come_ends_with_an_error) {
  b.host.slow = true;
  request(WrOp::kRead, 2 * kMtu);
  sent_by(a);
  deliver(a, b);
  sent_by(b);
  b.host.lose_pending();
  b.host.finish_copies(*b.core, now);
  settle(milliseconds(100));
  EXPECT_EQ(a.poll().at(0).status, CrStatus::kRemAccessAbort);
  EXPECT_EQ(state(b).jobs.in_use(), 0u);
}

// One of its ranges is not registered, another one is awaited: what becomes of that one is nobody's business.
TEST_F(SlowReads, a_piece_of_a_packet_that_failed_does_not_spoil_the_next_packet) {
  a.host.slow = true;
  Wqe& w = a.post(a.sends, WrOp::kWrite, to_b, 16);
  w.remote_address = b.address() + UbNode::kMemory / 2;
  w.token_id = b.segment.token_id;
  w.token_value = UbNode::kToken;
  w.slots = w.sge_count = 2;
  w.sge.length = 8;
  reinterpret_cast<Sge*>(&w + 1)[0] = {a.address(), 8, 0};
  a.sends.indices.produced.store(a.sends.indices.produced.load() + 1);
  a.core->on_posted(now, a.jetty);
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 1u);
  EXPECT_TRUE(p[0].rtp.fake) << "nothing is left to wait for";
  EXPECT_EQ(state(a).held.in_use_count(), 0u);
  request(WrOp::kWrite, 8);
  sent_by(a);
  a.host.lost = true;
  a.host.finish_copy(*a.core, now);
  EXPECT_FALSE(state(a).held.first(channel(a).held).failed) << "the piece was one of the packet before it";
  a.host.lost = false;
  a.host.finish_copies(*a.core, now);
  a.host.slow = false;
  settle(milliseconds(100));
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, CrStatus::kLocAccess);
  EXPECT_EQ(done[1].status, CrStatus::kSuccess);
}

TEST_F(SlowReads, when_a_request_loses_its_bytes_those_that_wait_for_it_go_on) {
  a.host.slow = true;
  request(WrOp::kWrite, 8).place_order = wire::kOdrRelaxed;
  sent_by(a);
  request(WrOp::kWrite, 16).place_order = wire::kOdrStrong;
  EXPECT_TRUE(sent_by(a).empty());
  a.host.lose_pending();
  a.host.finish_copies(*a.core, now);
  a.host.slow = false;
  const std::vector<SeenPacket> p = sent_by(a);
  ASSERT_EQ(p.size(), 2u);
  EXPECT_TRUE(p[0].rtp.fake);
  EXPECT_EQ(p[1].ta.payload_len, 16u);
}

// The time in which memory is awaited is no silence; the time before it was.
TEST_F(SlowReads, waiting_for_memory_puts_off_the_end_by_just_that_time) {
  request(WrOp::kWrite, 8);
  lost_from(a);
  const Instant progress = channel(a).progress_at;
  a.host.slow = true;
  retransmission_timeout(a);
  sent_by(a);
  ASSERT_EQ(channel(a).held.count, 1u);
  const Instant since = now;
  now += milliseconds(3);
  a.host.finish_copies(*a.core, now);
  ASSERT_LT(progress, since);
  EXPECT_EQ(channel(a).progress_at, progress + milliseconds(3));
}

// ---- turns -----------------------------------------------------------------------------------------------------

class TwoLanes : public PacketsTest {
 protected:
  static UbOptions options() {
    UbOptions o;
    o.core.lanes = 2;
    return o;
  }
  TwoLanes() : PacketsTest(options()) {}
};

TEST_F(TwoLanes, with_room_for_one_packet_at_a_time_channels_take_turns) {
  request(WrOp::kWrite, 20 * kMtu);
  exchange();
  settle(milliseconds(10));
  a.poll();
  request(WrOp::kWrite, 10 * kMtu);
  request(WrOp::kWrite, 20 * kMtu);
  std::vector<uint32_t> order;
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(a.core->poll_packets(now, 1), 1u);
    order.push_back(parse(a.host.frames.back()).rtp.src_tpn);
  }
  for (size_t i = 1; i < order.size(); ++i) EXPECT_NE(order[i], order[i - 1]) << i;
}

TEST_F(PacketsTest, whoever_stopped_for_the_budget_is_not_held_back) {
  request(WrOp::kWrite, 10 * kMtu);
  EXPECT_EQ(a.core->poll_packets(now, 3), 3u);
  EXPECT_FALSE(channel(a).held_back);
  EXPECT_FALSE(a.core->is_held_back());
}

TEST_F(PacketsTest, datagrams_go_first_and_all_that_left_is_counted) {
  const uint32_t target = a.import(now, b, Mode::kUm);
  for (size_t first : {size_t{0}, size_t{2}}) {  // whose turn it is
    a.host.frames.clear();
    request(WrOp::kWrite, 2 * kMtu);
    for (int i = 0; i < 2; ++i) a.post(a.datagrams, WrOp::kSend, target, 16);
    a.core->on_posted(now, a.datagram_jetty);
    EXPECT_EQ(a.core->poll_packets(now, 64), 4u);
    ASSERT_EQ(a.host.frames.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      const bool unreliable = parse(a.host.frames[i]).rtp.opcode == wire::TpOpcode::kUnreliable;
      EXPECT_EQ(unreliable, i == first || i == first + 1) << i;
    }
  }
}

// ---- counters --------------------------------------------------------------------------------------------------

TEST_F(PacketsTest, data_is_counted_by_packets_and_bytes) {
  const uint64_t packets = count(a, Counter::kTxPackets), bytes = count(a, Counter::kTxBytes);
  request(WrOp::kWrite, 2 * kMtu);
  sent_by(a);
  EXPECT_EQ(count(a, Counter::kTxPackets) - packets, 2u);
  EXPECT_EQ(count(a, Counter::kTxBytes) - bytes, a.host.frames[0].size() + a.host.frames[1].size());
  EXPECT_EQ(count(a, Counter::kTpTxData), 2u);
  EXPECT_EQ(channel(a).tx_packets, 2u);
  lost_from(a);
  retransmission_timeout(a);
  sent_by(a);
  EXPECT_EQ(count(a, Counter::kTpTxData), 2u) << "for the first time";
  EXPECT_EQ(channel(a).tx_packets, 4u);
  EXPECT_EQ(count(a, Counter::kTxPackets) - packets, 4u);
}

TEST_F(PacketsTest, acknowledgements_are_counted_by_packets_and_bytes) {
  request(WrOp::kWrite, 2 * kMtu);
  sent_by(a);
  a.host.frames.pop_back();
  deliver(a, b);
  const uint64_t packets = count(b, Counter::kTxPackets), bytes = count(b, Counter::kTxBytes);
  ASSERT_EQ(sent_by(b).size(), 1u);
  EXPECT_EQ(count(b, Counter::kTxPackets) - packets, 1u);
  EXPECT_EQ(count(b, Counter::kTxBytes) - bytes, b.host.frames[0].size());
}

TEST_F(PacketsTest, a_keepalive_is_a_message_without_a_source) {
  while (count(a, Counter::kTpTxKeepalive) == 0) {
    wake(a);
    a.core->poll_packets(now, 64);
  }
  EXPECT_EQ(channel_of(a).in_flight.back(state_of(a).messages).kind, tp::MessageKind::kFake);
}

// ---- records ---------------------------------------------------------------------------------------------------

class RecordsTest : public PacketsTest {
 protected:
  void SetUp() override {}
  // So many instances that nobody has heard of: a REQ for each.
  void ask_strangers(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      TargetConfig c;
      c.instance.eid.bytes[0] = 9;
      c.instance.uasid = 100 + i;
      c.path = {.link = a.link, .local = a.at, .remote = b.at};
      uint32_t target = 0;
      ASSERT_EQ(a.core->add_target(now, c, &target), Status::kOk);
    }
  }
};

TEST_F(RecordsTest, a_record_is_a_send_to_jetty_0) {
  ask_strangers(1);
  ASSERT_EQ(a.core->poll_packets(now, 64), 1u);
  const Bytes& frame = a.host.frames[0];
  EXPECT_EQ(frame[wire::kEthSize + 1], std::byte{0}) << "no class of service";
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
  EXPECT_TRUE(wire::icrc_matches(net));
  wire::UtpHeader utp;
  ASSERT_EQ(wire::UtpHeader::read(net.tph, net.tp_size(), utp), wire::Drop::kNone);
  wire::TaPacket ta;
  ASSERT_EQ(wire::parse_transaction(net.tph + wire::UtpHeader::kSize, net.end, utp.padding, false, ta),
            wire::Drop::kNone);
  EXPECT_EQ(ta.req.opcode, wire::TaOpcode::kSend);
  EXPECT_EQ(ta.mt.tc_id, 0u);
  EXPECT_EQ(ta.mt.hint, 0);
  EXPECT_EQ(ta.mt.tc_type, wire::kTcTypeQueue);
  EXPECT_EQ(ta.ofst.offset_kib, 0u);
  wire::ControlRecord record;
  EXPECT_EQ(wire::read_control_record({ta.payload, ta.payload_len}, record), wire::Drop::kNone);
  for (size_t at = wire::control_record_size(record); at < ta.payload_len; ++at) {
    ASSERT_EQ(ta.payload[at], std::byte{0}) << at;
  }
}

// As long as the longest data packet of that MTU, or it would not probe the path.
TEST_F(RecordsTest, a_request_is_as_long_as_the_longest_packet_that_it_offers) {
  ask_strangers(1);
  ASSERT_EQ(a.core->poll_packets(now, 64), 1u);
  const size_t l3 = a.host.frames[0].size() - wire::kEthSize;
  constexpr size_t kIpAndUdp = 28;
  EXPECT_EQ(l3, kIpAndUdp + wire::UtpHeader::kSize + wire::Btah::kSize + 4 + 16 + 24 + 4 + kMtu + wire::kIcrcSize);
}

TEST_F(RecordsTest, are_counted_and_keep_to_the_budget) {
  ask_strangers(3);
  EXPECT_EQ(a.core->poll_packets(now, 2), 2u);
  EXPECT_EQ(a.host.frames.size(), 2u);
  EXPECT_EQ(count(a, Counter::kTpTxRecord), 2u);
  EXPECT_EQ(count(a, Counter::kTxPackets), 2u);
  EXPECT_EQ(count(a, Counter::kTxBytes), a.host.frames[0].size() + a.host.frames[1].size());
  EXPECT_EQ(a.core->poll_packets(now, 2), 1u);
}

TEST_F(RecordsTest, and_data_share_a_budget) {
  connect();
  a.host.frames.clear();
  request(WrOp::kWrite, 10 * kMtu);
  ask_strangers(2);
  EXPECT_EQ(a.core->poll_packets(now, 5), 5u);
  EXPECT_EQ(a.host.frames.size(), 5u);
}

TEST_F(RecordsTest, for_a_link_that_is_down_are_forgotten) {
  ask_strangers(1);
  a.core->link_down(now, a.link);
  a.core->poll_packets(now, 64);
  EXPECT_TRUE(a.host.frames.empty());
  EXPECT_EQ(state(a).outbox_head, state(a).outbox_tail);
}

// A peer that is stopped, and whose ring is full, does not keep others from being reached.
TEST_F(PacketsTest, a_link_without_room_holds_up_only_its_own_records) {
  const uint32_t full = a.core->add_link({.mtu = kMtu, .lossless = true});
  a.host.full_link = full;
  TargetConfig stuck, reached;
  stuck.instance = {{}, 9};
  stuck.path = {full, a.at, {wire::IpAddress::from_v4(0x0A000009), wire::kUbUdpPort}};
  reached.instance = b.id;
  reached.path = {a.link, a.at, b.at};
  uint32_t target = 0;
  ASSERT_EQ(a.core->add_target(now, stuck, &target), Status::kOk);
  for (Owner owner : {1, 2}) {  // each has a channel of its own
    reached.owner = owner;
    ASSERT_EQ(a.core->add_target(now, reached, &target), Status::kOk);
  }
  drain(a);
  EXPECT_EQ(a.host.frames.size(), 2u);
  a.host.frames.clear();
  EXPECT_FALSE(drain(a));
  a.host.full_link = 0;
  drain(a);
  EXPECT_EQ(a.host.frames.size(), 1u) << "the one that waited";
}

}  // namespace
}  // namespace ub
