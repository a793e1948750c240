// SPDX-License-Identifier: Apache-2.0
//
// The compact transport (UB Base Specification Rev 2.0, 6.2.1; docs/compact-design.md): what its packets look like,
// what they carry, and what happens when the port is full, memory goes, a peer is silent, different or hostile.
#include <set>

#include "tests/unit/ta/compact_pair.h"

namespace ub {
namespace {

class CompactTest : public CompactPair {
 protected:
  using CompactPair::CompactPair;
  // Packets are counted as if they were of RTP.
  void expect_all_arrived(const UbNode& from, const UbNode& to) {
    const tp::Channel &sender = channel(from), &receiver = channel(to);
    EXPECT_EQ(sender.next_psn, receiver.expected);
    EXPECT_EQ(sender.next_tpmsn, receiver.message);
    EXPECT_EQ(sender.oldest_unacked, sender.next_psn);
    EXPECT_EQ(receiver.delivered, receiver.expected);
    EXPECT_EQ(sender.tx_packets, count(from, Counter::kCtpTx));
    EXPECT_EQ(count(to, Counter::kCtpRx), count(from, Counter::kCtpTx));
  }
  void expect_at_rest() {
    CompactPair::expect_at_rest();
    expect_all_arrived(a, b);
    expect_all_arrived(b, a);
  }
};

// ---- packets ---------------------------------------------------------------------------------------------------

TEST_F(CompactTest, a_write_is_one_packet_and_its_answer_another) {
  request(WrOp::kWrite, 5);
  const std::vector<SeenCompact> out = compact_from(a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].sealed);
  EXPECT_EQ(out[0].packet.scna, channel(a).tpn);
  EXPECT_EQ(out[0].packet.dcna, channel(b).tpn);
  EXPECT_EQ(out[0].packet.ctp.padding, 2);  // CTPH counts, too
  EXPECT_EQ(out[0].ta.opcode(), wire::TaOpcode::kWrite);
  EXPECT_FALSE(out[0].ta.req.no_taack);
  deliver(a, b);
  const std::vector<SeenCompact> back = compact_from(b);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].ta.opcode(), wire::TaOpcode::kTaack);
  deliver(b, a);
  EXPECT_FALSE(drain(a));
  EXPECT_FALSE(drain(b));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_TRUE(arrived(5));
  expect_at_rest();
}

TEST_F(CompactTest, the_padding_is_zero_and_the_addresses_are_local) {
  request(WrOp::kWrite, 5);
  drain(a);
  ASSERT_EQ(a.host.frames.size(), 1u);
  const Bytes& frame = a.host.frames[0];
  EXPECT_EQ(frame[frame.size() - wire::kIcrcSize - 1], std::byte{0});
  EXPECT_EQ(frame[frame.size() - wire::kIcrcSize - 2], std::byte{0});
  const wire::MacAddress to = wire::stand_in_mac(b.at), from = wire::stand_in_mac(a.at);
  EXPECT_EQ(std::memcmp(frame.data(), to.data(), to.size()), 0);
  EXPECT_EQ(std::memcmp(frame.data() + to.size(), from.data(), from.size()), 0);
  EXPECT_EQ(to[0] & 3, 2);  // locally administered, of one station
  EXPECT_NE(to, from);
}

TEST_F(CompactTest, a_wire_that_loses_nothing_needs_no_record) {
  EXPECT_EQ(channel(a).repeats, 0u);
  EXPECT_EQ(state(a).repeats.in_use(), 0u);
}

// A port may keep what nobody waits for.
TEST_F(CompactTest, answers_without_bytes_may_wait_in_the_port_and_nothing_else) {
  const auto frames_that_may_wait = [this](UbNode& node) {
    const uint32_t before = node.host.may_wait;
    drain(node);
    EXPECT_EQ(node.host.frames.size(), 1u);
    return node.host.may_wait - before;
  };
  for (const WrOp op : {WrOp::kWrite, WrOp::kRead, WrOp::kFetchAdd}) {
    for (const uint32_t length : {0u, 8u}) {
      if (op == WrOp::kFetchAdd && length == 0) continue;
      request(op, length);
      EXPECT_EQ(frames_that_may_wait(a), 0u) << "somebody waits for a request";
      deliver(a, b);
      EXPECT_EQ(frames_that_may_wait(b), op == WrOp::kWrite ? 1u : 0u) << static_cast<int>(op) << ", " << length;
      deliver(b, a);
    }
  }
}

