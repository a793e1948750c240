// SPDX-License-Identifier: Apache-2.0
//
// Memory of the target that answers later: what waits for it, and what becomes of a message whose memory went away or
// whose end waits for it (UB Base Specification Rev 2.0, 7.2, 7.3).
#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

// ---- memory that answers later, at the target ------------------------------------------------------------------

TEST(SlowTarget, a_write_is_answered_when_its_bytes_are_there) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  EXPECT_TRUE(d.answers().empty());
  d.finish_copies();
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_TRUE(d.holds(8));
}

TEST(SlowTarget, the_last_packet_of_a_message_waits_for_the_others) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false);
  d.give(d.on_memory(TaOpcode::kWrite, kMtu + 8, kMtu), 8, true, kMtu);
  EXPECT_EQ(d.host.pending_copies(), 1u) << "the final word becomes visible last";
  d.finish_copy();
  EXPECT_EQ(d.host.pending_copies(), 1u);
  EXPECT_TRUE(d.answers().empty());
  d.finish_copy();
  EXPECT_EQ(d.verdict(), kFine);
}

// Gives a segment of a WRITE, `packets` whole ones, whose memory begins at `offset`.
void give_segment(Slow& d, uint64_t offset, uint32_t packets, uint32_t tassn) {
  for (uint32_t i = 0; i < packets; ++i) {
    wire::TaPacket p = d.on_memory(TaOpcode::kWrite, packets * kMtu, offset + i * kMtu);
    p.req.tassn = Tassn(tassn);
    d.give(p, kMtu, i + 1 == packets);
  }
}

constexpr uint32_t kLeastPackets = kMinSegmentBytes / kMtu;

// A WRITE is cut into segments, each of which is a message. What spins on its last byte must find all others.
TEST(SlowTarget, the_last_packet_of_a_segment_waits_for_the_segment_before_it) {
  Slow d;
  give_segment(d, 0, kLeastPackets, 0);
  EXPECT_EQ(d.host.pending_copies(), kLeastPackets - 1);
  give_segment(d, kMinSegmentBytes, 1, 1);
  give_segment(d, kMinSegmentBytes + kMtu, 1, 2);
  ASSERT_EQ(d.host.pending_copies(), kLeastPackets) << "one is the end of another WRITE";
  d.finish_copy(kLeastPackets - 1);
  while (d.host.pending_copies() > 1) d.finish_copy();
  EXPECT_TRUE(d.answers().empty());
  d.finish_copy();
  EXPECT_EQ(d.host.pending_copies(), 1u) << "the end of the first segment";
  d.finish_copy();
  EXPECT_EQ(d.answers().size(), 1u);
  EXPECT_EQ(d.host.pending_copies(), 1u) << "then the end of the second one";
  d.finish_copy();
  EXPECT_EQ(d.answers().size(), 1u) << "one for both that are left";
  EXPECT_TRUE(d.holds(kMtu, kMinSegmentBytes));
  EXPECT_EQ(d.s->kept.in_use(), 0u);
  EXPECT_EQ(d.ch().parked, 0u);
}

TEST(SlowTarget, who_only_looks_like_the_next_segment_does_not_wait) {
  const auto waits = [](void (*change)(wire::TaPacket&)) {
    Slow d;
    give_segment(d, 0, kLeastPackets, 0);
    const size_t before = d.host.pending_copies();
    wire::TaPacket p = d.on_memory(TaOpcode::kWrite, kMtu, kMinSegmentBytes);
    p.req.tassn = Tassn(1);
    change(p);
    d.give(p, kMtu);
    return d.host.pending_copies() == before;
  };
  EXPECT_TRUE(waits([](wire::TaPacket&) {}));
  EXPECT_FALSE(waits([](wire::TaPacket& p) { ++p.req.rc_id; }));
  EXPECT_FALSE(waits([](wire::TaPacket& p) { p.req.tassn = Tassn(2); }));
  EXPECT_FALSE(waits([](wire::TaPacket& p) { p.ma.address += kMtu; }));
  EXPECT_FALSE(waits([](wire::TaPacket& p) {
    p.req.opcode = TaOpcode::kWriteNotify;
    p.has_ntf = true;
  })) << "its sender sends it when the others are answered";
  Slow d;
  give_segment(d, 0, kLeastPackets - 1, 0);
  const size_t before = d.host.pending_copies();
  give_segment(d, kMinSegmentBytes - kMtu, 1, 1);
  EXPECT_EQ(d.host.pending_copies(), before + 1) << "behind a WRITE that is shorter than any segment";
}

