// SPDX-License-Identifier: Apache-2.0
//
// What the packets of a peer do at the target: WRITEs, READs and SENDs, those that cannot be, and what is answered (UB
// Base Specification Rev 2.0, 7.2, 7.3). Atomics: delivery_atomics_test.cc.
#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

// ---- WRITE -----------------------------------------------------------------------------------------------------

TEST(DeliverWrite, bytes_are_placed_and_answered_once) {
  Delivery d;
  const wire::TaPacket first = d.on_memory(TaOpcode::kWrite, 2 * kMtu + 5);
  d.give(first, kMtu, false);
  EXPECT_TRUE(d.answers().empty());
  d.give(d.on_memory(TaOpcode::kWrite, 2 * kMtu + 5, kMtu), kMtu, false, kMtu);
  d.give(d.on_memory(TaOpcode::kWrite, 2 * kMtu + 5, 2 * kMtu), 5, true, 2 * kMtu);
  EXPECT_TRUE(d.holds(2 * kMtu + 5));
  const std::vector<tp::TxMessage> a = d.answers();
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].opcode, TaOpcode::kTaack);
  EXPECT_EQ(a[0].rspst, wire::kRspOk);
  EXPECT_EQ(a[0].source, kPeerRcid);
  EXPECT_EQ(a[0].tassn, Tassn(0));
  EXPECT_EQ(d.count(Counter::kTpRxData), 3u);
}

TEST(DeliverWrite, of_another_length_than_it_says_is_refused) {
  for (uint32_t length : {kMtu + 4, kMtu + 5, kMtu + 6}) {
    Delivery d;
    d.give(d.on_memory(TaOpcode::kWrite, length), kMtu, false);
    d.give(d.on_memory(TaOpcode::kWrite, length, kMtu), 5, true, kMtu);
    EXPECT_EQ(d.verdict(), length == kMtu + 5 ? kFine : kNotSupported) << length;
  }
}

TEST(DeliverWrite, packets_are_as_long_as_the_mtu_but_for_the_last) {
  Delivery d;
  d.give(d.on_memory(TaOpcode::kWrite, kMtu + 4), kMtu + 4);
  EXPECT_EQ(d.verdict(), kNotSupported) << "longer";
  d.give(d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu - 4, false);
  d.give(d.on_memory(TaOpcode::kWrite, kMtu + 8), 8);
  EXPECT_EQ(d.verdict(), kNotSupported) << "shorter, though the last one is as long as it has to be";
}

TEST(DeliverWrite, what_the_peer_may_not_reach_is_not_touched) {
  Delivery d;
  wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 8);
  p.token_value = kToken + 1;
  d.give(p, 8);
  EXPECT_EQ(d.verdict(), kAborted);
  p = d.on_memory(TaOpcode::kWrite, 8, 256 * 1024 - 7);
  d.give(p, 8);
  EXPECT_EQ(d.verdict(), kAborted);
  EXPECT_FALSE(d.holds(8));
  p = d.on_memory(TaOpcode::kWrite, 0);
  p.token_value = kToken + 1;
  d.give(p, 0);
  EXPECT_EQ(d.verdict(), kFine) << "nothing is nowhere";
}

TEST(DeliverWrite, the_first_failure_of_a_message_is_its_answer) {
  Delivery d;
  wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 2 * kMtu);
  p.token_value = kToken + 1;
  d.give(p, kMtu, false);
  d.give(d.on_memory(TaOpcode::kWrite, 9999), kMtu);
  EXPECT_EQ(d.verdict(), kAborted);
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  EXPECT_EQ(d.verdict(), kFine) << "the next message begins anew";
}

TEST(DeliverWrite, a_notification_is_written_behind_the_bytes) {
  Delivery d;
  wire::TaPacket p = d.on_memory(TaOpcode::kWriteNotify, 8);
  p.has_ntf = true;
  p.ntf = {reinterpret_cast<uint64_t>(d.base) + 64, d.target_memory.token_id, kToken, 0x1122334455667788};
  d.give(p, 8);
  EXPECT_EQ(d.verdict(), kFine);
  uint64_t word;
  std::memcpy(&word, d.base + 64, sizeof word);
  EXPECT_EQ(word, 0x1122334455667788u);
  p.ntf.token_value = kToken + 1;
  d.give(p, 8);
  EXPECT_EQ(d.verdict(), kAborted);
}