TEST_F(CompactTest, who_looks_is_told_of_packets) {
  a.core->look(true);
  b.core->look(true);
  request(WrOp::kWrite, 8);
  request(WrOp::kWrite, 8);
  exchange();
  const std::vector<Note> sent = a.host.noted(Stage::kCompactSent), came = b.host.noted(Stage::kCompactArrived);
  EXPECT_EQ(sent, (std::vector<Note>{{Stage::kCompactSent, 1, 0}, {Stage::kCompactSent, 1, 1}}));
  EXPECT_EQ(came, std::vector<Note>(2, {Stage::kCompactArrived, 1}));
}

class CompactUnsealed : public CompactTest {
 protected:
  static UbOptions without_icrc() {
    UbOptions o = options();
    o.link.icrc_optional = true;
    return o;
  }
  CompactUnsealed() : CompactTest(without_icrc()) {}
};
TEST_F(CompactUnsealed, a_zero_takes_the_place_of_the_sum) {
  request(WrOp::kWrite, 8);
  const std::vector<SeenCompact> out = compact_from(a);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(wire::icrc_load(out[0].packet.end), 0u);
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
}

// ---- what it carries -------------------------------------------------------------------------------------------

TEST_F(CompactTest, every_length_of_a_packet) {
  for (uint32_t length : {0u, 1u, 2u, 3u, 4u, 7u, 64u, kMtu - 1, kMtu}) {
    std::fill(b.memory.begin() + UbNode::kMemory / 2, b.memory.end(), std::byte{0xEE});
    request(WrOp::kWrite, length, 17);
    exchange();
    EXPECT_EQ(only_status(a), CrStatus::kSuccess) << length;
    EXPECT_TRUE(arrived(length, 17)) << length;
    EXPECT_EQ(b.memory[UbNode::kMemory / 2 + length], std::byte{0xEE}) << length;

    std::fill(a.memory.begin(), a.memory.begin() + 4096, std::byte{0x11});
    request(WrOp::kRead, length, 100);
    exchange();
    EXPECT_EQ(only_status(a), CrStatus::kSuccess) << length;
    EXPECT_TRUE(arrived(length, 100)) << length;
    EXPECT_EQ(a.memory[100 + length], std::byte{0x11}) << length;
  }
  EXPECT_EQ(rtp_data(a), 0u);
  EXPECT_EQ(rtp_data(b), 0u);
  expect_at_rest();
}

TEST_F(CompactTest, messages_take_receives_in_their_order) {
  for (uint32_t i = 0; i < 3; ++i) b.post_receive(b.receive_indices[0], b.receives[0], 4096 * i, 2048);
  request(WrOp::kSend, 10, 1);
  request(WrOp::kSendImm, kMtu, 2).immediate = 77;
  Wqe& write = request(WrOp::kWriteImm, 30, 3);
  write.immediate = 78;
  exchange();
  for (const Cqe& done : a.poll()) EXPECT_EQ(done.status, CrStatus::kSuccess);
  const std::vector<Cqe> got = b.poll();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].length, 10u);
  EXPECT_TRUE(std::equal(a.memory.begin() + 1, a.memory.begin() + 11, b.memory.begin()));
  EXPECT_EQ(got[1].immediate, 77u);
  EXPECT_EQ(got[1].length, kMtu);
  EXPECT_EQ(got[2].immediate, 78u);
  EXPECT_EQ(got[2].length, 30u);
  EXPECT_EQ(got[0].remote_id, a.jetty);
  EXPECT_EQ(rtp_data(a), 0u);
  expect_at_rest();
}

TEST_F(CompactTest, atomics) {
  const auto word = [this] {
    uint64_t w;
    std::memcpy(&w, b.memory.data() + UbNode::kMemory / 2, sizeof w);
    return w;
  };
  const uint64_t before = word();
  request(WrOp::kFetchAdd, 8).immediate = 5;
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(word(), before + 5);
  EXPECT_EQ(std::memcmp(a.memory.data(), &before, sizeof before), 0);
  EXPECT_EQ(rtp_data(a), 0u);
}

TEST_F(CompactTest, a_longer_write_is_cut_into_packets) {
  request(WrOp::kWrite, 5 * kMtu - 3);
  const std::vector<SeenCompact> out = compact_from(a);
  ASSERT_EQ(out.size(), 5u);
  std::set<uint16_t> tassns;
  for (const SeenCompact& p : out) tassns.insert(p.ta.req.tassn.value());
  EXPECT_EQ(tassns.size(), 5u);
  EXPECT_EQ(out[4].ta.ma.length, kMtu - 3);
  deliver(a, b);
  ASSERT_EQ(compact_from(b).size(), 1u) << "one answer for all";
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_TRUE(arrived(5 * kMtu - 3));
  expect_at_rest();
}