TEST(SlowTarget, no_segment_follows_one_of_another_channel_or_the_end_of_a_write) {
  Slow d;
  give_segment(d, 0, kLeastPackets, 0);
  wire::TaPacket p = d.on_memory(TaOpcode::kWrite, kMtu, kMinSegmentBytes);
  p.req.tassn = Tassn(1);
  p.payload_len = kMtu;
  EXPECT_TRUE(follows_parked(*d.s, d.ch(), p));
  EXPECT_FALSE(follows_parked(*d.s, tp::Channel{}, p));
  first_parked(*d.s, d.ch()).last.req.opcode = TaOpcode::kWriteNotify;
  EXPECT_FALSE(follows_parked(*d.s, d.ch(), p)) << "a notification ends its WRITE";
}

TEST(SlowTarget, a_message_whose_memory_went_away_fails_and_no_other_one) {
  for (uint32_t failing : {0u, 1u}) {
    Slow d;
    d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
    if (failing == 0) d.host.lose_pending();
    d.finish_copies();
    EXPECT_EQ(d.verdict(), failing == 0 ? kAborted : kFine);
    d.give(d.on_memory(TaOpcode::kWrite, 8, 64), 8);
    if (failing == 1) d.host.lose_pending();
    d.finish_copies();
    EXPECT_EQ(d.verdict(), failing == 1 ? kAborted : kFine);
    EXPECT_FALSE(d.ch().open.copy_failed);
  }
}

TEST(SlowTarget, a_failed_copy_of_a_response_fails_no_message_of_the_peer) {
  Slow d;
  d.post(WrOp::kRead, 8);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0), 8);
  d.host.lose_pending();
  d.finish_copies();
  EXPECT_FALSE(d.ch().open.copy_failed);
  EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kLocAccess}));
}

TEST(SlowTarget, an_atomic_is_answered_when_it_was_done) {
  Slow d;
  const uint64_t operands[2] = {2, 0}, before = 40;
  std::memcpy(d.bytes, operands, sizeof operands);
  std::memcpy(d.base, &before, sizeof before);
  d.give(d.on_memory(TaOpcode::kAtomicFetchAdd, 8), 16);
  EXPECT_TRUE(d.answers().empty());
  d.finish_copies();
  EXPECT_EQ(d.answers().at(0).value, 40u);
}

TEST(SlowTarget, a_notification_follows_the_bytes_and_the_answer_follows_it) {
  Slow d;
  wire::TaPacket p = d.on_memory(TaOpcode::kWriteNotify, 8);
  p.has_ntf = true;
  p.ntf = {reinterpret_cast<uint64_t>(d.base) + 64, d.target_memory.token_id, kToken, 5};
  d.give(p, 8);
  d.finish_copy();
  EXPECT_EQ(d.host.pending_copies(), 1u) << "the word";
  EXPECT_TRUE(d.answers().empty());
  d.finish_copy();
  EXPECT_EQ(d.host.pending_copies(), 0u) << "once";
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(SlowTarget, a_fake_without_a_record_waits_for_what_may_still_write) {
  Slow d;
  d.park_nothing();
  d.post_receive(3 * kMtu);
  d.give(d.send(), kMtu, false);
  d.give_fake(0);
  EXPECT_EQ(d.count(Counter::kRxMessageVanished), 0u);
  EXPECT_TRUE(d.ch().stalled);
  d.finish_copies();
  EXPECT_EQ(d.count(Counter::kRxMessageVanished), 1u);
  EXPECT_EQ(d.ch().open.receive, 0u);
}

TEST(SlowTarget, a_write_of_nothing_waits_for_no_memory) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 0), 0);
  EXPECT_EQ(d.host.pending_copies(), 0u);
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(SlowTarget, no_more_than_so_many_copies_are_pending_ahead_of_a_gap) {
  Slow d;
  for (uint32_t i = 1; i <= 66; ++i) {
    d.give(i, d.on_memory(TaOpcode::kWrite, 70 * kMtu, i * kMtu), kMtu, false, 0);
  }
  EXPECT_EQ(d.ch().open.copies, 64u);
  EXPECT_EQ(d.host.pending_copies(), 64u);
  EXPECT_EQ(d.s->kept.in_use(), 2u) << "the others are kept";
}