TEST(DeliverWrite, a_notification_whose_memory_is_gone_fails_the_message) {
  Delivery d;
  wire::TaPacket p = d.on_memory(TaOpcode::kWriteNotify, 0);
  p.has_ntf = true;
  p.ntf = {reinterpret_cast<uint64_t>(d.base) + 64, d.target_memory.token_id, kToken, 5};
  d.host.gone = true;
  d.give(p, 0);
  EXPECT_EQ(d.verdict(), kAborted);
}

TEST(DeliverWrite, with_immediate_completes_a_receive_with_the_length_of_all) {
  Delivery d;
  d.post_receive(0);
  wire::TaPacket p = d.on_memory(TaOpcode::kWriteImmediate, 8);
  p.has_mt = p.has_imm = true;
  p.mt = {0, wire::kTcTypeQueue, d.id};
  p.imm = {0x77, 0, 12345};
  p.req.fce = true;
  d.give(p, 8);
  EXPECT_EQ(d.verdict(), kFine);
  const std::vector<Cqe> done = d.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, kOk);
  EXPECT_EQ(done[0].opcode, CrOpcode::kWriteImm);
  EXPECT_EQ(done[0].length, 12345u);
  EXPECT_EQ(done[0].immediate, 0x77u);
  EXPECT_EQ(done[0].flags, kCqeReceive | kCqeJetty | kCqeSolicited);
  EXPECT_EQ(done[0].local_id, d.id);
  EXPECT_EQ(done[0].remote_id, kPeerRcid);
  EXPECT_EQ(done[0].remote_uasid, d.ch().remote.uasid);
  EXPECT_EQ(done[0].tpn, d.ch().tpn);
  EXPECT_EQ(done[0].user_data, 88u);
}

// ---- order -----------------------------------------------------------------------------------------------------

TEST(DeliverOrder, packets_ahead_of_a_gap_are_placed_or_kept_and_counted) {
  Delivery d;
  d.give(1, d.on_memory(TaOpcode::kWrite, 2 * kMtu + 4, kMtu), kMtu, false, 0, kMtu);
  EXPECT_TRUE(d.holds(kMtu, kMtu, kMtu)) << "at once";
  EXPECT_EQ(d.s->kept.in_use(), 0u);
  d.give(2, d.on_memory(TaOpcode::kWrite, 2 * kMtu + 4, 2 * kMtu), 4, true, 0, 2 * kMtu);
  EXPECT_EQ(d.s->kept.in_use(), 1u) << "the last one waits for all others";
  EXPECT_EQ(d.count(Counter::kTpRxOutOfOrder), 2u);
  EXPECT_EQ(d.count(Counter::kTpRxData), 2u);
  EXPECT_TRUE(d.answers().empty());
  d.give(0, d.on_memory(TaOpcode::kWrite, 2 * kMtu + 4), kMtu, false, 0);
  EXPECT_TRUE(d.holds(2 * kMtu + 4));
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_EQ(d.s->kept.in_use(), 0u);
  d.give(1, d.on_memory(TaOpcode::kWrite, 2 * kMtu + 4, kMtu), kMtu, false, 0, 7);
  EXPECT_EQ(d.count(Counter::kTpRxDuplicate), 1u);
  EXPECT_TRUE(d.holds(2 * kMtu + 4)) << "a duplicate does nothing";
  EXPECT_EQ(d.count(Counter::kTpRxData), 3u);
}