TEST_F(CompactTest, what_is_longer_goes_by_rtp) {
  struct Long {
    WrOp op;
    uint32_t length;
  };
  for (const auto& [op, length] : {Long{WrOp::kRead, kMtu + 1}, Long{WrOp::kWrite, 16 * 1024 + 1},
                                   Long{WrOp::kSend, kMtu + 1}, Long{WrOp::kWriteImm, kMtu + 1}}) {
    const uint64_t before = count(a, Counter::kCtpTx);
    b.post_receive(b.receive_indices[0], b.receives[0], 0, 4096);
    request(op, length);
    settle(seconds(1));
    EXPECT_EQ(only_status(a), CrStatus::kSuccess) << static_cast<int>(op);
    EXPECT_EQ(count(a, Counter::kCtpTx), before) << static_cast<int>(op);
    b.poll();
  }
}

// They would wait for each other at every change.
TEST_F(CompactTest, after_a_long_message_short_ones_stay_behind_it) {
  for (uint32_t i = 0; i < 3; ++i) b.post_receive(b.receive_indices[0], b.receives[0], 4096 * i, 4096);
  for (uint32_t length : {8u, 2 * kMtu, 9u}) request(WrOp::kSend, length);
  settle(seconds(1));
  const std::vector<Cqe> got = b.poll();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].length, 8u);
  EXPECT_EQ(got[1].length, 2 * kMtu);
  EXPECT_EQ(got[2].length, 9u);
  EXPECT_EQ(count(a, Counter::kCtpTx), 1u);
  request(WrOp::kWrite, 8);
  settle(seconds(1));
  EXPECT_EQ(count(a, Counter::kCtpTx), 2u) << "a WRITE still goes by CTP";
}

// Two channels have no order between them: one with room would overtake the other.
TEST_F(CompactTest, a_long_message_waits_until_the_short_ones_before_it_are_answered) {
  for (uint32_t i = 0; i < 2; ++i) b.post_receive(b.receive_indices[0], b.receives[0], 4096 * i, 4096);
  request(WrOp::kRead, 2 * kMtu);  // there is a channel of RTP now
  settle(seconds(1));
  const uint64_t before = rtp_data(a);
  request(WrOp::kSend, 8);
  request(WrOp::kSend, 2 * kMtu);
  drain(a);
  EXPECT_EQ(a.host.frames.size(), 1u);
  EXPECT_EQ(rtp_data(a), before);
  exchange();
  EXPECT_EQ(rtp_data(a), before + 2);
  EXPECT_EQ(a.poll().size(), 3u);
  EXPECT_EQ(b.poll().size(), 2u);
}

class CompactOtherMtu : public CompactTest {
 protected:
  static UbOptions smaller_at_b() {
    UbOptions o = options();
    o.link.mtu = 2 * kMtu;
    o.mtu_of_b = kMtu;
    return o;
  }
  CompactOtherMtu() : CompactTest(smaller_at_b()) {}
};
TEST_F(CompactOtherMtu, the_smaller_one_is_the_limit) {
  EXPECT_EQ(channel(a).mtu, kMtu);
  for (uint32_t i = 0; i < 2; ++i) b.post_receive(b.receive_indices[0], b.receives[0], 4096 * i, 4096);
  request(WrOp::kSend, kMtu);
  settle(seconds(1));
  EXPECT_EQ(count(a, Counter::kCtpTx), 1u);
  request(WrOp::kSend, kMtu + 476);
  settle(seconds(1));
  const std::vector<Cqe> got = b.poll();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[1].length, kMtu + 476);
  EXPECT_TRUE(std::equal(a.memory.begin(), a.memory.begin() + got[1].length, b.memory.begin() + 4096));
}

// ---- refusals --------------------------------------------------------------------------------------------------

TEST_F(CompactTest, a_message_without_a_receive_comes_again) {
  request(WrOp::kSend, 8);
  exchange();
  EXPECT_TRUE(a.poll().empty());
  b.post_receive(b.receive_indices[0], b.receives[0], 0, 64);
  settle(milliseconds(100));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(only_status(b), CrStatus::kSuccess);
  EXPECT_EQ(rtp_data(a), 0u);
  expect_at_rest();
}