TEST(SlowTarget, ahead_of_a_gap_without_a_record_a_packet_is_kept) {
  Slow d;
  d.park_nothing();
  d.give(4, d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false, 2);
  EXPECT_EQ(d.host.pending_copies(), 0u);
  EXPECT_EQ(d.s->kept.in_use(), 1u);
}

TEST(SlowTarget, a_malformed_part_waits_for_no_copy_if_it_is_not_the_end) {
  Slow d;
  d.park_nothing();
  d.give(d.on_memory(TaOpcode::kWrite, 3 * kMtu), kMtu, false);
  wire::RtpHeader rtp;
  rtp.psn = Psn(d.psn++);
  d.receiver.on_data(d.channel, rtp, {});
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.ch().delivered, Psn(2));
}

TEST(SlowTarget, a_part_that_answers_waits_for_no_copy_if_it_is_not_the_end) {
  Slow d;
  d.park_nothing();
  d.give(d.on_memory(TaOpcode::kWrite, 3 * kMtu), kMtu, false);
  d.give(d.response(TaOpcode::kTaack, 9), 0, false);
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.ch().delivered, Psn(2));
}

// The peer must not take a side for dead that waits for its memory (6.2.1).
TEST(SlowTarget, while_a_message_is_parked_a_packet_that_cannot_be_kept_is_answered_with_an_acknowledgement) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  ASSERT_EQ(d.ch().parked, 1u);
  d.use_up_kept_places();
  d.s->owing_acks.pop_front<&tp::Channel::on_ack_list>(d.s->channels);
  d.give(2, d.on_memory(TaOpcode::kWrite, 8, 64), 8, true, 2);
  EXPECT_EQ(d.count(Counter::kRxNoReorderBuffer), 1u);
  EXPECT_TRUE(d.ch().on_ack_list);
}

TEST(SlowTarget, so_it_is_while_copies_of_the_message_that_comes_are_pending) {
  for (const bool pending : {false, true}) {
    Slow d;
    d.host.slow = pending;
    d.give(d.on_memory(TaOpcode::kWrite, 3 * kMtu), kMtu, false);
    ASSERT_EQ(d.ch().open.copies, pending ? 1u : 0u);
    ASSERT_EQ(d.ch().parked, 0u);
    d.use_up_kept_places();
    d.s->owing_acks.pop_front<&tp::Channel::on_ack_list>(d.s->channels);
    d.give(2, d.on_memory(TaOpcode::kWrite, 8, 8 * kMtu), 8, true, 2);
    EXPECT_EQ(d.count(Counter::kRxNoReorderBuffer), 1u);
    EXPECT_EQ(bool(d.ch().on_ack_list), pending);
  }
}

// Numbers of messages come again, and answers, which nothing parks, may use up all of them meanwhile (6.2.1).
TEST(SlowTarget, a_message_waits_for_the_parked_one_that_has_its_number) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  ASSERT_EQ(d.ch().parked, 1u);
  d.ch().message = Tpmsn(d.tpmsn = 0);
  d.give(d.on_memory(TaOpcode::kWrite, 8, 64), 8);
  EXPECT_TRUE(d.ch().stalled);
  EXPECT_EQ(d.ch().parked, 1u);
  d.finish_copies();
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.ch().message, Tpmsn(1));
  EXPECT_TRUE(d.holds(8, 64));
}

TEST(SlowTarget, a_channel_that_closes_delivers_nothing_more) {
  Slow d;
  d.park_nothing();
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  ASSERT_TRUE(d.ch().stalled);
  d.ch().state = tp::ChannelState::kClosing;
  d.finish_copies();
  EXPECT_EQ(d.ch().delivered, Psn(0));
  EXPECT_TRUE(d.answers().empty());
}