// 6.4.1, Go-Back-N.
TEST(DeliverOrder, packets_ahead_of_a_gap_are_neither_placed_nor_kept_where_the_channel_goes_back_n) {
  Delivery d;
  d.ch().go_back_n = d.ch().fast = true;
  d.give(1, d.on_memory(TaOpcode::kWrite, 2 * kMtu + 4, kMtu), kMtu, false, 0, kMtu);
  EXPECT_FALSE(d.holds(kMtu, kMtu, kMtu));
  d.give(2, d.on_memory(TaOpcode::kWrite, 2 * kMtu + 4, 2 * kMtu), 4, true, 0, 2 * kMtu);
  EXPECT_EQ(d.s->kept.in_use(), 0u);
  EXPECT_EQ(d.count(Counter::kTpRxOutOfOrder) + d.count(Counter::kTpRxData), 0u);
  EXPECT_EQ(d.count(Counter::kTpRxDiscarded), 2u);
  EXPECT_TRUE(d.ch().ack_wanted) << "the gap is reported at once";
  for (uint32_t psn : {0u, 1u, 2u}) {
    d.give(psn, d.on_memory(TaOpcode::kWrite, 2 * kMtu + 4, psn * kMtu), psn == 2 ? 4 : kMtu, psn == 2, 0, psn * kMtu);
  }
  EXPECT_TRUE(d.holds(2 * kMtu + 4));
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(DeliverOrder, what_cannot_be_placed_ahead_is_kept) {
  const auto kept = [](void (*change)(Delivery&, wire::TaPacket&, uint32_t&)) {
    Delivery d;
    wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 3 * kMtu, kMtu);
    uint32_t payload = kMtu;
    change(d, p, payload);
    d.give(1, p, payload, false, 0, kMtu);
    return d.s->kept.in_use() == 1;
  };
  EXPECT_FALSE(kept([](Delivery&, wire::TaPacket&, uint32_t&) {}));
  EXPECT_TRUE(kept([](Delivery&, wire::TaPacket& p, uint32_t&) { p.token_value = 1; }));
  EXPECT_TRUE(kept([](Delivery&, wire::TaPacket&, uint32_t& payload) { payload = kMtu - 4; }));
  EXPECT_TRUE(kept([](Delivery& d, wire::TaPacket&, uint32_t&) { d.ch().read_meta = false; }));
  EXPECT_TRUE(kept([](Delivery& d, wire::TaPacket&, uint32_t&) { d.ch().message = Tpmsn(1); }));
  EXPECT_TRUE(kept([](Delivery& d, wire::TaPacket& p, uint32_t&) { p = d.send(); }));
}

TEST(DeliverOrder, ahead_of_a_gap_nothing_is_placed_of_a_packet_that_has_no_transaction) {
  for (bool fake : {true, false}) {
    Delivery d;
    std::vector<std::byte> rest(wire::kMaxTransactionHeaderSize + kMtu);
    rest.resize(wire::write_transaction_headers(d.on_memory(TaOpcode::kWrite, 3 * kMtu), rest.data()) + kMtu);
    std::memset(&rest.back() - 7, 1, 8);
    wire::RtpHeader rtp;
    rtp.psn = Psn(1);
    if (fake) rtp.fake = true;
    if (!fake) rtp.nlp = wire::kNlpEntity;
    d.receiver.on_data(d.channel, rtp, rest);
    EXPECT_EQ(d.s->kept.in_use(), 1u) << fake;
    EXPECT_EQ(d.base[kMtu - 1], std::byte{0}) << fake;
  }
}

TEST(DeliverOrder, without_a_place_a_packet_comes_again) {
  Delivery d;
  d.park_nothing();
  d.use_up_kept_places();
  d.give(1, d.on_memory(TaOpcode::kWrite, kMtu + 4, kMtu), 4, true, 0);
  EXPECT_EQ(d.count(Counter::kRxNoReorderBuffer), 1u);
  EXPECT_EQ(d.ch().highest_seen, Psn(0) - 1);
  EXPECT_FALSE(d.ch().on_ack_list) << "without a word: nobody waits for memory";
  d.host.slow = true;
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  EXPECT_EQ(d.count(Counter::kRxNoReorderBuffer), 2u) << "it waits for its own copy, and there is no place for it";
  EXPECT_TRUE(d.ch().on_ack_list) << "the peer must not take us for dead";
}

