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

// 7.2: a response belongs to the part that it answers.
TEST(ReadResponse, ahead_of_a_gap_that_belongs_to_another_part_is_kept) {
  const auto kept = [](uint32_t segment, uint32_t offset_kib) {
    Asked d;
    d.ask(WrOp::kRead, kSegment + 2 * kMtu);
    d.give(1, d.response(TaOpcode::kReadResponse, segment, offset_kib), kMtu, false, 0);
    return d.s->kept.in_use() == 1;
  };
  EXPECT_FALSE(kept(0, 1));
  EXPECT_FALSE(kept(1, kSegment / 1024));
  EXPECT_TRUE(kept(0, kSegment / 1024)) << "behind it";
  EXPECT_TRUE(kept(1, 1)) << "before it";
}

TEST(ReadResponse, ahead_of_a_gap_an_answer_of_another_kind_is_kept) {
  Asked d;
  d.ask(WrOp::kRead, 3 * kMtu);
  d.give(1, d.response(TaOpcode::kAtomicResponse, 0), kMtu, false, 0);
  EXPECT_EQ(d.s->kept.in_use(), 1u);
  EXPECT_FALSE(d.got(kMtu));
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
  EXPECT_EQ(outcome([](Asked& d) {
              d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
              d.give(d.response(TaOpcode::kReadResponse, 0, 1), kMtu, false);
              d.give(d.response(TaOpcode::kReadResponse, 0, 2), 5);
            }),
            kBad)
      << "longer";
  EXPECT_EQ(outcome(
                [](Asked& d) {
                  d.give(d.response(TaOpcode::kReadResponse, 0, 1), kMtu, false);
                  d.give(d.response(TaOpcode::kReadResponse, 0, 1), kMtu, false);
                  d.give(d.response(TaOpcode::kReadResponse, 0, 2), kMtu);
                },
                WrOp::kRead, 3 * kMtu),
            kBad)
      << "at first elsewhere";
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

TEST(ReadResponse, of_which_a_packet_is_malformed_is_a_length_error) {
  Asked d;
  d.ask(WrOp::kRead, 2 * kMtu);
  wire::RtpHeader rtp;
  rtp.psn = Psn(d.psn++);
  d.receiver.on_data(d.channel, rtp, {});
  d.give(d.response(TaOpcode::kReadResponse, 0, 1), kMtu);
  EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kRemRespLen}));
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
  for (uint32_t width : {1u, 2u, 4u, 8u, 16u}) {
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

// 7.2.1: bytes that are known to be bad are not put where they would look good.
TEST(Response, with_poisoned_bytes_places_none_and_says_so) {
  for (const TaOpcode op : {TaOpcode::kReadResponse, TaOpcode::kAtomicResponse}) {
    Asked d;
    d.ask(op == TaOpcode::kReadResponse ? WrOp::kRead : WrOp::kFetchAdd, 8);
    wire::TaPacket p = d.response(op, 0);
    p.rsp.poison = true;
    d.give(p, 8);
    EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kRemDataPoison}));
    EXPECT_FALSE(d.got(8));
  }
  Asked d;
  d.ask(WrOp::kRead, 3 * kMtu);
  wire::TaPacket bad = d.response(TaOpcode::kReadResponse, 0, 1);
  bad.rsp.poison = true;
  d.give(1, bad, kMtu, false, 0, kMtu);
  EXPECT_FALSE(d.got(kMtu, kMtu)) << "ahead of a gap";
  d.give(0, d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false, 0);
  d.give(2, d.response(TaOpcode::kReadResponse, 0, 2), kMtu, true, 0, 2 * kMtu);
  EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kRemDataPoison}));
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

TEST(SlowInitiator, a_read_that_completes_before_older_ones_has_its_bytes) {
  Slow d(true);
  d.post(WrOp::kWrite, 8);
  d.post(WrOp::kRead, 8);
  d.sent();
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 1), 8);
  EXPECT_TRUE(d.outcomes().empty());
  d.finish_copies();
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
  EXPECT_FALSE(d.state_of(0).done);
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
  EXPECT_GT(d.s->timers.earliest(), d.s->now);
  EXPECT_LE(d.s->timers.earliest(), d.s->now + milliseconds(1)) << "should the channel of the copy die";
  d.finish_copy();
  EXPECT_FALSE(d.ch().stalled);
  d.finish_copy();
  EXPECT_EQ(d.outcomes(), (Outcomes{kOk}));
}

TEST(SlowInitiator, a_response_of_one_packet_waits_for_no_other_part) {
  Slow d;
  d.cut_into(kMtu);
  d.post(WrOp::kRead, 2 * kMtu);
  ASSERT_EQ(d.sent().size(), 2u);
  d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu);
  d.give(d.response(TaOpcode::kReadResponse, 1, 1), kMtu);
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_EQ(d.host.pending_copies(), 2u);
}

TEST(SlowInitiator, an_error_behind_data_waits_for_no_bytes) {
  Slow d;
  d.post(WrOp::kRead, 2 * kMtu);
  d.sent();
  d.give(d.response(TaOpcode::kReadResponse, 0, 0), kMtu, false);
  wire::TaPacket p = d.response(TaOpcode::kReadResponse, 0, 0);
  p.rsp.rspst = wire::kRspError;
  p.rsp.rspinfo = wire::kErrRemoteAbort;
  d.give(p, 0);
  EXPECT_FALSE(d.ch().stalled);
  EXPECT_TRUE(d.state_of(0).done);
  d.finish_copies();
  EXPECT_EQ(d.outcomes(), (Outcomes{CrStatus::kRemAccessAbort}));
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
