// SPDX-License-Identifier: Apache-2.0
//
// Bytes that answers bring, and memory that answers later on both sides: what waits for it, and what becomes of a
// message whose memory went away (UB Base Specification Rev 2.0, 7.2, 7.3).
#include "lib/transport/ta/request_state.h"
#include "tests/unit/ta/delivery.h"

namespace ub::ta {
namespace {

using wire::TaOpcode;

// ---- responses -------------------------------------------------------------------------------------------------

struct Asked : Delivery {
  void ask(WrOp op, uint32_t length) {
    post(op, length);
    sent();
  }
  bool got(uint32_t length, uint32_t from = 0) const {
    return std::memcmp(memory.data() + from, bytes + from, length) == 0;
  }
};

TEST(ReadResponse, fills_the_memory_of_its_request) {
  Asked d;
  d.ask(WrOp::kRead, 2 * kMtu + 5);
  d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
  d.give(d.response(TaOpcode::kReadResponse, 0, 1), kMtu, false, kMtu);
  EXPECT_TRUE(d.outcomes().empty());
  d.give(d.response(TaOpcode::kReadResponse, 0, 2), 5, true, 2 * kMtu);
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
  EXPECT_TRUE(d.got(2 * kMtu + 5));
  EXPECT_EQ(d.ch().message, Tpmsn(1));
  EXPECT_TRUE(d.answers().empty());
}

TEST(ReadResponse, ahead_of_a_gap_is_placed_where_it_says) {
  Asked d;
  d.ask(WrOp::kRead, 3 * kMtu);
  d.give(1, d.response(TaOpcode::kReadResponse, 0, 1), kMtu, false, 0, kMtu);
  EXPECT_TRUE(d.got(kMtu, kMtu));
  EXPECT_EQ(d.s->kept.in_use(), 0u);
  d.give(0, d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false, 0);
  d.give(2, d.response(TaOpcode::kReadResponse, 0, 2), kMtu, true, 0, 2 * kMtu);
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
  EXPECT_TRUE(d.got(3 * kMtu));
}

TEST(ReadResponse, ahead_of_a_gap_that_belongs_nowhere_is_kept) {
  const auto kept = [](void (*change)(Asked&, wire::TaPacket&)) {
    Asked d;
    d.ask(WrOp::kRead, 3 * kMtu);
    wire::TaPacket p = d.response(TaOpcode::kReadResponse, 0, 1);
    change(d, p);
    d.give(1, p, kMtu, false, 0, kMtu);
    return d.s->kept.in_use() == 1;
  };
  EXPECT_FALSE(kept([](Asked&, wire::TaPacket&) {}));
  EXPECT_TRUE(kept([](Asked&, wire::TaPacket& p) { p.rsp.tassn = Tassn(1); })) << "nobody asked";
  EXPECT_TRUE(kept([](Asked&, wire::TaPacket& p) { p.ofst.offset_kib = 3; })) << "behind its end";
  EXPECT_TRUE(kept([](Asked&, wire::TaPacket& p) { p.rsp.rspst = wire::kRspError; }));
  EXPECT_TRUE(kept([](Asked& d, wire::TaPacket&) { d.ring[0].sge.segment = 0; })) << "no memory any more";
  EXPECT_TRUE(kept([](Asked& d, wire::TaPacket&) { d.ring[0].op = WrOp::kWrite; })) << "not what was asked";
}

TEST(ReadResponse, without_saying_where_it_is_it_is_in_order) {
  Asked d;
  d.ch().read_meta = false;
  d.ask(WrOp::kRead, 2 * kMtu);
  for (uint32_t i = 0; i < 2; ++i) {
    wire::TaPacket p = d.response(TaOpcode::kReadResponse, 0);
    p.has_taid = p.has_ofst = false;
    d.give(p, kMtu, i == 1, i * kMtu);
  }
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
  EXPECT_TRUE(d.got(2 * kMtu));
}

TEST(ReadResponse, of_a_later_part_without_saying_where_it_is_belongs_to_that_part) {
  Asked d;
  d.ch().read_meta = false;
  d.ask(WrOp::kRead, kSegment + kMtu);
  wire::TaPacket p = d.response(TaOpcode::kReadResponse, 1);
  p.has_taid = p.has_ofst = false;
  d.give(p, kMtu);
  EXPECT_EQ(std::memcmp(d.memory.data() + kSegment, d.bytes, kMtu), 0);
  EXPECT_EQ(d.state_of(0).status, kOk);
}

TEST(ReadResponse, of_another_form_than_was_asked_for_is_a_length_error) {
  const auto outcome = [](void (*give)(Asked&), WrOp op = WrOp::kRead, uint32_t length = kMtu + 5) {
    Asked d;
    d.ask(op, length);
    give(d);
    const Outcomes all = d.outcomes();
    return all.size() == 1 ? all[0] : CrStatus::kWrUnhandled;
  };
  constexpr CrStatus kBad = CrStatus::kRemRespLen;
  EXPECT_EQ(outcome([](Asked& d) {
              d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
              d.give(d.response(TaOpcode::kReadResponse, 0, 1), 5);
            }),
            kOk);
  EXPECT_EQ(outcome([](Asked& d) {
              d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
              d.give(d.response(TaOpcode::kReadResponse, 0, 1), 4);
            }),
            kBad);
  EXPECT_EQ(outcome([](Asked& d) {
              d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu - 4, false);
              d.give(d.response(TaOpcode::kReadResponse, 0, 1), 5);
            }),
            kBad);
  EXPECT_EQ(outcome([](Asked& d) {
              d.give(d.response(TaOpcode::kReadResponse, 0, 1), kMtu, false);
              d.give(d.response(TaOpcode::kReadResponse, 0, 1), 5);
            }),
            kBad)
      << "elsewhere";
  EXPECT_EQ(outcome([](Asked& d) { d.give(d.response(TaOpcode::kReadResponse, 0, 0), 5); }), kBad);
  EXPECT_EQ(outcome([](Asked& d) { d.give(d.response(TaOpcode::kReadResponse, 0, 0), 8); }, WrOp::kWrite, 8), kBad)
      << "a WRITE brings nothing";
  EXPECT_EQ(outcome([](Asked& d) { d.give(d.response(TaOpcode::kAtomicResponse, 0), 8); }, WrOp::kRead, 8), kBad);
  EXPECT_EQ(outcome([](Asked& d) { d.give(d.response(TaOpcode::kAtomicResponse, 0), 4); }, WrOp::kFetchAdd, 8), kBad);
  EXPECT_EQ(outcome([](Asked& d) { d.give(d.response(TaOpcode::kAtomicResponse, 0), 8); }, WrOp::kFetchAdd, 8), kOk);
}

TEST(ReadResponse, into_memory_that_is_gone_is_an_access_error_of_its_own) {
  Asked d;
  d.ask(WrOp::kRead, 8);
  d.ring[0].sge.segment = 0;
  d.give(d.response(TaOpcode::kReadResponse, 0), 8);
  EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kLocAccess}));
}

