// SPDX-License-Identifier: Apache-2.0
//
// Packets in the frames of a port: transport header and seal (UB Base Specification Rev 2.0, 6.2), packets without a
// transaction, frames that wait for memory, and acknowledgements on their way out (6.4.2).
#include "lib/transport/tp/transmitter.h"

#include "lib/transport/wire/network_header.h"
#include "tests/unit/tp/sender.h"
#include "tests/unit/transport/test_host.h"

namespace ub::tp {
namespace {

struct Sending : Sender {
  Sending() : Sender(100, with_slow_memory()) {
    Channel& c = ch();
    c.peer_tpn = 0x77;
    c.link = 1;
    c.icrc = true;
    c.expected = c.delivered = Psn(500);
    c.highest_seen = Psn(499);
    c.headers.init({}, {}, {}, {}, 0);
  }
  // A packet that left, behind its network headers.
  struct Seen {
    wire::RtpHeader rtp;
    size_t behind_header;
    bool sealed;
    uint8_t ecn;
  };
  Seen seen(size_t which = 0) {
    const TestHost::Bytes& frame = host.frames.at(which);
    wire::NetHeader net;
    EXPECT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
    Seen out{};
    EXPECT_EQ(wire::RtpHeader::read(net.tph, net.tp_size(), out.rtp), wire::Drop::kNone);
    out.behind_header = net.tp_size() - wire::RtpHeader::kSize;
    out.sealed = wire::icrc_matches(net);
    out.ecn = net.ecn();
    return out;
  }
  // A frame of a data packet with nothing behind the transport header.
  std::byte* frame(Psn psn, bool last) {
    std::byte* at = host.tx_begin(1, frame_bytes());
    wire::RtpHeader rtp;
    rtp.psn = psn;
    rtp.last = last;
    transmitter.write_header(ch(), rtp, at, wire::RtpHeader::kSize);
    return at;
  }
  size_t frame_bytes() { return ch().headers.size + wire::RtpHeader::kSize + wire::kIcrcSize; }

  void owe(RxVerdict verdict = RxVerdict::kInOrder, bool asks = false) {
    wire::RtpHeader rtp;
    rtp.ack_req = asks;
    note_for_ack(*s, channel, now, rtp, verdict);
    if (verdict == RxVerdict::kInOrder) accept_in_order(*s, ch());
  }

  // The peer's packets met congestion.
  void owe_notification(uint8_t level = wire::CetphCnp::kSevere) {
    ch().owed_cnp = level;
    owe(RxVerdict::kDuplicate);
  }