TEST_F(CompactTest, memory_that_may_not_be_used) {
  request(WrOp::kWrite, 8).token_value ^= 1;
  request(WrOp::kRead, 8).token_value ^= 1;
  exchange();
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 2u);
  for (const Cqe& c : done) EXPECT_EQ(c.status, CrStatus::kRemAccessAbort);
  expect_at_rest();
}

// ---- the port is full ------------------------------------------------------------------------------------------

TEST_F(CompactTest, nothing_is_lost_where_the_port_is_full) {
  a.host.full = true;
  request(WrOp::kWrite, 3 * kMtu);
  request(WrOp::kRead, 8, 5000);
  drain(a);
  EXPECT_TRUE(a.host.frames.empty());
  a.host.full = false;
  drain(a);
  ASSERT_EQ(a.host.frames.size(), 4u);
  deliver(a, b);
  b.host.full = true;
  drain(b);
  b.host.full = false;
  exchange();
  const std::vector<Cqe> done = a.poll();
  ASSERT_EQ(done.size(), 2u);
  for (const Cqe& c : done) EXPECT_EQ(c.status, CrStatus::kSuccess);
  expect_at_rest();
}

TEST_F(CompactTest, a_request_that_is_given_up_before_it_left_does_not_leave) {
  a.host.full = true;
  request(WrOp::kWrite, 8);
  drain(a);
  ASSERT_EQ(a.core->set_state(now, a.jetty, QueueState::kError), Status::kOk);
  a.host.full = false;
  EXPECT_TRUE(compact_from(a).empty());
  EXPECT_EQ(a.poll()[0].status, CrStatus::kWrFlush);
  expect_at_rest();
}

TEST_F(CompactTest, a_read_whose_memory_goes_before_the_answer_left_fails) {
  request(WrOp::kRead, 64);
  drain(a);
  b.host.full = true;
  deliver(a, b);
  drain(b);
  ASSERT_EQ(b.core->unregister_segment(now, b.segment.handle), Status::kOk);
  b.host.full = false;
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kRemAccessAbort);
  expect_at_rest();
}

// The application that owns it is gone, and the Core does not know yet.
TEST_F(CompactTest, a_read_whose_memory_does_not_answer_fails) {
  request(WrOp::kRead, 64);
  drain(a);
  deliver(a, b);
  b.host.gone = true;
  drain(b);
  b.host.gone = false;
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kRemAccessAbort);
  expect_at_rest();
}

TEST_F(CompactTest, local_memory_that_goes_fails_the_request) {
  request(WrOp::kWrite, 64);
  ASSERT_EQ(a.core->unregister_segment(now, a.segment.handle), Status::kOk);
  EXPECT_TRUE(compact_from(a).empty());
  EXPECT_EQ(only_status(a), CrStatus::kLocAccess);
  expect_at_rest();
}

TEST_F(CompactTest, no_more_segments_are_unanswered_than_the_peer_has_places_for) {
  for (int i = 0; i < 10; ++i) request(WrOp::kWrite, 10 * kMtu);
  drain(a);
  EXPECT_EQ(a.host.frames.size(), limit());
  exchange();
  for (const Cqe& c : a.poll()) EXPECT_EQ(c.status, CrStatus::kSuccess);
  EXPECT_EQ(count(a, Counter::kCtpTx), 100u);
  expect_at_rest();
}

// ---- the peer is another, silent, or gone ----------------------------------------------------------------------

class CompactRefused : public CompactTest {
 protected:
  static UbOptions plain_peer() {
    UbOptions o = options();
    o.compact_at_b = false;
    return o;
  }
  CompactRefused() : CompactTest(plain_peer()) {}
  void SetUp() override { to_b = a.import(now, b); }
};
TEST_F(CompactRefused, a_peer_without_it_gets_all_by_rtp) {
  request(WrOp::kWrite, 8);
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(count(a, Counter::kCtpTx), 0u);
  request(WrOp::kWrite, 8);
  settle(seconds(1));
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
  EXPECT_EQ(count(b, Counter::kTpChannelRejected), 1u) << "it is not asked again";
}