TEST(DeliverOrder, beyond_the_window_is_counted) {
  Delivery d;
  d.give(512, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  EXPECT_EQ(d.count(Counter::kTpRxBeyondWindow), 1u);
  EXPECT_EQ(d.count(Counter::kTpRxData), 0u);
}

TEST(DeliverOrder, without_room_for_an_answer_a_packet_comes_again) {
  Delivery d;
  std::vector<uint32_t> taken;
  while (room_for_answer(*d.s, d.ch())) taken.push_back(d.s->answers.alloc());
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  EXPECT_EQ(d.count(Counter::kRxNoAnswerRoom), 1u);
  EXPECT_EQ(d.ch().expected, Psn(0));
  EXPECT_FALSE(d.holds(8));
  d.s->answers.free(taken.back());
  d.give(0, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(DeliverOrder, what_was_accepted_and_finds_no_room_tries_again_soon) {
  Delivery d;
  d.give(1, d.on_memory(TaOpcode::kWrite, 8), 8, true, 1);
  d.give(2, d.on_memory(TaOpcode::kWrite, 8), 8, true, 2);
  wire::TaPacket nothing = d.response(TaOpcode::kTaack, 0);  // needs no answer
  std::vector<uint32_t> taken;
  while (room_for_answer(*d.s, d.ch())) taken.push_back(d.s->answers.alloc());
  for (uint32_t object : {1u, d.channel}) d.s->timers.cancel(object);
  d.give(0, nothing, 0, true, 0);
  EXPECT_TRUE(d.ch().stalled);
  EXPECT_TRUE(d.s->timers.armed(d.channel));
  EXPECT_GT(d.s->timers.earliest(), d.s->now);
  for (uint32_t chunk : taken) d.s->answers.free(chunk);
  d.receiver.resume(d.channel);
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.answers().size(), 2u);
}

// ---- messages that do not end as they began --------------------------------------------------------------------

TEST(DeliverMessage, a_fake_ends_the_open_one_without_an_answer) {
  Delivery d;
  d.post_receive(3 * kMtu);
  d.give(d.send(), kMtu, false);
  ASSERT_NE(d.ch().open.receive, 0u);
  const uint32_t receive = d.ch().open.receive;
  d.give_fake(0);
  EXPECT_EQ(d.count(Counter::kRxMessageVanished), 1u);
  EXPECT_EQ(d.count(Counter::kTpRxFake), 1u);
  EXPECT_EQ(d.ch().open.receive, 0u);
  EXPECT_EQ(d.the_jfr().returned.back(), receive) << "the next message gets it";
  EXPECT_EQ(d.ch().message, Tpmsn(1));
  EXPECT_EQ(d.ch().begun, tp::Begun::kNothing);
  EXPECT_TRUE(d.answers().empty());
}

TEST(DeliverMessage, what_is_left_of_one_that_vanished_is_passed) {
  Delivery d;
  d.give(d.on_memory(TaOpcode::kWrite, 3 * kMtu), kMtu, false);
  d.give_fake(0);
  d.give(2, d.on_memory(TaOpcode::kWrite, 3 * kMtu, 2 * kMtu), kMtu, true, 0);
  EXPECT_EQ(d.count(Counter::kRxAbortedMessage), 1u);
  EXPECT_EQ(d.ch().expected, Psn(3));
  EXPECT_TRUE(d.answers().empty());
}

TEST(DeliverMessage, what_was_placed_of_one_that_vanished_is_passed) {
  Delivery d;
  d.give(0, d.on_memory(TaOpcode::kWrite, 3 * kMtu), kMtu, false, 0);
  d.give(2, d.on_memory(TaOpcode::kWrite, 3 * kMtu, kMtu), kMtu, false, 0);
  d.psn = 1;
  d.give_fake(0);
  EXPECT_EQ(d.ch().expected, Psn(3));
  d.give(3, d.on_memory(TaOpcode::kWrite, 3 * kMtu, 2 * kMtu), kMtu, true, 0);
  EXPECT_EQ(d.ch().begun, tp::Begun::kNothing);
  d.give(4, d.on_memory(TaOpcode::kWrite, 8), 8, true, 1);
  EXPECT_EQ(d.verdict(), kFine);
}

// Each packet that went again after the bytes were gone is a fake, and the last one of the message may be.
TEST(DeliverMessage, what_was_placed_between_fakes_of_one_that_vanished_is_passed) {
  Delivery d;
  for (uint32_t psn : {1u, 3u, 4u}) d.give(psn, d.on_memory(TaOpcode::kWrite, 6 * kMtu, kMtu), kMtu, false, 0);
  for (uint32_t psn : {6u, 7u}) d.give(psn, d.on_memory(TaOpcode::kWrite, 3 * kMtu, (psn - 6) * kMtu), kMtu, false, 1);
  ASSERT_EQ(d.s->kept.in_use(), 0u);
  for (uint32_t psn : {5u, 2u, 0u}) {
    d.psn = psn;
    d.give_fake(0);
  }
  EXPECT_EQ(d.ch().expected, Psn(8));
  EXPECT_EQ(d.ch().begun, tp::Begun::kPlaced);
  EXPECT_EQ(d.ch().message_start, Psn(6)) << "that of the next message";
  d.give(8, d.on_memory(TaOpcode::kWrite, 3 * kMtu, 2 * kMtu), kMtu, true, 1);
  EXPECT_EQ(d.verdict(), kFine);
}

TEST(DeliverMessage, a_packet_of_one_that_is_over_leaves_the_open_one_as_it_is) {
  Delivery d;
  d.give_fake(0);
  d.give(1, d.on_memory(TaOpcode::kWrite, 2 * kMtu), kMtu, false, 1);
  d.give(2, d.on_memory(TaOpcode::kWrite, 8), 8, true, 0);
  EXPECT_EQ(d.ch().begun, tp::Begun::kYes);
  EXPECT_EQ(d.ch().message_start, Psn(1));
}

TEST(DeliverMessage, one_that_begins_before_the_last_ended_takes_its_place) {
  Delivery d;
  d.post_receive(3 * kMtu);
  d.give(d.send(), kMtu, false);
  d.give(1, d.on_memory(TaOpcode::kWrite, 8), 8, true, 1);
  EXPECT_EQ(d.count(Counter::kRxMessageMismatch), 1u);
  EXPECT_EQ(d.ch().open.receive, 0u);
  EXPECT_FALSE(d.the_jfr().returned.empty());
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_TRUE(d.holds(8));
  EXPECT_EQ(d.ch().message, Tpmsn(2));
}

TEST(DeliverMessage, of_another_layer_is_malformed) {
  Delivery d;
  wire::RtpHeader rtp;
  rtp.psn = Psn(0);
  rtp.nlp = wire::kNlpEntity;
  rtp.last = true;
  d.receiver.on_data(d.channel, rtp, std::span(d.bytes, 16));
  EXPECT_EQ(d.count(wire::drop_counter(wire::Drop::kBadNlp)), 1u);
  EXPECT_TRUE(d.answers().empty()) << "nobody can say to what";
  EXPECT_EQ(d.ch().expected, Psn(1)) << "the transport is content";
  EXPECT_EQ(d.ch().message, Tpmsn(1));
}

TEST(DeliverMessage, an_answer_that_cannot_be_is_not_answered) {
  Delivery d;
  d.give(d.response(TaOpcode::kTaack, 0), 4);
  EXPECT_EQ(d.count(wire::drop_counter(wire::Drop::kUnexpectedPayload)), 1u);
  EXPECT_TRUE(d.answers().empty());
  EXPECT_EQ(d.ch().message, Tpmsn(1));
}

// 7.2: an opcode that nobody knows is answered as such.
TEST(DeliverMessage, of_an_unknown_opcode_is_answered_when_it_is_complete) {
  Delivery d;
  const wire::TaPacket p = d.on_memory(TaOpcode::kWrite, kMtu + 8);
  std::vector<std::byte> rest(64);
  wire::write_transaction_headers(p, rest.data());
  rest[0] = std::byte{0x1f};
  wire::RtpHeader rtp;
  d.receiver.on_data(d.channel, rtp, rest);
  EXPECT_TRUE(d.answers().empty()) << "more of it follows";
  rtp.psn = Psn(1);
  rtp.last = true;
  d.receiver.on_data(d.channel, rtp, rest);
  EXPECT_EQ(d.verdict(), kNotSupported);
  EXPECT_EQ(d.ch().message, Tpmsn(1));
  std::vector<uint32_t> taken;
  while (room_for_answer(*d.s, d.ch())) taken.push_back(d.s->answers.alloc());
  rtp.psn = Psn(2);
  rtp.tpmsn = Tpmsn(1);
  d.receiver.on_data(d.channel, rtp, rest);
  EXPECT_EQ(d.ch().expected, Psn(2)) << "no room: it comes again";
}

// 7.4: operations that are specified and not built are refused as unsupported, so that their initiator hears of it.
TEST(DeliverMessage, of_an_operation_that_is_not_built_is_answered_as_unsupported) {
  for (const TaOpcode op :
       {TaOpcode::kManagement, TaOpcode::kPrefetch, TaOpcode::kWriteback, TaOpcode::kWritebackByteEnable}) {
    Delivery d;
    const wire::TaPacket p = d.on_memory(TaOpcode::kWrite, 64);
    const bool enables = op == TaOpcode::kWritebackByteEnable;
    std::vector<std::byte> rest(wire::write_transaction_headers(p, std::vector<std::byte>(256).data()) +
                                (enables ? 64 / 8 : 0) + (op == TaOpcode::kPrefetch ? 0 : 64));
    wire::write_transaction_headers(p, rest.data());
    rest[0] = static_cast<std::byte>(op);
    wire::RtpHeader rtp;
    rtp.last = true;
    d.receiver.on_data(d.channel, rtp, rest);
    EXPECT_EQ(d.verdict(), kNotSupported) << "opcode " << static_cast<int>(op);
    EXPECT_EQ(d.ch().message, Tpmsn(1)) << "and delivery goes on";
  }
}

TEST(DeliverMessage, that_ends_malformed_gives_its_receive_back) {
  Delivery d;
  d.post_receive(3 * kMtu);
  d.give(d.send(), kMtu, false);
  const uint32_t receive = d.ch().open.receive;
  ASSERT_NE(receive, 0u);
  wire::RtpHeader rtp;
  rtp.psn = Psn(d.psn++);
  rtp.tpmsn = Tpmsn(0);
  rtp.last = true;
  d.receiver.on_data(d.channel, rtp, {});
  EXPECT_EQ(d.ch().message, Tpmsn(1));
  EXPECT_EQ(d.ch().open.receive, 0u);
  EXPECT_EQ(d.the_jfr().returned.back(), receive);
}

TEST(DeliverMessage, a_malformed_part_fails_the_message_that_it_is_of) {
  Delivery d;
  std::vector<std::byte> rest(4);
  wire::RtpHeader rtp;
  d.receiver.on_data(d.channel, rtp, rest);
  d.give(1, d.on_memory(TaOpcode::kWrite, 2 * kMtu, kMtu), kMtu, true, 0);
  EXPECT_EQ(d.verdict(), kNotSupported);
  EXPECT_FALSE(d.holds(kMtu, kMtu));
}

// ---- READ ------------------------------------------------------------------------------------------------------

TEST(DeliverRead, becomes_a_job_that_remembers_what_was_asked) {
  Delivery d;
  wire::TaPacket p = d.on_memory(TaOpcode::kRead, 3 * kMtu, 64);
  p.taid = 9;
  p.ofst.offset_kib = 64;
  d.give(p, 0);
  const std::vector<tp::TxMessage> a = d.answers();
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].kind, tp::MessageKind::kReadResponse);
  const ReadJob& job = d.s->jobs[a[0].source];
  EXPECT_EQ(job.memory, d.base + 64);
  EXPECT_EQ(job.length, 3 * kMtu);
  EXPECT_EQ(job.segment, d.target_memory.handle);
  EXPECT_EQ(job.channel, d.channel);
  EXPECT_EQ(job.source, kPeerRcid);
  EXPECT_EQ(job.taid, 9);
  EXPECT_EQ(job.offset_kib, 64u);
}