  TestHost host;
  Transmitter<TestHost> transmitter{*s, host};
};

using Notes = std::vector<Note>;

// ---- data ------------------------------------------------------------------------------------------------------

TEST(Transmitter, a_packet_that_left_is_in_flight_and_sealed) {
  Sending s;
  TxMessage& m = *begin_message(*s.s, s.ch());
  s.transmitter.send_frame(s.channel, s.now, m, s.frame(Psn(100), false), s.frame_bytes(), Psn(100), false, false);
  EXPECT_FALSE(m.complete);
  s.transmitter.send_frame(s.channel, s.now, m, s.frame(Psn(101), true), s.frame_bytes(), Psn(101), false, true);
  EXPECT_TRUE(m.complete);
  EXPECT_EQ(s.ch().outstanding(), 2u);
  EXPECT_EQ(s.ch().next_tpmsn, Tpmsn(1));
  EXPECT_EQ(s.count(Counter::kTpTxData), 2u);
  EXPECT_EQ(s.ch().tx_packets, 2u);
  ASSERT_EQ(s.host.frames.size(), 2u);
  EXPECT_EQ(s.seen(0).rtp.psn, Psn(100));
  EXPECT_EQ(s.seen(0).rtp.src_tpn, s.ch().tpn);
  EXPECT_EQ(s.seen(0).rtp.dst_tpn, 0x77u);
  EXPECT_TRUE(s.seen(0).sealed && s.seen(1).sealed);
}

TEST(Transmitter, a_packet_that_goes_again_is_not_new) {
  Sending s;
  TxMessage& m = s.send(1);
  s.timeout();
  s.transmitter.send_frame(s.channel, s.now, m, s.frame(Psn(100), true), s.frame_bytes(), Psn(100), true, true);
  EXPECT_EQ(s.ch().outstanding(), 1u);
  EXPECT_EQ(s.ch().retransmits, 1u);
  EXPECT_EQ(s.count(Counter::kTpTxData), 0u);
  EXPECT_TRUE(s.resend().empty());
}

TEST(Transmitter, a_flow_that_marks_its_packets_hears_of_each_before_it_leaves) {
  Sending plain, marked;
  marked.govern(cc::Algorithm::kDcqcn);
  for (Sending* s : {&plain, &marked}) {
    TxMessage& m = *begin_message(*s->s, s->ch());
    s->transmitter.send_frame(s->channel, s->now, m, s->frame(Psn(100), true), s->frame_bytes(), Psn(100), false, true);
    EXPECT_TRUE(s->seen().sealed);
  }
  EXPECT_EQ(plain.seen().ecn, wire::kEcnNotCapable);
  EXPECT_EQ(marked.seen().ecn, marked.ch().flow.ecn);
  EXPECT_NE(marked.seen().ecn, wire::kEcnNotCapable);
}

TEST(Transmitter, the_place_of_the_seal_is_zero_where_none_is_agreed) {
  Sending s;
  s.ch().icrc = false;
  TxMessage& m = *begin_message(*s.s, s.ch());
  s.transmitter.send_frame(s.channel, s.now, m, s.frame(Psn(100), true), s.frame_bytes(), Psn(100), false, true);
  const TestHost::Bytes& frame = s.host.frames.at(0);
  for (size_t i = 1; i <= wire::kIcrcSize; ++i) EXPECT_EQ(frame[frame.size() - i], std::byte{0});
}

// 6.7.1: Fake, alone under its number, and the last of its message.
TEST(Transmitter, a_fake_packet_ends_its_message) {
  Sending s;
  TxMessage& m = s.send(2, false);
  ASSERT_TRUE(s.transmitter.send_fake(s.channel, s.now, m, Psn(102), false, true));
  const Sending::Seen p = s.seen();
  EXPECT_TRUE(p.rtp.fake && p.rtp.last && p.rtp.ack_req && p.sealed);
  EXPECT_EQ(p.rtp.psn, Psn(102));
  EXPECT_EQ(p.rtp.tpmsn, m.tpmsn);
  EXPECT_EQ(p.behind_header, 0u);
  EXPECT_TRUE(m.complete);
  EXPECT_EQ(s.ch().outstanding(), 3u);
  EXPECT_EQ(s.count(Counter::kTpTxFake), 1u);
}

TEST(Transmitter, without_room_in_the_port_no_fake_packet_leaves) {
  Sending s;
  TxMessage& m = s.send(2, false);
  s.host.full = true;
  EXPECT_FALSE(s.transmitter.send_fake(s.channel, s.now, m, Psn(102), false, true));
  EXPECT_EQ(s.ch().outstanding(), 2u);
  EXPECT_EQ(s.count(Counter::kTpTxFake), 0u);
}

// ---- what is noted of packets ----------------------------------------------------------------------------------

// Sends packets of one message; what was noted of them is in `host`.
struct Noted : Sending {
  Noted() {
    s->looker.begin(host);
    message = begin_message(*s, ch());
    message->kind = MessageKind::kRequest;
    message->source = 7;
    message->work_request = 9;
  }
  void send_packet(uint32_t psn, bool again = false, bool last = false) {
    transmitter.send_frame(channel, now, *message, frame(Psn(psn), last), frame_bytes(), Psn(psn), again, last);
  }
  TxMessage* message;
};

TEST(TransmitterNotes, a_request_begins_with_the_first_packet_of_its_first_segment) {
  Noted s;
  s.send_packet(100);
  s.send_packet(101, false, true);
  EXPECT_EQ(s.host.noted(Stage::kRequestBegan), (Notes{{Stage::kRequestBegan, 7, 9, 100, s.channel}}));
}

TEST(TransmitterNotes, a_further_segment_begins_no_request) {
  Noted s;
  s.message->segment = 1;
  s.send_packet(100);
  EXPECT_TRUE(s.host.noted(Stage::kRequestBegan).empty());
}

TEST(TransmitterNotes, an_answer_begins_no_request) {
  Noted s;
  s.message->kind = MessageKind::kAnswer;
  s.send_packet(100);
  EXPECT_TRUE(s.host.noted(Stage::kRequestBegan).empty());
}

TEST(TransmitterNotes, a_packet_that_goes_again_is_noted_as_such_and_begins_nothing) {
  Noted s;
  s.ch().next_tpmsn = s.message->tpmsn = Tpmsn(5);
  s.send_packet(100, false, true);
  EXPECT_EQ(s.host.noted(Stage::kPacketSent), (Notes{{Stage::kPacketSent, s.channel, 100, 5}}));
  EXPECT_TRUE(s.host.noted(Stage::kPacketSentAgain).empty());
  s.timeout();
  s.send_packet(100, true, true);
  EXPECT_EQ(s.host.noted(Stage::kPacketSentAgain), (Notes{{Stage::kPacketSentAgain, s.channel, 100, 5}}));
  EXPECT_EQ(s.host.noted(Stage::kPacketSent).size(), 1u);
  EXPECT_EQ(s.host.noted(Stage::kRequestBegan).size(), 1u);
}

TEST(TransmitterNotes, who_looks_closely_sees_each_packet_sealed) {
  Noted s;
  s.send_packet(100, false, true);
  s.timeout();
  s.send_packet(100, true, true);
  const Note sealed{Stage::kPacketSealed, s.channel, 100};
  EXPECT_EQ(s.host.noted(Stage::kPacketSealed), (Notes{sealed, sealed}));
}

TEST(TransmitterNotes, a_fake_packet_is_noted_with_its_message) {
  Noted s;
  s.message->tpmsn = Tpmsn(5);
  ASSERT_TRUE(s.transmitter.send_fake(s.channel, s.now, *s.message, Psn(100), false, true));
  EXPECT_EQ(s.host.noted(Stage::kPacketFake), (Notes{{Stage::kPacketFake, s.channel, 100, 5}}));
  EXPECT_EQ(s.seen().rtp.tpmsn, Tpmsn(5));
}

TEST(TransmitterNotes, an_acknowledgement_is_noted_with_what_it_says) {
  Noted s;
  s.owe();
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  EXPECT_EQ(s.host.noted(Stage::kAckSent), (Notes{{Stage::kAckSent, s.channel, 500, 500}}));
  EXPECT_TRUE(s.host.noted(Stage::kSackSent).empty());
  accept_ahead(*s.s, s.ch(), Psn(503));
  s.owe(RxVerdict::kAhead);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  EXPECT_EQ(s.host.noted(Stage::kSackSent), (Notes{{Stage::kSackSent, s.channel, 500, 503}}));
  EXPECT_EQ(s.host.noted(Stage::kAckSent).size(), 1u);
}

TEST(TransmitterNotes, a_negative_acknowledgement_is_noted_with_the_packet_that_is_missing) {
  Noted s;
  s.ch().go_back_n = s.ch().fast = true;
  note_gap(*s.s, s.channel, s.now);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  EXPECT_EQ(s.host.noted(Stage::kNakSent), (Notes{{Stage::kNakSent, s.channel, 500, 499}}));
  EXPECT_TRUE(s.host.noted(Stage::kAckSent).empty());
}

// ---- memory that answers later ---------------------------------------------------------------------------------

TEST(Transmitter, a_frame_that_waits_leaves_the_port_and_comes_back) {
  Sending s;
  TxMessage& m = *begin_message(*s.s, s.ch());
  HeldFrame& h = take_held(*s.s, s.channel);
  h.bytes = static_cast<uint32_t>(s.frame_bytes());
  h.psn = Psn(100);
  h.last = true;
  s.transmitter.hold(s.channel, s.now, h, s.frame(Psn(100), true));
  EXPECT_EQ(s.ch().held_new, 1u);
  EXPECT_EQ(s.host.open_frames(), 0u);
  s.host.full = true;
  EXPECT_FALSE(s.transmitter.send_held(s.channel, s.now, m, h));
  EXPECT_EQ(s.ch().outstanding(), 0u);
  s.host.full = false;
  ASSERT_TRUE(s.transmitter.send_held(s.channel, s.now, m, h));
  EXPECT_EQ(s.ch().outstanding(), 1u);
  EXPECT_TRUE(m.complete);
  EXPECT_EQ(s.seen().rtp.psn, Psn(100));
  EXPECT_TRUE(s.seen().sealed);
}

// ---- acknowledgements ------------------------------------------------------------------------------------------

TEST(Transmitter, one_acknowledgement_covers_what_was_accepted) {
  Sending s;
  for (int i = 0; i < 3; ++i) s.owe();
  s.ch().message = Tpmsn(5);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  ASSERT_EQ(s.host.frames.size(), 1u);
  EXPECT_EQ(s.seen().rtp.opcode, wire::TpOpcode::kAck);
  EXPECT_EQ(s.seen().rtp.psn, Psn(502));
  EXPECT_EQ(s.seen().rtp.tpmsn, Tpmsn(4)) << "the newest message that is complete";
  EXPECT_EQ(s.seen().rtp.rspst, wire::kRspOk);
  EXPECT_EQ(s.seen().rtp.rspinfo, 0);
  EXPECT_EQ(s.seen().behind_header, 0u);
  EXPECT_EQ(s.host.may_wait, 1u);
  EXPECT_FALSE(s.ch().on_ack_list);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 0u);
}

// 6.2.3: a bitmap of what arrived behind the gap.
TEST(Transmitter, a_selective_acknowledgement_carries_what_arrived_behind_a_gap) {
  Sending s;
  accept_ahead(*s.s, s.ch(), Psn(502));
  s.owe(RxVerdict::kAhead);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  ASSERT_EQ(s.host.frames.size(), 1u);
  EXPECT_EQ(s.seen().rtp.opcode, wire::TpOpcode::kSack);
  EXPECT_EQ(s.seen().rtp.psn, Psn(499));
  wire::SackView sack;
  const std::byte* saetph = s.host.frames[0].data() + s.ch().headers.size + wire::RtpHeader::kSize;
  ASSERT_EQ(wire::SackView::read(saetph, s.seen().behind_header, sack), wire::Drop::kNone);
  EXPECT_TRUE(sack.test(3));
  EXPECT_FALSE(sack.test(2));
  EXPECT_EQ(s.count(Counter::kTpTxSack), 1u);
  EXPECT_EQ(s.count(Counter::kTpTxAck), 0u);
}

// 6.2.1: a TPNAK has the PSN that is missing, where a TPACK has the one before it.
TEST(Transmitter, a_gap_of_go_back_n_is_reported_by_a_negative_acknowledgement) {
  Sending s;
  s.ch().go_back_n = true;
  note_gap(*s.s, s.channel, s.now);
  s.host.full = true;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 0u);
  s.host.full = false;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 1u);
  ASSERT_EQ(s.host.frames.size(), 1u);
  EXPECT_EQ(s.seen().rtp.opcode, wire::TpOpcode::kAck);
  EXPECT_EQ(s.seen().rtp.rspst, wire::kRspError);
  EXPECT_EQ(s.seen().rtp.rspinfo, wire::kErrPsn);
  EXPECT_EQ(s.seen().rtp.psn, Psn(500));
  EXPECT_EQ(s.seen().rtp.tpmsn, s.ch().message - 1);
  EXPECT_EQ(s.count(Counter::kTpTxNak), 1u);
  EXPECT_EQ(s.count(Counter::kTpTxAck), 0u);
  s.owe(RxVerdict::kDuplicate);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  EXPECT_EQ(s.seen(1).rtp.rspst, wire::kRspOk);
  EXPECT_EQ(s.seen(1).rtp.psn, Psn(499));
  EXPECT_EQ(s.count(Counter::kTpTxAck), 1u);
}