TEST_F(CompactTest, a_silent_peer_is_asked_and_then_given_up) {
  filter = [&](UbNode& from, Bytes&) { return &from == &a; };
  request(WrOp::kWrite, 8);
  const Instant begin = now;
  uint32_t asked = 0;
  while (channel(a).is_up() && now - begin < seconds(6)) {
    wake(a);
    drain(a);
    for (const Bytes& frame : a.host.frames) asked += !wire::has_link_header(frame);
    if (asked == 1) {
      EXPECT_GE(now - begin, seconds(2));
    }
    exchange();
  }
  EXPECT_GE(asked, 1u);
  EXPECT_GE(now - begin, seconds(4));
  EXPECT_LT(now - begin, seconds(5));
  EXPECT_EQ(only_status(a), CrStatus::kAckTimeout);
}

TEST_F(CompactTest, what_waits_for_a_full_port_goes_back_to_the_pool_when_the_channel_ends) {
  filter = [](UbNode&, Bytes&) { return false; };
  request(WrOp::kWrite, 8);
  exchange();
  a.host.full = true;
  request(WrOp::kWrite, 8);
  drain(a);
  EXPECT_EQ(state(a).messages.in_use(), 1u);
  for (const Instant begin = now; channel(a).is_up() && now - begin < seconds(6);) wake(a);
  ASSERT_FALSE(channel(a).is_up());
  EXPECT_EQ(state(a).messages.in_use(), 0u);
}

// Its application does not read its completions, say.
TEST_F(CompactTest, a_peer_that_lives_and_does_not_answer_keeps_its_channel) {
  filter = [&](UbNode& from, Bytes& frame) { return &from == &a || !wire::has_link_header(frame); };
  request(WrOp::kWrite, 8);
  settle(seconds(10));
  EXPECT_EQ(only_status(a), CrStatus::kAckTimeout) << "by its own deadline";
  EXPECT_TRUE(channel(a).is_up());
  filter = nullptr;
  request(WrOp::kWrite, 8);
  exchange();
  EXPECT_EQ(only_status(a), CrStatus::kSuccess);
}

TEST_F(CompactTest, an_idle_channel_lives_while_its_peer_does) {
  const Instant begin = now;
  while (now - begin < seconds(60)) {
    now = later(now, earlier(a.core->next_deadline(), b.core->next_deadline()));
    a.core->on_timer(now);
    b.core->on_timer(now);
    exchange();
  }
  EXPECT_TRUE(channel(a).is_up());
  EXPECT_TRUE(channel(b).is_up());
  filter = [&](UbNode&, Bytes&) { return false; };
  while (now - begin < seconds(60 + 20) && channel(a).is_up()) wake(a);
  EXPECT_FALSE(channel(a).is_up());
}

// ---- hostile packets -------------------------------------------------------------------------------------------

class CompactHostile : public CompactTest {
 protected:
  /// The packet of a WRITE of a, changed and sealed again.
  Bytes changed(const std::function<void(Bytes&)>& change) {
    request(WrOp::kWrite, 8);
    drain(a);
    Bytes frame = a.host.frames.back();
    a.host.frames.clear();
    change(frame);
    seal(frame);
    return frame;
  }
  void expect_drop(const Bytes& frame, Counter c) {
    const uint64_t before = count(b, c), delivered = count(b, Counter::kCtpRx);
    b.core->on_packet(now, b.link, frame);
    EXPECT_EQ(count(b, c), before + 1) << counter_name(c);
    EXPECT_EQ(count(b, Counter::kCtpRx), delivered);
    EXPECT_FALSE(drain(b)) << "no answer";
  }
  // So many requests come to b, which cannot send the answers.
  void let_answers_wait(uint32_t requests) {
    b.host.full = true;
    Bytes frame = changed([](Bytes&) {});
    for (; requests != 0; --requests, tassn += 2) {  // so that no two answers become one
      store_be16(frame.data() + kBtah + 2, tassn);
      seal(frame);
      b.core->on_packet(now, b.link, frame);
    }
  }
  uint16_t tassn = 100;
};