TEST(SlowTarget, no_more_than_so_many_copies_are_pending) {
  Slow d;
  for (uint32_t i = 0; i < 66; ++i) {
    d.give(d.on_memory(TaOpcode::kWrite, 70 * kMtu, i * kMtu), kMtu, false);
  }
  EXPECT_EQ(d.ch().open.copies, 64u);
  EXPECT_TRUE(d.ch().stalled);
}

TEST(SlowTarget, an_answer_for_a_copy_of_a_channel_that_died_gives_its_receive_back) {
  Slow d;
  d.post_receive(3 * kMtu);
  d.give(d.send(), kMtu, false);
  setup::kill_channel(*d.s, d.channel);
  EXPECT_FALSE(d.s->receives_with_late_copies.empty());
  d.finish_copies();
  EXPECT_TRUE(d.s->receives_with_late_copies.empty());
  EXPECT_FALSE(d.the_jfr().returned.empty());
}

// The same of a receive, of which the second range is gone.
TEST(SlowTarget, a_receive_whose_bytes_have_no_place_in_part_completes_when_the_other_part_is_there) {
  Slow d;
  d.post_receive(8);
  Rqe& receive = d.receive_rings[0].slots[0];
  receive.length = 16;
  receive.sge_count = 2;
  receive.sge[1] = {d.address() + 64, 8, 0};
  d.give(d.send(), 16);
  EXPECT_EQ(d.host.pending_copies(), 1u);
  EXPECT_EQ(d.outcomes(), Outcomes{});
  EXPECT_TRUE(d.answers().empty());
  d.finish_copies();
  EXPECT_EQ(d.outcomes(), Outcomes{CrStatus::kLocAccess});
  EXPECT_NE(d.verdict(), kFine);
}

// Packets of later messages may be placed ahead of a gap, and fail there.
TEST(SlowTarget, of_messages_placed_ahead_those_fail_whose_memory_went_away) {
  for (bool newest_first : {false, true}) {
    Slow d;
    for (uint32_t message : {3u, 1u, 5u}) {
      d.give(2 * message, d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false, message);
      if (message == 3) d.host.lose_pending();
    }
    while (d.host.pending_copies() != 0) d.finish_copy(newest_first ? d.host.pending_copies() - 1 : 0);
    EXPECT_EQ(d.ch().parked, 1u) << "there is nothing to remember of the others";
    d.host.slow = false;
    for (uint32_t message = 0; message < 8; ++message) {
      const bool ahead = message == 1 || message == 3 || message == 5;
      if (!ahead) d.give(2 * message, d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false, message);
      d.give(2 * message + 1, d.on_memory(TaOpcode::kWrite, kMtu + 8, kMtu), 8, true, message);
      EXPECT_EQ(d.verdict(), message == 3 ? kAborted : kFine) << message;
    }
    EXPECT_EQ(d.ch().parked, 0u);
  }
}

// Segments of one READ travel on two channels. The last packet of one waits for all copies of the request.
TEST(SlowTarget, the_end_of_a_copy_resumes_the_other_channel_of_its_request) {
  for (const bool first_waits : {false, true}) {
    Delivery d({.channels_per_lane = 2, .slow_memory = true});
    d.host.slow = true;
    const uint32_t peer = d.s->targets[d.target].peer;
    uint32_t own = setup::channel_to(*d.s, peer, false, place_of(*d.s, d.q(), kSmallLane));
    uint32_t other = setup::channel_to(*d.s, peer, false, place_of(*d.s, d.q(), kSmallLane) ^ 1);
    for (uint32_t each : {own, other}) {
      if (!d.s->channels[each].is_up()) d.open(each);
    }
    d.cut_into(2 * kMtu);
    d.post(WrOp::kRead, 4 * kMtu);
    d.sent(own);
    d.sent(other);
    if (first_waits) {
      std::swap(own, other);
      // The other one may be the channel that the peer made for the place, while ours is a new one.
      Lane& lane = d.s->peers[peer].lanes[0];
      const uint32_t place = d.s->channels[other].place();
      lane.channels[place] = 0;
      lane.accepted[place] = other;
    }
    const uint32_t own_segment = first_waits, other_segment = !first_waits;
    const auto arrives = [&d](uint32_t channel, uint32_t segment, uint32_t packet, bool last) {
      d.channel = channel;
      tp::Channel& ch = d.ch();
      ch.read_meta = true;
      ch.highest_seen = ch.expected - 1;
      const uint32_t offset_kib = (segment * 2 + packet) * kMtu / 1024;
      d.give(ch.expected.value(), d.response(TaOpcode::kReadResponse, segment, offset_kib), kMtu, last,
             ch.message.value());
    };
    arrives(own, own_segment, 0, false);
    arrives(other, other_segment, 0, false);
    ASSERT_EQ(d.host.pending_copies(), 2u);
    arrives(other, other_segment, 1, true);
    EXPECT_TRUE(d.s->channels[other].stalled);
    d.finish_copy(1);
    EXPECT_TRUE(d.s->channels[other].stalled) << "a copy of the other segment is pending";
    d.finish_copy(0);
    EXPECT_FALSE(d.s->channels[other].stalled);
    EXPECT_EQ(d.host.pending_copies(), 1u) << "of the last packet";
  }
}