TEST(DeliverRead, without_saying_where_it_is_it_is_at_the_beginning) {
  Delivery d;
  d.ch().read_meta = false;
  wire::TaPacket p = d.on_memory(TaOpcode::kRead, 8);
  p.has_taid = p.has_ofst = false;
  d.give(p, 0);
  const std::vector<tp::TxMessage> a = d.answers();
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(d.s->jobs[a[0].source].taid, 0);
  EXPECT_EQ(d.s->jobs[a[0].source].offset_kib, 0u);
}

TEST(DeliverRead, of_what_cannot_be_is_refused_in_the_form_of_its_response) {
  Delivery d;
  d.give(d.on_memory(TaOpcode::kRead, kMaxMessageBytes + 1), 0);
  EXPECT_EQ(d.verdict(), kNotSupported);
  d.give(d.on_memory(TaOpcode::kRead, kMaxMessageBytes), 0);
  EXPECT_EQ(d.verdict(), kAborted) << "so much may be, and is not there";
  wire::TaPacket p = d.on_memory(TaOpcode::kRead, 8);
  p.token_value = 1;
  d.give(p, 0);
  const std::vector<tp::TxMessage> a = d.answers();
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].opcode, TaOpcode::kReadResponse);
  EXPECT_EQ(a[0].rspst, wire::kRspError);
  p = d.on_memory(TaOpcode::kRead, 0);
  p.token_value = 1;
  d.give(p, 0);
  ASSERT_EQ(d.answers().at(0).kind, tp::MessageKind::kReadResponse) << "nothing is nowhere";
}