TEST(Transmitter, an_acknowledgement_that_may_wait_stays_until_its_time) {
  Sending s;
  s.owe();
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 0u);
  EXPECT_EQ(s.s->acks_due, s.now + kAckDelay);
  EXPECT_TRUE(s.ch().on_ack_list);
  s.pass(kAckDelay);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 1u);
  EXPECT_TRUE(s.s->acks_due.is_never());
}

// Where packets may be lost, a packet that asks for its acknowledgement.
struct Asked : Sending {
  explicit Asked(Duration round_trip) {
    ch().asks_soon = true;
    ch().round_trip.smoothed = round_trip;
    owe(RxVerdict::kInOrder, true);
  }
  void send_packet() {
    const Psn psn = ch().next_psn;
    transmitter.send_frame(channel, now, *begin_message(*s, ch()), frame(psn, true), frame_bytes(), psn, false, true);
  }
  size_t send_acks() { return transmitter.send_acks(Acks::kMayWait, now); }
};

TEST(Transmitter, one_that_is_asked_for_leaves_behind_the_next_packet) {
  Asked s(microseconds(100));
  EXPECT_EQ(s.send_acks(), 0u);
  s.send_packet();
  EXPECT_EQ(s.send_acks(), 1u);
  s.owe(RxVerdict::kInOrder, true);
  EXPECT_EQ(s.send_acks(), 0u) << "behind the packet after that one";
  s.send_packet();
  EXPECT_EQ(s.send_acks(), 1u);
  s.owe();
  s.send_packet();
  EXPECT_EQ(s.send_acks(), 0u) << "nobody asks";
}

