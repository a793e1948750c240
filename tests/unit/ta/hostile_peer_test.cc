// SPDX-License-Identifier: Apache-2.0
//
// Peers that mean harm: what they send takes nothing from others, and everything that they took comes back.
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

TEST(HostilePeer, a_write_with_immediate_of_two_packets_takes_one_receive) {
  Delivery d;
  d.post_receive(64);
  d.post_receive(64, 64);
  d.give(write_imm(d, kMtu + 8), kMtu, false);
  d.give(write_imm(d, kMtu + 8, kMtu), 8, true);
  EXPECT_EQ(receives_out(d), 0u);
  EXPECT_EQ(reserved(d), 0u);
}

TEST(HostilePeer, a_send_that_ends_as_a_write_with_immediate_takes_one_receive) {
  Delivery d;
  d.post_receive(2 * kMtu);
  d.post_receive(64, 4096);
  d.give(d.send(), kMtu, false);
  d.give(write_imm(d, kMtu + 8, kMtu), 8, true);
  EXPECT_EQ(receives_out(d), 0u);
  EXPECT_EQ(reserved(d), 0u);
}

TEST(HostilePeer, a_write_with_immediate_that_never_ends_leaves_nothing_behind) {
  Delivery d;
  d.post_receive(64);
  d.post_receive(64, 64);
  d.give(write_imm(d, 3 * kMtu), kMtu, false);
  d.give(write_imm(d, 3 * kMtu, kMtu), kMtu, false);
  setup::kill_channel(*d.s, d.channel);
  EXPECT_EQ(receives_out(d), 0u);
  EXPECT_EQ(reserved(d), 0u);
}

// The peer leaps over message numbers until they are used again, while a copy of the first message is pending.
struct Leaps : Slow {
  void around() {
    uint32_t at_psn = 1;
    for (const uint32_t to : {0x7ffffeu, 0xfffffcu, 0xffffffu}) {
      wire::TaPacket p = on_memory(TaOpcode::kWrite, 2 * kMtu);
      p.ma.token_id ^= 1;  // fails: nothing is copied
      give(at_psn++, p, 8, true, to);
    }
    ASSERT_EQ(ch().message, Tpmsn(0));
  }
};

TEST(HostilePeer, a_message_with_the_number_of_one_whose_copies_are_pending_waits_for_them) {
  Leaps d;
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  ASSERT_EQ(d.host.pending_copies(), 1u);
  d.around();
  d.give(4, d.on_memory(TaOpcode::kWrite, 8, 64), 8, true, 0);
  EXPECT_EQ(d.host.pending_copies(), 1u);
  EXPECT_TRUE(d.ch().stalled);
  d.finish_copy();
  EXPECT_EQ(d.host.pending_copies(), 1u) << "that of the second";
  d.finish_copies();
  EXPECT_TRUE(d.holds(8, 64));
  EXPECT_TRUE(d.ch().ending.empty());
}

TEST(HostilePeer, what_comes_early_is_not_placed_under_the_number_of_one_whose_copies_are_pending) {
  Leaps d;
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  d.around();
  d.give(5, d.on_memory(TaOpcode::kWrite, 2 * kMtu), kMtu, false, 0);
  EXPECT_EQ(d.host.pending_copies(), 1u);
  d.finish_copies();
  EXPECT_EQ(d.host.pending_copies(), 0u);
}

TEST(HostilePeer, that_leaps_while_a_receive_is_filled_leaves_nothing_behind) {
  Leaps d;
  d.post_receive(64);
  d.give(0, d.send(), 8, true, 0);
  d.around();
  d.finish_copies();
  setup::kill_channel(*d.s, d.channel);
  EXPECT_EQ(receives_out(d), 0u);
  EXPECT_EQ(reserved(d), 0u);
}

// It sends requests and acknowledges no answer.
struct Deaf : Delivery {
  Deaf() : Delivery({.channels = 16, .channels_per_lane = 2, .window = 2048}) {
    cut_into(1024);
    const uint32_t peer = s->targets[target].peer, own = place_of(*s, q(), kSmallLane);
    for (uint32_t place = 0; place < 2; ++place) {
      const uint32_t c = setup::channel_to(*s, peer, false, place);
      if (!s->channels[c].is_up()) open(c);
      s->channels[c].flow.window_packets = 2048;
    }
    ours = setup::channel_to(*s, peer, false, own);
    channel = setup::channel_to(*s, peer, false, 1 - own);  // by which its requests come
    ch().highest_seen = ch().expected - 1;
    ch().send_window = 0;
  }
  void ask_without_end() {
    while (room_for_answer(*s, ch())) {
      wire::TaPacket p = on_memory(TaOpcode::kWrite, 8);
      p.req.rc_id = kPeerRcid + psn % 2;  // no two of them share a TAACK
      give(p, 8);
    }
  }
  uint32_t ours;
};

TEST(HostilePeer, that_takes_no_answers_leaves_room_for_those_to_others) {
  Deaf d;
  d.ask_without_end();
  EXPECT_LE(d.s->answers.in_use(), d.s->answers.capacity() / 2);
  EXPECT_TRUE(room_for_answer(*d.s, d.s->channels[d.ours]));
}

TEST(HostilePeer, that_takes_no_answers_leaves_room_for_requests) {
  Deaf d;
  d.ask_without_end();
  for (uint32_t i = 0; i < 32; ++i) d.post(WrOp::kRead, 64 * 1024, 1);
  PacketSender<TestHost> sender(*d.s, d.host);
  for (int i = 0; i < 100; ++i) sender.send(100'000);
  EXPECT_EQ(d.s->channels[d.ours].in_flight.size(), 2048u) << "a full window";
}

}  // namespace
}  // namespace ub::ta