TEST_F(CompactHostile, each_bad_header_is_a_named_drop) {
  expect_drop(changed([](Bytes& f) { f.resize(wire::CompactTemplate::kSize + 3); }), Counter::kRxDropTooShort);
  expect_drop(changed([](Bytes& f) { f[kLph + 1] = std::byte{8}; }), Counter::kRxDropBadLinkType);
  expect_drop(changed([](Bytes& f) { f[kLph + 1] = std::byte{9}; }), Counter::kRxDropNoBypass);  // a load or store
  expect_drop(changed([](Bytes& f) { f[kNth + 9] = std::byte{3}; }), Counter::kRxDropBadNlp);
  expect_drop(changed([](Bytes& f) { f[kNth + 5] ^= std::byte{1}; }), Counter::kRxDropUnknownTpn);
  expect_drop(changed([](Bytes& f) { f[kNth + 2] ^= std::byte{1}; }), Counter::kRxDropWrongPeer);
  expect_drop(changed([](Bytes& f) { f[kCtph] |= std::byte{0x40}; }), Counter::kRxDropBadTpOpcode);
  expect_drop(changed([](Bytes& f) { f[kCtph] |= std::byte{0x80}; }), Counter::kRxDropBadTpOpcode);
  expect_drop(changed([](Bytes& f) { f[kCtph] |= std::byte{1}; }), Counter::kRxDropBadNlp);
  Bytes damaged = changed([](Bytes&) {});
  damaged[kBtah + 12] ^= std::byte{1};
  expect_drop(damaged, Counter::kRxDropBadIcrc);
}

TEST_F(CompactHostile, a_packet_of_rtp_has_no_place_here) {
  request(WrOp::kRead, 4 * kMtu);  // which sets up a channel of RTP
  settle(seconds(1));
  request(WrOp::kRead, 4 * kMtu);
  drain(a);
  Bytes frame = a.host.frames.back();
  a.host.frames.clear();
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
  std::byte* tph = frame.data() + (net.tph - frame.data());
  store_be24(tph + 2, channel(a).tpn);
  store_be24(tph + 5, channel(b).tpn);
  const auto covered = static_cast<size_t>(net.end - net.l3);
  wire::icrc_store(frame.data() + (net.end - frame.data()), wire::icrc_compute(net.l3, covered, net.v6));
  const uint64_t before = count(b, Counter::kRxDropBadTpOpcode);
  b.core->on_packet(now, b.link, frame);
  EXPECT_EQ(count(b, Counter::kRxDropBadTpOpcode), before + 1);
}

TEST_F(CompactHostile, what_cannot_be_is_answered_with_an_error) {
  const auto answered = [this](const Bytes& frame) {
    b.core->on_packet(now, b.link, frame);
    const std::vector<SeenCompact> back = compact_from(b);
    b.host.frames.clear();
    if (back.size() != 1) return false;
    return back[0].ta.rsp.rspst == wire::kRspError && back[0].ta.rsp.rspinfo == wire::kErrUnsupportedRequest;
  };
  EXPECT_TRUE(answered(changed([](Bytes& f) { f[kBtah] = std::byte{0x2F}; }))) << "an unknown operation";
  EXPECT_TRUE(answered(changed([](Bytes& f) { f[kBtah + 5] ^= std::byte{0x30}; }))) << "of a sequence context";
  request(WrOp::kRead, 8);
  drain(a);
  Bytes read = a.host.frames.back();
  a.host.frames.clear();
  const size_t length = kBtah + wire::Btah::kSize + 12;
  store_be32(read.data() + length, kMtu + 1);
  seal(read);
  EXPECT_TRUE(answered(read)) << "a READ whose response is more than a packet";
}

TEST_F(CompactHostile, a_peer_with_too_many_requests_loses_its_channel) {
  const uint32_t most = state(b).config.window_packets;
  let_answers_wait(most);
  EXPECT_TRUE(channel(b).is_up());
  EXPECT_EQ(count(b, Counter::kCtpRx), most);
  let_answers_wait(1);
  EXPECT_FALSE(channel(b).is_up());
  EXPECT_EQ(count(b, Counter::kCtpRx), most);
  EXPECT_EQ(count(b, Counter::kCtpRxTooMany), 1u);
  EXPECT_EQ(state(b).messages.in_use(), 0u);
  b.host.full = false;
  exchange();
  EXPECT_FALSE(channel(a).is_up()) << "it was told";
}

// Answers need no answers.
TEST_F(CompactHostile, an_answer_is_never_one_too_many) {
  const Bytes write = changed([](Bytes&) {});
  b.core->on_packet(now, b.link, write);
  drain(b);
  Bytes taack = b.host.frames.at(0);
  std::copy_n(write.begin(), kCtph, taack.begin());  // the addresses, so that it is an answer to b
  seal(taack);
  let_answers_wait(state(b).config.window_packets);
  b.core->on_packet(now, b.link, taack);
  EXPECT_TRUE(channel(b).is_up());
  EXPECT_EQ(count(b, Counter::kTaRxStaleAnswer), 1u);
}

}  // namespace
}  // namespace ub
