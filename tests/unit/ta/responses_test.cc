// SPDX-License-Identifier: Apache-2.0
//
// Bytes that answers bring, and memory that answers later on both sides: what waits for it, and what becomes of a message
// whose memory went away (UB Base Specification Rev 2.0, 7.2, 7.3).
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
  Slow() { host.slow = true; }
};

TEST(SlowTarget, a_write_is_answered_when_its_bytes_are_there) {
  Slow d;
  d.give(d.on_memory(TaOpcode::kWrite, 8), 8);
  EXPECT_TRUE(d.answers().empty());
  EXPECT_TRUE(d.ch().stalled);
  EXPECT_EQ(d.ch().copies_pending, 1u);
  d.finish_copies();
  EXPECT_EQ(d.verdict(), kFine);
  EXPECT_TRUE(d.holds(8));
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.ch().phase, 0);
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
    EXPECT_FALSE(d.ch().copy_failed);
  }
}

// Packets of later messages may be placed ahead of a gap, and fail there. Which of those between them failed, too, is not
// known: all of them did.
TEST(SlowTarget, from_the_first_message_whose_memory_went_away_to_the_last_all_fail) {
  for (bool newest_first : {false, true}) {
    Slow d;
    for (uint32_t message : {3u, 1u, 5u}) {
      d.give(2 * message, d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false, message);
    }
    d.host.lose_pending();
    while (d.host.pending_copies() != 0) d.finish_copy(newest_first ? d.host.pending_copies() - 1 : 0);
    EXPECT_TRUE(d.ch().copy_failed);
    EXPECT_EQ(d.ch().first_failed, Tpmsn(1));
    EXPECT_EQ(d.ch().last_failed, Tpmsn(5));
    d.host.slow = false;
    for (uint32_t message = 0; message < 8; ++message) {
      const bool ahead = message == 1 || message == 3 || message == 5;
      if (!ahead) d.give(2 * message, d.on_memory(TaOpcode::kWrite, kMtu + 8), kMtu, false, message);
      d.give(2 * message + 1, d.on_memory(TaOpcode::kWrite, kMtu + 8, kMtu), 8, true, message);
      EXPECT_EQ(d.verdict(), message >= 1 && message <= 5 ? kAborted : kFine) << message;
    }
    EXPECT_FALSE(d.ch().copy_failed);
  }
}

TEST(SlowTarget, a_failed_copy_of_a_response_fails_no_message_of_the_peer) {
  Slow d;
  d.post(WrOp::kRead, 8);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0), 8);
  d.host.lose_pending();
  d.finish_copies();
  EXPECT_FALSE(d.ch().copy_failed);
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

TEST(SlowTarget, a_fake_waits_for_what_may_still_write) {
  Slow d;
  d.post_receive(3 * kMtu);
  d.give(d.send(), kMtu, false);
  d.give_fake(0);
  EXPECT_EQ(d.count(Counter::kRxMessageVanished), 0u);
  EXPECT_TRUE(d.ch().stalled);
  d.finish_copies();
  EXPECT_EQ(d.count(Counter::kRxMessageVanished), 1u);
  EXPECT_EQ(d.ch().receive, 0u);
}

TEST(SlowTarget, no_more_than_so_many_copies_are_pending) {
  Slow d;
  for (uint32_t i = 0; i < 66; ++i) {
    d.give(d.on_memory(TaOpcode::kWrite, 70 * kMtu, i * kMtu), kMtu, false);
  }
  EXPECT_EQ(d.ch().copies_pending, 64u);
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

// ---- memory that answers later, at the initiator ---------------------------------------------------------------

TEST(SlowInitiator, a_read_completes_when_its_bytes_are_there) {
  Slow d;
  d.post(WrOp::kRead, 8);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0), 8);
  EXPECT_TRUE(d.outcomes().empty());
  EXPECT_EQ(d.state_of(0).copies, 1);
  EXPECT_EQ(d.q().copies_pending, 1u);
  EXPECT_EQ(d.ch().copies_pending, 1u);
  d.finish_copies();
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
  EXPECT_EQ(d.q().copies_pending, 0u);
  EXPECT_EQ(d.ch().copies_pending, 0u);
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