TEST(Transmitter, one_for_a_second_packet_that_asks_leaves_at_once) {
  Asked s(microseconds(100));
  s.owe(RxVerdict::kInOrder, true);
  EXPECT_EQ(s.send_acks(), 1u);
  s.owe();
  s.owe(RxVerdict::kInOrder, true);
  EXPECT_EQ(s.send_acks(), 1u) << "the first one did not ask";
}

TEST(Transmitter, one_that_is_asked_for_leaves_soon_without_another_packet) {
  for (const Duration round_trip : {microseconds(100), microseconds(6)}) {
    Asked s(round_trip);
    const Duration delay = std::min(kMostAckDelayIfAsked, round_trip / 2);
    EXPECT_EQ(s.send_acks(), 0u);
    EXPECT_EQ(s.s->acks_due, s.now + delay);
    s.pass(delay - nanoseconds(1));
    EXPECT_EQ(s.send_acks(), 0u);
    s.pass(nanoseconds(1));
    EXPECT_EQ(s.send_acks(), 1u);
  }
}

TEST(Transmitter, one_that_is_asked_for_leaves_at_once_before_the_first_round_trip_and_where_nothing_is_lost) {
  Asked s(Duration{});
  EXPECT_EQ(s.send_acks(), 1u);
  s.ch().asks_soon = false;
  s.ch().round_trip.smoothed = microseconds(100);
  s.owe(RxVerdict::kInOrder, true);
  EXPECT_EQ(s.send_acks(), 1u);
}