TEST(DeliverRead, that_is_refused_says_what_was_asked) {
  Delivery d;
  wire::TaPacket p = d.on_memory(TaOpcode::kRead, 8);
  p.taid = 9;
  p.ofst.offset_kib = 64;
  p.token_value = 1;
  d.give(p, 0);
  const std::vector<tp::TxMessage> a = d.answers();
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].value, 64u);
  EXPECT_EQ(a[0].value_high, 9u);
}

TEST(DeliverRead, that_is_refused_says_no_place_where_none_was_asked_or_understood) {
  Delivery d;
  wire::TaPacket p = d.on_memory(TaOpcode::kRead, 8);
  p.taid = 9;
  p.ofst.offset_kib = 64;
  d.give(p, 8);  // a READ has no payload
  d.ch().read_meta = false;
  p.has_taid = p.has_ofst = false;
  p.token_value = 1;
  d.give(p, 0);
  const std::vector<tp::TxMessage> a = d.answers();
  ASSERT_EQ(a.size(), 2u);
  for (const tp::TxMessage& m : a) {
    EXPECT_EQ(m.opcode, TaOpcode::kReadResponse);
    EXPECT_EQ(m.rspst, wire::kRspError);
    EXPECT_EQ(m.value, 0u);
    EXPECT_EQ(m.value_high, 0u);
  }
}