TEST(ReadResponse, the_first_failure_is_the_outcome) {
  Asked d;
  d.ask(WrOp::kRead, 2 * kMtu);
  d.ring[0].sge.segment = 0;
  d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
  d.give(d.response(TaOpcode::kReadResponse, 0, 9), 5);
  EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kLocAccess}));
}

TEST(ReadResponse, that_nobody_waits_for_is_stale) {
  Asked d;
  d.give(d.response(TaOpcode::kReadResponse, 0), 8);
  EXPECT_EQ(d.count(Counter::kTaRxStaleAnswer), 1u);
  EXPECT_EQ(d.ch().expected, Psn(1));
}

TEST(AtomicResponse, the_old_value_is_big_endian_on_the_wire) {
  for (uint32_t width : {4u, 8u, 16u}) {
    Asked d;
    d.ask(WrOp::kFetchAdd, width);
    d.give(d.response(TaOpcode::kAtomicResponse, 0), width);
    EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
    for (uint32_t i = 0; i < width; ++i) EXPECT_EQ(d.memory[i], d.bytes[width - 1 - i]) << width << " " << i;
  }
}

TEST(Response, that_says_received_brings_its_bytes) {
  Asked d;
  d.ask(WrOp::kRead, 8);
  wire::TaPacket p = d.response(TaOpcode::kReadResponse, 0);
  p.rsp.rspst = wire::kRspReceived;
  d.give(p, 8);
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
  EXPECT_TRUE(d.got(8));
}