// 6.6: the sender waits for what the network said.
TEST(Transmitter, one_that_is_asked_for_and_reports_leaves_at_once) {
  for (auto agreed : {wire::CcAlgorithm::kCaqm, wire::CcAlgorithm::kLdcp}) {
    Asked s(microseconds(100));
    s.send_packet();
    EXPECT_EQ(s.send_acks(), 1u);
    s.ch().feedback = agreed;
    s.ch().feeds_back = true;
    s.owe(RxVerdict::kInOrder, true);
    EXPECT_EQ(s.send_acks(), 1u);
    const Sending::Seen p = s.seen(2);
    EXPECT_EQ(p.rtp.opcode, wire::TpOpcode::kAckCc);
    EXPECT_EQ(p.behind_header, cc::feedback_size(agreed));
    EXPECT_TRUE(p.sealed);
    EXPECT_EQ(p.ecn, wire::kEcnNotCapable);
  }
}

TEST(Transmitter, one_that_is_demanded_leaves_at_once) {
  Sending s;
  s.owe(RxVerdict::kDuplicate);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 1u);
  EXPECT_FALSE(s.ch().ack_wanted);
}

TEST(Transmitter, without_room_in_the_port_it_stays_owed) {
  Sending s;
  s.owe();
  s.host.full = true;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 0u);
  EXPECT_TRUE(s.ch().on_ack_list);
  EXPECT_EQ(s.s->acks_due, s.now + kAckDelay);
  EXPECT_TRUE(s.s->acks_found_no_room) << "data may not fill the port before it";
  s.host.full = false;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  EXPECT_FALSE(s.s->acks_found_no_room);
}