TEST(DeliverRead, without_a_record_is_refused_for_a_while) {
  Delivery d;
  while (d.s->jobs.alloc() != 0) {
  }
  d.give(d.on_memory(TaOpcode::kRead, 8), 0);
  EXPECT_EQ(d.verdict(), (std::pair<int, int>(wire::kRspRnr, 5)));
  EXPECT_EQ(d.count(Counter::kNoReadJob), 1u);
}

TEST(DeliverRead, is_one_packet) {
  Delivery d;
  d.give(d.on_memory(TaOpcode::kRead, 8), kMtu, false);
  d.give(d.on_memory(TaOpcode::kRead, 8), 0);
  EXPECT_EQ(d.verdict(), kNotSupported);
}

// ---- SEND ------------------------------------------------------------------------------------------------------

TEST(DeliverSend, packets_fill_a_receive_one_behind_the_other) {
  Delivery d;
  d.post_receive(2 * kMtu, 512);
  d.give(d.send(0), kMtu, false);
  EXPECT_TRUE(d.completions().empty());
  d.give(d.send(1), 5, true, kMtu);
  EXPECT_EQ(d.verdict(), kFine);
  const std::vector<Cqe> done = d.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].user_ctx, 1512u);
  EXPECT_EQ(done[0].length, kMtu + 5);
  EXPECT_EQ(done[0].opcode, CrOpcode::kSend);
  EXPECT_EQ(std::memcmp(d.memory.data() + 512, d.bytes, kMtu + 5), 0);
  EXPECT_EQ(d.the_jfc().reserved, 0u);
}

TEST(DeliverSend, longer_than_its_receive_is_a_length_error_of_the_receiver) {
  Delivery d;
  d.post_receive(kMtu + 4);
  d.give(d.send(0), kMtu, false);
  d.give(d.send(1), 5, true);
  EXPECT_EQ(d.verdict(), kNotSupported);
  const std::vector<Cqe> done = d.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kLocLen);
  EXPECT_EQ(done[0].length, 0u);
  d.post_receive(kMtu + 4);
  d.give(d.send(0), kMtu, false);
  d.give(d.send(1), 4, true);
  EXPECT_EQ(d.completions().at(0).status, kOk) << "exactly as long";
}