TEST(SlowTarget, messages_that_never_come_give_their_records_back) {
  Slow d;
  for (uint32_t message : {1u, 2u, 3u}) {
    d.give(2 * message, d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false, message);
  }
  d.finish_copy();
  d.give(0, d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false, 0);
  d.give(1, d.on_memory(TaOpcode::kWrite, 8), 8, true, 3);  // 0 to 2 end without their last packets
  d.finish_copies();
  EXPECT_EQ(d.count(Counter::kRxMessageMismatch), 1u);
  EXPECT_EQ(d.ch().parked, 0u);
  EXPECT_EQ(d.s->parked.in_use(), 0u);
  EXPECT_EQ(d.answers().size(), 1u) << "to the one that came";
}

TEST(SlowTarget, a_channel_that_dies_gives_all_its_records_back) {
  Slow d;
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  d.give(1, d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false, 1);
  d.give(2, d.on_memory(TaOpcode::kWrite, kMtu + 8, kMtu), 8, true, 1);
  d.give(3, d.on_memory(TaOpcode::kWrite, 2 * kMtu), kMtu, false, 2);
  d.give(8, d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false, 4);
  ASSERT_EQ(d.ch().parked, 3u);
  ASSERT_EQ(d.s->kept.in_use(), 1u) << "the last packet of one that is parked";
  setup::kill_channel(*d.s, d.channel);
  EXPECT_EQ(d.s->parked.in_use(), 0u);
  EXPECT_EQ(d.s->kept.in_use(), 0u);
  EXPECT_EQ(d.ch().kept.total(), 0u);
  EXPECT_EQ(d.ch().open.copies, 0u);
}

TEST(SlowTarget, the_receive_of_a_channel_that_died_belongs_to_nobody_until_its_copies_are_done) {
  Slow d;
  d.post_receive(8);
  d.give(d.send(), 8);
  const uint32_t record = d.ch().ending.front<&ParkedMessage::in_line>(d.s->parked);
  ASSERT_NE(d.s->parked[record].receive, 0u);
  setup::kill_channel(*d.s, d.channel);
  EXPECT_EQ(d.s->parked[record].receive, 0u) << "of a record that is free";
  EXPECT_TRUE(d.the_jfr().returned.empty()) << "bytes are on their way into it";
  d.finish_copies();
  EXPECT_FALSE(d.the_jfr().returned.empty());
}

// ---- messages whose end waits for memory -----------------------------------------------------------------------

TEST(ParkedMessage, those_behind_it_are_placed_meanwhile) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  d.give(d.on_memory(TaOpcode::kWrite, 8, 64), 8);
  d.give(d.on_memory(TaOpcode::kWrite, 8, 128), 8);
  EXPECT_EQ(d.host.pending_copies(), 3u);
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.ch().parked, 3u);
  d.finish_copies();
  EXPECT_EQ(d.answers().size(), 1u) << "one for all";
  EXPECT_EQ(d.ch().parked, 0u);
}