// 6.2.2: beside the acknowledgement, and with the numbers of one.
TEST(Transmitter, a_notification_of_congestion_leaves_once_and_before_the_acknowledgement) {
  Sending s;
  s.ch().message = Tpmsn(5);
  s.owe_notification();
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  ASSERT_EQ(s.host.frames.size(), 2u);
  EXPECT_EQ(s.seen(0).rtp.opcode, wire::TpOpcode::kCnp);
  EXPECT_EQ(s.seen(0).rtp.psn, Psn(499)) << "the newest packet that was accepted";
  EXPECT_EQ(s.seen(0).rtp.tpmsn, Tpmsn(4)) << "the newest message that is complete";
  EXPECT_EQ(s.seen(0).behind_header, wire::CetphCnp::kSize);
  EXPECT_TRUE(s.seen(0).sealed);
  wire::CetphCnp said;
  const std::byte* cetph = s.host.frames[0].data() + s.ch().headers.size + wire::RtpHeader::kSize;
  ASSERT_EQ(wire::CetphCnp::read(cetph, wire::CetphCnp::kSize, said), wire::Drop::kNone);
  EXPECT_EQ(said.ecn, wire::CetphCnp::kSevere);
  EXPECT_EQ(s.seen(1).rtp.opcode, wire::TpOpcode::kAck);
  s.owe(RxVerdict::kDuplicate);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  EXPECT_EQ(s.host.frames.size(), 3u) << "told once";
  EXPECT_EQ(s.count(Counter::kTpTxCnp), 1u);
}

TEST(Transmitter, without_room_in_the_port_a_notification_stays_owed_with_its_acknowledgement) {
  Sending s;
  s.owe_notification();
  s.host.full = true;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 0u);
  EXPECT_TRUE(s.ch().on_ack_list);
  EXPECT_EQ(s.count(Counter::kTpTxCnp), 0u);
  s.host.full = false;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  EXPECT_EQ(s.host.frames.size(), 2u);
}

// ---- the confirmation of a failure (6.8.2) ---------------------------------------------------------------------