TEST(Response, an_error_brings_no_bytes) {
  Asked d;
  d.ask(WrOp::kRead, 8);
  wire::TaPacket p = d.response(TaOpcode::kReadResponse, 0);
  p.rsp.rspst = wire::kRspError;
  p.rsp.rspinfo = wire::kErrRemoteAbort;
  d.give(p, 0);
  EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kRemAccessAbort}));
}

// ---- memory that answers later, at the target ------------------------------------------------------------------

struct Slow : Delivery {
  Slow() : Delivery({.slow_memory = true}) { host.slow = true; }
  // The channel has no record for a message whose end waits.
  void park_nothing() {
    while (s->parked.alloc() != 0) {
    }
  }
};

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
  Delivery d({.channels_per_lane = 2, .slow_memory = true});
  d.host.slow = true;
  const uint32_t peer = d.s->targets[d.target].peer;
  const uint32_t own = setup::channel_to(*d.s, peer, false, place_of(*d.s, d.q()));
  const uint32_t other = setup::channel_to(*d.s, peer, false, place_of(*d.s, d.q()) ^ 1);
  for (uint32_t each : {own, other}) {
    if (!d.s->channels[each].is_up()) d.open(each);
  }
  d.post(WrOp::kRead, kSegment + 2 * kMtu);
  d.sent(own);
  d.sent(other);
  const auto arrives = [&d](uint32_t channel, uint32_t segment, uint32_t packet, bool last) {
    d.channel = channel;
    tp::Channel& ch = d.ch();
    ch.read_meta = true;
    ch.highest_seen = ch.expected - 1;
    const uint32_t offset_kib = (segment * kSegment + packet * kMtu) / 1024;
    d.give(ch.expected.value(), d.response(TaOpcode::kReadResponse, segment, offset_kib), kMtu, last,
           ch.message.value());
  };
  arrives(own, 0, 0, false);
  arrives(other, 1, 0, false);
  ASSERT_EQ(d.host.pending_copies(), 2u);
  arrives(other, 1, 1, true);
  EXPECT_TRUE(d.s->channels[other].stalled);
  d.finish_copy(1);
  EXPECT_TRUE(d.s->channels[other].stalled) << "a copy of the other segment is pending";
  d.finish_copy(0);
  EXPECT_FALSE(d.s->channels[other].stalled);
  EXPECT_EQ(d.host.pending_copies(), 1u) << "of the last packet";
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
  while (room_for_answer(*d.s)) taken.push_back(d.s->messages.alloc());
  d.s->timers.cancel(d.channel);
  d.finish_copies();
  EXPECT_EQ(d.ch().parked, 1u);
  EXPECT_TRUE(d.s->timers.armed(d.channel));
  for (uint32_t chunk : taken) d.s->messages.free(chunk);
  d.receiver.resume(d.channel);
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

// ---- memory that answers later, at the initiator ---------------------------------------------------------------

TEST(SlowInitiator, a_read_completes_when_its_bytes_are_there) {
  Slow d;
  d.post(WrOp::kRead, 8);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0), 8);
  EXPECT_TRUE(d.outcomes().empty());
  EXPECT_EQ(d.state_of(0).copies, 1);
  EXPECT_EQ(d.q().copies_pending, 1u);
  EXPECT_FALSE(d.ch().stalled);
  d.finish_copies();
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
  EXPECT_EQ(d.q().copies_pending, 0u);
}

TEST(SlowInitiator, answers_behind_a_read_do_not_wait_for_its_bytes) {
  Slow d;
  d.post(WrOp::kRead, 8);
  d.post(WrOp::kWrite, 8);
  d.sent();
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0), 8);
  d.give(d.response(TaOpcode::kTaack, 1), 0);
  EXPECT_TRUE(d.state_of(1).done);
  EXPECT_TRUE(d.outcomes().empty()) << "they complete in the order in which they were posted";
  d.finish_copies();
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk, kOk}));
}

// A fenced request may send on what an earlier READ brings (UB Base Specification Rev 2.0, 7.3.2).
TEST(SlowInitiator, a_fence_holds_until_the_bytes_of_earlier_reads_are_there) {
  Slow d;
  for (int i = 0; i < 2; ++i) d.post(WrOp::kRead, 8);
  d.write(WrOp::kWrite).flags |= kWrFence;
  d.ring_bell();
  EXPECT_EQ(d.sent().size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) d.give(d.response(TaOpcode::kReadResponse, i), 8);
  EXPECT_EQ(d.q().unanswered_fenced, 0u);
  EXPECT_TRUE(d.sent().empty());
  d.finish_copy();
  EXPECT_TRUE(d.sent().empty()) << "one of two";
  d.finish_copy();
  EXPECT_EQ(d.sent().size(), 1u);
}