TEST(ParkedMessage, they_end_in_the_order_in_which_they_came) {
  Slow d;
  for (int i = 0; i < 3; ++i) d.post_receive(8, 64 * i);
  for (int i = 0; i < 3; ++i) d.give(d.send(), 8);
  d.finish_copy(2);
  d.finish_copy(1);
  EXPECT_TRUE(d.answers().empty());
  EXPECT_TRUE(d.receive_completions().empty());
  d.finish_copy(0);
  EXPECT_EQ(d.receive_completions(), (std::vector<uint64_t>{1000, 1064, 1128}));
  EXPECT_EQ(d.ch().parked, 0u);
}

TEST(ParkedMessage, one_of_several_packets_is_placed_to_its_end_while_others_wait) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  d.give(d.on_memory(TaOpcode::kWrite, kMtu + 8, 64), kMtu, false);
  d.give(d.on_memory(TaOpcode::kWrite, kMtu + 8, 64 + kMtu), 8, true, kMtu);
  d.give(d.on_memory(TaOpcode::kWrite, 8, 4 * kMtu), 8);
  ASSERT_EQ(d.host.pending_copies(), 3u) << "its last packet waits for its first one, nobody else";
  EXPECT_EQ(d.s->kept.in_use(), 1u);
  d.finish_copy(1);
  EXPECT_EQ(d.host.pending_copies(), 3u) << "and is placed then";
  EXPECT_EQ(d.s->kept.in_use(), 0u);
  d.finish_copies();
  EXPECT_TRUE(d.holds(kMtu + 8, 64));
  EXPECT_EQ(d.answers().size(), 1u);
}

TEST(ParkedMessage, its_last_packet_is_placed_when_all_before_it_are) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 2 * kMtu + 8), kMtu, false);
  d.give(d.on_memory(TaOpcode::kWrite, 2 * kMtu + 8, kMtu), kMtu, false);
  d.give(d.on_memory(TaOpcode::kWrite, 2 * kMtu + 8, 2 * kMtu), 8);
  ASSERT_EQ(d.ch().parked, 1u);
  d.finish_copy();
  EXPECT_EQ(d.host.pending_copies(), 1u) << "the final word becomes visible last";
  d.finish_copy();
  EXPECT_EQ(d.host.pending_copies(), 1u);
  d.finish_copy();
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(ParkedMessage, only_the_one_whose_memory_went_away_fails) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  d.host.lose_pending();
  d.give(d.on_memory(TaOpcode::kWrite, 8, 64), 8);
  d.finish_copy(1);
  d.finish_copy(0);
  const std::vector<tp::TxMessage> answers = d.answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].rspinfo, wire::kErrRemoteAbort);
  EXPECT_EQ(answers[1].rspst, wire::kRspOk);
}

// What reads memory of the target finds what was written before it, and what asks for an order gets it.
TEST(ParkedMessage, what_may_not_overtake_it_waits) {
  const auto overtakes = [](void (*change)(Slow&, wire::TaPacket&)) {
    Slow d;
    d.post_receive(64);
    d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
    wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 8, 64);
    change(d, p);
    d.give(p, p.req.opcode == TaOpcode::kRead ? 0 : p.req.opcode == TaOpcode::kAtomicFetchAdd ? 16 : 8);
    EXPECT_EQ(d.ch().stalled, d.host.pending_copies() == 1);
    const bool went = !d.ch().stalled;
    d.finish_copies();
    d.finish_copies();
    EXPECT_FALSE(d.ch().stalled);
    EXPECT_EQ(d.ch().message, Tpmsn(2));
    return went;
  };
  EXPECT_TRUE(overtakes([](Slow&, wire::TaPacket&) {}));
  EXPECT_TRUE(overtakes([](Slow&, wire::TaPacket& p) { p.req.odr = wire::kOdrCompletion; }));
  EXPECT_TRUE(overtakes([](Slow& d, wire::TaPacket& p) { p = d.send(); }));
  EXPECT_FALSE(overtakes([](Slow&, wire::TaPacket& p) { p.req.odr = 1; }));
  EXPECT_FALSE(overtakes([](Slow&, wire::TaPacket& p) { p.req.odr = 2; }));
  EXPECT_FALSE(overtakes([](Slow& d, wire::TaPacket& p) { p = d.on_memory(TaOpcode::kRead, 8, 64); }));
  EXPECT_FALSE(overtakes([](Slow& d, wire::TaPacket& p) { p = d.on_memory(TaOpcode::kAtomicFetchAdd, 8, 64); }));
}