TEST(DeliverSend, a_part_from_elsewhere_fails_the_message) {
  Delivery d;
  d.post_receive(4 * kMtu);
  d.give(d.send(0), kMtu, false);
  d.give(d.send(2), 5, true);
  EXPECT_EQ(d.verdict(), kNotSupported);
  EXPECT_EQ(d.completions().at(0).status, CrStatus::kLocAccess);
}

TEST(DeliverSend, into_a_receive_whose_memory_is_gone_fails_both) {
  Delivery d;
  d.post_receive(64);
  ASSERT_EQ(unregister_segment(*d.s, d.segment.handle), Status::kOk);
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict(), kAborted);
  const std::vector<Cqe> done = d.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, CrStatus::kLocAccess);
}

TEST(DeliverSend, without_a_receive_is_refused_for_the_time_of_the_jfr) {
  Delivery d;
  d.give(d.send(), kMtu, false);
  d.give(d.send(1), 5);
  EXPECT_EQ(d.verdict(), (std::pair<int, int>(wire::kRspRnr, d.the_jfr().rnr_code)));
}

TEST(DeliverSend, finds_no_receive_if_its_owner_asked_for_that) {
  Delivery d;
  d.post_receive(64);
  ASSERT_EQ(d.s->rnr_faults.set(d.the_jfr().owner, fault::RnrRule{.jfr = 0, .choice = {.at_most = 1}}), Status::kOk);
  d.give(d.send(), 5);
  EXPECT_EQ(d.verdict(), (std::pair<int, int>(wire::kRspRnr, d.the_jfr().rnr_code)));
  EXPECT_TRUE(d.completions().empty());
  EXPECT_EQ(d.s->counters[Counter::kInjectedRnr], 1u);
  d.answers();
  d.give(d.send(), 5);
  EXPECT_EQ(d.completions().size(), 1u) << "the receive is still there";
}

TEST(DeliverSend, with_invalidate_revokes_and_tells_what) {
  Delivery d;
  d.post_receive(64);
  wire::TaPacket p = d.send(0, TaOpcode::kSendInvalidate);
  p.has_imm = true;
  p.imm = {uint64_t{d.target_memory.token_id} << 32 | kToken, 0, 0};
  d.give(p, 5);
  const std::vector<Cqe> done = d.completions();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].opcode, CrOpcode::kSendInvalidate);
  EXPECT_EQ(done[0].immediate, uint64_t{kToken} << 32 | d.target_memory.token_id);
  d.answers();
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  EXPECT_EQ(d.verdict(), kAborted);
}

// The peer must not take a side for dead that cannot go on (6.2.1).
TEST(Delivery, while_it_has_stopped_a_packet_that_cannot_be_kept_is_answered_with_an_acknowledgement) {
  for (const bool stops : {false, true}) {
    Delivery d;
    d.give(1, d.on_memory(TaOpcode::kWrite, 8), 8, true, 1);
    while (stops && room_for_answer(*d.s, d.ch())) d.s->answers.alloc();
    d.give(0, d.response(TaOpcode::kTaack, 0), 0, true, 0);
    ASSERT_EQ(d.ch().stalled, stops);
    d.use_up_kept_places();
    while (d.ch().on_ack_list) d.s->owing_acks.pop_front<&tp::Channel::on_ack_list>(d.s->channels);
    d.give(3, d.on_memory(TaOpcode::kWrite, 8), 8, true, 3);
    EXPECT_EQ(d.count(Counter::kRxNoReorderBuffer), 1u);
    EXPECT_EQ(bool(d.ch().on_ack_list), stops);
  }
}

TEST(DeliverSend, with_invalidate_that_fails_revokes_nothing) {
  Delivery d;
  d.post_receive(4);
  wire::TaPacket p = d.send(0, TaOpcode::kSendInvalidate);
  p.has_imm = true;
  p.imm = {uint64_t{d.target_memory.token_id} << 32 | kToken, 0, 0};
  d.give(p, 5);
  EXPECT_EQ(d.completions().at(0).status, CrStatus::kLocLen);
  d.answers();
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  EXPECT_EQ(d.verdict(), kFine);
}

}  // namespace
}  // namespace ub::ta