TEST(SlowInitiator, the_last_packet_of_a_response_waits_for_the_others) {
  Slow d;
  d.post(WrOp::kRead, kMtu + 8);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
  d.give(d.response(TaOpcode::kReadResponse, 0, 1), 8, true, kMtu);
  EXPECT_EQ(d.host.pending_copies(), 1u) << "the final word becomes visible last";
  EXPECT_TRUE(d.ch().stalled);
  d.finish_copy();
  EXPECT_FALSE(d.ch().stalled);
  d.finish_copy();
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
}

// What was given up is told when nothing writes into its memory any more.
TEST(SlowInitiator, a_read_that_was_given_up_completes_when_its_last_copy_is_done) {
  Slow d;
  d.post(WrOp::kRead, 3 * kMtu);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
  d.give(d.response(TaOpcode::kReadResponse, 0, 1), kMtu, false, kMtu);
  EXPECT_EQ(d.state_of(0).copies, 2);
  flush_queue(*d.s, d.queue_index);
  EXPECT_TRUE(d.outcomes().empty());
  d.finish_copy();
  EXPECT_TRUE(d.outcomes().empty());
  d.finish_copy();
  EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kWrFlush, CrStatus::kWrFlushDone}));
}

TEST(SlowInitiator, the_record_of_a_queue_that_is_gone_is_free_with_its_last_copy) {
  Slow d;
  d.post(WrOp::kRead, 3 * kMtu);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
  d.give(d.response(TaOpcode::kReadResponse, 0, 1), kMtu, false, kMtu);
  ASSERT_EQ(destroy_jetty(*d.s, d.id), Status::kOk);
  EXPECT_EQ(d.s->queues.in_use(), 1u);
  d.finish_copy();
  EXPECT_EQ(d.s->queues.in_use(), 1u);
  d.finish_copy();
  EXPECT_EQ(d.s->queues.in_use(), 0u);
}

// Its second range is gone when the bytes come. The memory of the first one is the application's again when nothing is
// written there any more.
TEST(SlowInitiator, a_read_whose_bytes_have_no_place_in_part_completes_when_the_other_part_is_there) {
  Slow d;
  Wqe& w = d.write(WrOp::kRead, 16);
  w.sge.length = 8;
  w.sge_count = 2;
  w.slots = static_cast<uint8_t>(wqe_slots(WrOp::kRead, 2, 0));
  d.indices.produced.store(w.slots);
  Sge& second = const_cast<Sge&>(sge_of(w, 1));
  second = {d.address() + 64, 8, d.segment.handle};
  d.ring_bell();
  ASSERT_EQ(d.sent().size(), 1u);
  second.segment = 0;
  d.give(d.response(TaOpcode::kReadResponse, 0), 16);
  EXPECT_EQ(d.host.pending_copies(), 1u);
  EXPECT_EQ(d.outcomes(), Outcomes{});
  d.finish_copies();
  EXPECT_EQ(d.outcomes(), Outcomes{CrStatus::kLocAccess});
  EXPECT_EQ(d.q().copies_pending, 0u);
}

TEST(SlowInitiator, a_failure_before_the_copy_failed_stays_the_outcome) {
  Slow d;
  d.post(WrOp::kRead, 3 * kMtu);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
  give_up(*d.s, d.queue_index, 0, CrStatus::kAckTimeout);
  d.host.lose_pending();
  d.finish_copies();
  EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kAckTimeout}));
}

TEST(SlowInitiator, of_two_reads_the_one_whose_copy_failed_fails) {
  Slow d;
  d.post(WrOp::kRead, 8);
  d.post(WrOp::kRead, 8);
  d.sent();
  for (uint32_t i = 0; i < 2; ++i) d.give(d.response(TaOpcode::kReadResponse, i), 8);
  d.finish_copy();
  d.host.lose_pending();
  d.finish_copies();
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk, CrStatus::kLocAccess}));
}

}  // namespace
}  // namespace ub::ta