TEST(ParkedMessage, there_are_only_so_many_of_one_channel) {
  Slow d;
  for (uint32_t i = 0; i <= kParkedOfChannel; ++i) d.give(d.on_memory(TaOpcode::kWrite, 8, 8 * i), 8);
  EXPECT_EQ(d.ch().parked, kParkedOfChannel);
  EXPECT_TRUE(d.ch().stalled);
  EXPECT_EQ(d.host.pending_copies(), kParkedOfChannel) << "the next one waits where it is";
  d.finish_copy();
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.host.pending_copies(), kParkedOfChannel);
  while (d.host.pending_copies() != 0) d.finish_copy();
  EXPECT_EQ(d.s->parked.in_use(), 0u);
}

TEST(ParkedMessage, one_channel_leaves_records_to_the_next) {
  Slow d;
  while (d.s->parked.capacity() - d.s->parked.in_use() > 2) d.s->parked.alloc();
  for (uint32_t i = 0; i < 3; ++i) d.give(d.on_memory(TaOpcode::kWrite, 8, 64 * i), 8);
  EXPECT_EQ(d.ch().parked, 1u);
  EXPECT_TRUE(d.ch().stalled);
}

TEST(ParkedMessage, that_cannot_be_answered_yet_ends_soon) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  std::vector<uint32_t> taken;
  while (room_for_answer(*d.s, d.ch())) taken.push_back(d.s->answers.alloc());
  d.s->timers.cancel(d.channel);
  d.finish_copies();
  EXPECT_EQ(d.ch().parked, 1u);
  EXPECT_TRUE(d.s->timers.armed(d.channel));
  EXPECT_GT(d.s->timers.earliest(), d.s->now);
  for (uint32_t chunk : taken) d.s->answers.free(chunk);
  EXPECT_FALSE(d.ch().stalled);
  d.channel_timer();
  EXPECT_EQ(d.ch().parked, 0u);
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(ParkedMessage, a_fake_need_not_wait_for_what_may_still_write) {
  Slow d;
  d.post_receive(3 * kMtu);
  d.give(d.send(), kMtu, false);
  d.give_fake(0);
  EXPECT_EQ(d.count(Counter::kRxMessageVanished), 1u);
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_TRUE(d.the_jfr().returned.empty()) << "it may still be written";
  d.finish_copies();
  EXPECT_FALSE(d.the_jfr().returned.empty());
  EXPECT_TRUE(d.answers().empty());
}

TEST(ParkedMessage, receives_go_back_after_the_last_copy_when_the_channel_died) {
  Slow d;
  for (int i = 0; i < 2; ++i) d.post_receive(64, 64 * i);
  d.give(d.send(), 8);
  d.give(d.send(), 8);
  setup::kill_channel(*d.s, d.channel);
  EXPECT_EQ(d.s->parked.in_use(), 0u);
  EXPECT_TRUE(d.the_jfr().returned.empty());
  d.finish_copy(1);
  const uint32_t second = d.the_jfr().returned.back();
  EXPECT_EQ(d.s->receives[second].user_ctx, 1064u);
  d.finish_copies();
  EXPECT_TRUE(d.s->receives_with_late_copies.empty());
}

TEST(ParkedMessage, its_jetty_may_go) {
  Slow d;
  d.post_receive(64);
  d.give(d.send(), 8);
  ASSERT_EQ(destroy_jetty(*d.s, d.id), Status::kOk);
  d.finish_copies();
  EXPECT_EQ(d.answers().at(0).rspinfo, wire::kErrRemoteAbort);
  EXPECT_TRUE(d.receive_completions().empty());
}

TEST(ParkedMessage, without_a_record_delivery_waits) {
  Slow d;
  d.park_nothing();
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  EXPECT_TRUE(d.answers().empty());
  EXPECT_TRUE(d.ch().stalled);
  EXPECT_EQ(d.ch().open.copies, 1u);
  d.finish_copies();
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_TRUE(d.holds(8));
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.ch().open.phase, 0);
}

}  // namespace
}  // namespace ub::ta