// The peer of a channel of ROL reported that a message failed.
struct Confirming : Sending {
  Confirming() {
    s->looker.begin(host);
    ch().rol = true;
    wire::RtpHeader report;
    report.psn = Psn(98);
    report.tpmsn = Tpmsn(7);
    report.rspst = wire::kRspError;
    report.rspinfo = wire::kErrRemoteAbort;
    confirm(*s, channel, now, report);
  }
};

TEST(Transmitter, a_confirmation_leaves_once_and_before_the_acknowledgement) {
  Confirming s;
  demand_ack(*s.s, s.channel, s.now);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 1u);
  ASSERT_EQ(s.host.frames.size(), 2u);
  const Sending::Seen p = s.seen(0);
  EXPECT_TRUE(p.rtp.fake && p.rtp.last && p.rtp.ack_req && p.sealed);
  EXPECT_EQ(p.rtp.psn, Psn(98));
  EXPECT_EQ(p.rtp.tpmsn, Tpmsn(7));
  EXPECT_EQ(p.rtp.rspst, wire::kRspError);
  EXPECT_EQ(p.rtp.rspinfo, wire::kErrRemoteAbort);
  EXPECT_EQ(p.behind_header, 0u);
  EXPECT_EQ(s.seen(1).rtp.opcode, wire::TpOpcode::kAck);
  EXPECT_EQ(s.count(Counter::kTpTxFake), 1u);
  EXPECT_EQ(s.host.noted(Stage::kPacketFake), (Notes{{Stage::kPacketFake, s.channel, 98, 7}}));
  demand_ack(*s.s, s.channel, s.now);
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 1u);
  EXPECT_EQ(s.host.frames.size(), 3u) << "an acknowledgement alone";
}

TEST(Transmitter, a_confirmation_takes_no_acknowledgement_along_that_nobody_waits_for) {
  Confirming s;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 1u);
  ASSERT_EQ(s.host.frames.size(), 1u);
  EXPECT_TRUE(s.seen(0).rtp.fake);
  EXPECT_EQ(s.host.may_wait, 0u);
  EXPECT_FALSE(s.ch().on_ack_list);
  confirm(*s.s, s.channel, s.now, s.seen(0).rtp);
  s.owe();
  EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
  EXPECT_EQ(s.host.frames.size(), 3u) << "one is owed for a packet, too";
}

// The target delivers nothing behind the failed message until it is confirmed.
TEST(Transmitter, of_what_leaves_with_an_acknowledgement_that_alone_may_wait_in_the_port) {
  for (const bool by_rol : {false, true}) {
    for (const bool confirms : {false, true}) {
      for (const uint8_t notifies : {uint8_t{0}, uint8_t{wire::CetphCnp::kSevere}}) {
        Confirming s;
        s.ch().rol = by_rol;
        s.ch().fused.confirm_owed = by_rol && confirms;
        s.ch().owed_cnp = notifies;
        demand_ack(*s.s, s.channel, s.now);
        EXPECT_EQ(s.transmitter.send_acks(Acks::kNow, s.now), 1u);
        EXPECT_EQ(s.host.frames.size(), 1u + (by_rol && confirms) + (notifies != 0));
        EXPECT_EQ(s.host.may_wait, 1u);
      }
    }
  }
}

TEST(Transmitter, without_room_in_the_port_a_confirmation_stays_owed_with_its_acknowledgement) {
  Confirming s;
  demand_ack(*s.s, s.channel, s.now);
  s.host.full = true;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 0u);
  EXPECT_EQ(s.count(Counter::kTpTxFake), 0u);
  s.host.full = false;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 1u);
  EXPECT_EQ(s.host.frames.size(), 2u);
}

TEST(Transmitter, a_channel_that_died_owes_none) {
  Sending s;
  s.owe();
  s.ch().state = ChannelState::kDead;
  EXPECT_EQ(s.transmitter.send_acks(Acks::kMayWait, s.now), 0u);
  EXPECT_FALSE(s.ch().on_ack_list);
}

}  // namespace
}  // namespace ub::tp
