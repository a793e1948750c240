// SPDX-License-Identifier: Apache-2.0
//
// What a hostile peer can do to the target: found by an attempt to break it.
#include "lib/transport/ta/packet_sender.h"
#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

wire::TaPacket write_imm(const Delivery& d, uint32_t length, uint64_t offset = 0) {
  wire::TaPacket p = d.on_memory(TaOpcode::kWriteImmediate, length, offset);
  p.has_mt = p.has_imm = true;
  p.mt = {0, wire::kTcTypeQueue, d.id};
  p.imm = {7, 0, length};
  return p;
}

uint32_t receives_out(Delivery& d) {
  uint32_t returned = 0;
  const Jfr& r = d.the_jfr();
  if (!r.returned.empty()) {
    for (uint32_t i = r.returned.front<&RxReceive::on_list>(d.s->receives); i != 0;
         i = r.returned.behind<&RxReceive::on_list>(d.s->receives, i))
      ++returned;
  }
  return d.s->receives.in_use() - returned;
}
uint32_t reserved(Delivery& d) {
  uint32_t all = 0;
  for (uint32_t i = 1; i <= d.s->jfcs.high_water(); ++i) all += d.s->jfcs[i].reserved;
  return all;
}

TEST(Breaker, a_write_with_immediate_of_two_packets_takes_one_receive) {
  Delivery d;
  d.post_receive(64);
  d.post_receive(64, 64);
  d.give(write_imm(d, kMtu + 8), kMtu, false);
  d.give(write_imm(d, kMtu + 8, kMtu), 8, true);
  EXPECT_EQ(receives_out(d), 0u);
  EXPECT_EQ(reserved(d), 0u);
}

TEST(Breaker, a_send_that_ends_as_a_write_with_immediate_takes_one_receive) {
  Delivery d;
  d.post_receive(2 * kMtu);
  d.post_receive(64, 4096);
  d.give(d.send(), kMtu, false);
  d.give(write_imm(d, kMtu + 8, kMtu), 8, true);
  EXPECT_EQ(receives_out(d), 0u);
  EXPECT_EQ(reserved(d), 0u);
}

TEST(Breaker, a_leaked_receive_does_not_survive_the_channel) {
  Delivery d;
  d.post_receive(64);
  d.post_receive(64, 64);
  d.give(write_imm(d, 3 * kMtu), kMtu, false);
  d.give(write_imm(d, 3 * kMtu, kMtu), kMtu, false);
  setup::kill_channel(*d.s, d.channel);
  EXPECT_EQ(receives_out(d), 0u);
  EXPECT_EQ(reserved(d), 0u);
}

// The peer leaps over message numbers until they are used again while a copy of the first message is pending.
TEST(Breaker, message_numbers_that_wrap_while_a_copy_is_pending) {
  Slow d;
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);  // parked as message 0
  ASSERT_EQ(d.host.pending_copies(), 1u);
  uint32_t psn = 1;
  for (const uint32_t to : {0x7ffffeu, 0xfffffcu, 0xffffffu}) {
    wire::RtpHeader rtp;
    wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 2 * kMtu);
    p.ma.token_id ^= 1;  // fails: nothing is copied
    d.give(psn++, p, 8, true, to);
  }
  EXPECT_EQ(d.ch().message.value(), 0u);
  d.finish_copies();
  EXPECT_EQ(d.ch().open.copies, 0u);
  EXPECT_TRUE(d.ch().ending.empty());
}

// As above, but the pending copies are into a receive: nothing of it may be lost when the channel dies.
TEST(Breaker, message_numbers_that_wrap_leak_no_receive) {
  Slow d;
  d.post_receive(64);
  d.give(0, d.send(), 8, true, 0);
  uint32_t psn = 1;
  for (const uint32_t to : {0x7ffffeu, 0xfffffcu, 0xffffffu}) {
    wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 2 * kMtu);
    p.ma.token_id ^= 1;
    d.give(psn++, p, 8, true, to);
  }
  d.finish_copies();
  setup::kill_channel(*d.s, d.channel);
  EXPECT_EQ(receives_out(d), 0u);
  EXPECT_EQ(reserved(d), 0u);
}

// A peer sends requests and never acknowledges an answer.
TEST(Breaker, answers_of_one_peer_leave_room_for_others) {
  Delivery d({.lanes = 2, .channels = 64});
  const uint32_t other = d.peer().lanes[1].channels[0];
  (void)other;
  uint32_t given = 0;
  while (room_for_answer(*d.s) && given < 1000000) {
    wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 8);
    p.req.rc_id = kPeerRcid + given % 2;  // no two of them share a TAACK
    d.give(p, 8);
    ++given;
  }
  const double share = 1.0 * d.ch().answers.size() / tp::kMessagesPerChunk / d.s->messages.capacity();
  EXPECT_LT(share, 0.75) << given << " requests; " << d.s->messages.capacity() << " chunks, in use "
                         << d.s->messages.in_use();
}

// The same, and then this side READs on other channels: PacketSender takes a descriptor for granted.
TEST(Breaker, requests_find_room_while_one_peer_takes_no_answers) {
  Delivery d({.lanes = 1, .channels = 16, .channels_per_lane = 2, .window = 2048});
  d.s->config.segment_bytes = 1024;
  const uint32_t peer = d.s->targets[d.target].peer, own = place_of(*d.s, d.q());
  for (uint32_t place = 0; place < 2; ++place) {
    const uint32_t c = setup::channel_to(*d.s, peer, false, place);
    if (!d.s->channels[c].is_up()) d.open(c);
    d.s->channels[c].flow.window_packets = 2048;
  }
  const uint32_t ours = setup::channel_to(*d.s, peer, false, own);
  d.channel = setup::channel_to(*d.s, peer, false, 1 - own);  // that of the peer's requests
  d.ch().highest_seen = d.ch().expected - 1;
  for (uint32_t given = 0; room_for_answer(*d.s) && given < 1000000; ++given) {
    wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 8);
    p.req.rc_id = kPeerRcid + given % 2;
    d.give(p, 8);
  }
  ASSERT_FALSE(room_for_answer(*d.s));
  d.ch().send_window = 0;  // the peer acknowledges nothing
  for (uint32_t i = 0; i < 32; ++i) d.post(WrOp::kRead, 64 * 1024, 1);
  PacketSender<TestHost> sender(*d.s, d.host);
  for (int i = 0; i < 100; ++i) sender.send(100000);
  EXPECT_EQ(d.s->channels[ours].in_flight.size(), 2048u) << d.s->messages.in_use() << "/" << d.s->messages.capacity();
}

}  // namespace
}  // namespace ub::ta
