// SPDX-License-Identifier: Apache-2.0
//
// ROL at the initiator (UB Base Specification Rev 2.0, 6.8.2, 7.3.3): which strong requests leave at once, what an
// acknowledgement means for requests, and a status in a TPACK (6.2.1), on other channels, too.
#include "lib/transport/ta/fused_answer.h"

#include "lib/transport/ta/sent_messages.h"
#include "lib/transport/wire/sack.h"
#include "tests/unit/ta/requests.h"

namespace ub::ta {
namespace {

constexpr uint8_t kNo = 0, kRelaxed = 1, kStrong = 2;

struct Rol : Requests {
  explicit Rol(bool rol = true, uint8_t rnr_retry = 7)
      : Requests(Options{.mode = Mode::kRc, .pinned = true, .rnr_retry = rnr_retry, .rol = rol}) {
    ch().next_psn = ch().oldest_unacked = Psn(100);
  }

  /// Sends what may be sent, one packet each unless it is said otherwise; the TASSNs.
  std::vector<uint32_t> leave(uint32_t packets = 1) {
    std::vector<uint32_t> all;
    for (const tp::TxMessage& content : sent()) {
      tp::TxMessage* m = tp::begin_message(*s, ch(), content);
      for (uint32_t i = 0; i < packets; ++i) tp::packet_sent(*s, channel, *m, s->now);
      tp::message_sent(ch(), *m);
      retries.push_back(m->retry);
      all.push_back(m->tassn.value());
    }
    return all;
  }
  wire::RtpHeader header(uint32_t psn, uint8_t rspst, uint8_t rspinfo) const {
    wire::RtpHeader rtp;
    rtp.psn = Psn(psn);
    rtp.tpmsn = Tpmsn(psn - 100);  // a packet each
    rtp.rspst = rspst;
    rtp.rspinfo = rspinfo;
    return rtp;
  }
  void ack(uint32_t psn, uint8_t rspst = wire::kRspFused, uint8_t rspinfo = wire::kFusedOk) {
    ta::on_ack(*s, channel, header(psn, rspst, rspinfo));
  }
  std::vector<bool> retries;
};

// ---- gates -----------------------------------------------------------------------------------------------------

TEST(RolGate, a_strong_request_follows_writes_and_atomics_at_once) {
  Rol r;
  r.post(WrOp::kWrite, 8, kRelaxed);
  for (const WrOp op : {WrOp::kWrite, WrOp::kFetchAdd, WrOp::kRead}) r.post(op, 8, kStrong);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(RolGate, a_strong_send_follows_sends_while_no_read_or_atomic_is_under_way) {
  Rol r;
  r.post(WrOp::kSend, 8, kRelaxed);
  r.post(WrOp::kFetchAdd, 8, kNo);
  r.post(WrOp::kSend, 8, kStrong);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{0, 1}));
  r.answer(1);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{2}));
}

TEST(RolGate, a_strong_request_waits_for_ordered_reads) {
  Rol r;
  r.post(WrOp::kRead, 8, kNo);
  r.post(WrOp::kWrite, 8, kStrong);
  r.post(WrOp::kRead, 8, kRelaxed);
  r.post(WrOp::kWrite, 8, kStrong);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{0, 1, 2})) << "a READ without order is not waited for";
  r.answer(2);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{3}));
}

TEST(RolGate, a_strong_request_waits_for_ordered_messages_unless_it_is_a_send) {
  for (const WrOp op : {WrOp::kWrite, WrOp::kRead, WrOp::kFetchAdd, WrOp::kSend}) {
    Rol r;
    r.post(WrOp::kSend, 8, kRelaxed);
    r.post(op, 8, kStrong);
    EXPECT_EQ(r.leave().size(), op == WrOp::kSend ? 2u : 1u);
    r.ack(100);
    EXPECT_EQ(r.leave().size(), op == WrOp::kSend ? 0u : 1u);
  }
}

TEST(RolGate, a_strong_request_waits_for_what_was_not_sent_or_was_refused) {
  Rol r;
  r.post(WrOp::kSend, 8, kRelaxed);
  EXPECT_EQ(r.leave().size(), 1u);
  r.ack(100, wire::kRspRnr, 3);
  r.post(WrOp::kWrite, 8, kStrong);
  r.post(WrOp::kWrite, 8, kRelaxed);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{2})) << "the refused message has to come first";
  r.pass(milliseconds(1));
  r.timer();
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{0}));
  r.ack(101);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{}));
  r.ack(102);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{1}));
}

TEST(RolGate, a_strong_request_passes_a_refused_one_that_asks_for_no_order) {
  Rol r;
  r.post(WrOp::kSend, 8, kNo);
  r.leave();
  r.ack(100, wire::kRspRnr, 3);
  r.post(WrOp::kWrite, 8, kStrong);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{1}));
}

TEST(RolGate, a_strong_request_waits_for_a_refused_write_that_is_not_the_oldest_request) {
  Rol r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kRead, 8, kNo);
  r.post(WrOp::kWrite, 8, kRelaxed);
  r.leave();
  r.ack(102, wire::kRspFused, wire::kFusedRetry);
  r.post(WrOp::kWrite, 8, kStrong);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{}));
  r.pass(milliseconds(1));
  r.timer();
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{2, 3}));
}

// It is never sent, so no channel keeps it behind anything.
TEST(RolGate, a_strong_nop_waits_until_those_before_it_are_done) {
  Rol r;
  r.post(WrOp::kWrite, 8, kRelaxed);
  r.post(WrOp::kNop, 8, kStrong);
  r.post(WrOp::kWrite);
  EXPECT_EQ(numbers(r.sent()), (Numbers{0}));
  r.answer(0);
  EXPECT_EQ(numbers(r.sent()), (Numbers{2}));
}

// The last segment of a notification waits for the answer to the others, as in ROI, and what comes behind waits for it.
TEST(RolGate, a_strong_request_waits_for_a_last_segment_that_waits) {
  Rol r;
  r.post(WrOp::kWriteNotify, 2 * kMtu, kRelaxed);
  r.post(WrOp::kWrite, 8, kStrong);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{0}));
  r.ack(100);
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{1, 2}));
}

TEST(RolGate, where_the_peer_refused_rol_the_queue_keeps_its_order) {
  Rol r;
  r.peer().refuses_rol = true;
  EXPECT_EQ(lane_of_request(*r.s, r.q(), r.write(WrOp::kWrite)), kSmallLane);
  EXPECT_FALSE(ordered_by_channel(*r.s, r.q(), r.s->targets[r.target].peer));
}

TEST(RolGate, only_queues_of_rc_with_that_order_type_use_it) {
  using Kind = std::pair<Mode, bool>;
  for (const auto& [mode, pinned] : {Kind(Mode::kRc, true), Kind(Mode::kRc, false), Kind(Mode::kRm, true)}) {
    Requests r(Requests::Options{.mode = mode, .pinned = pinned, .rol = true});
    EXPECT_EQ(r.q().rol, mode == Mode::kRc && pinned);
  }
}

// ---- what acknowledgements mean --------------------------------------------------------------------------------

TEST(FusedAnswer, ends_the_writes_and_sends_that_it_covers) {
  Rol r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kSend);
  r.post(WrOp::kWrite);
  r.leave();
  r.ack(101);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk}));
  r.ack(102, wire::kRspOk, 0);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk})) << "a plain TPACK says the same";
  EXPECT_EQ(r.q().unanswered_segments, 0);
}

TEST(FusedAnswer, completes_what_it_covers_before_older_requests_where_the_queue_wants_that) {
  Rol r;
  r.q().completes_early = true;
  r.post(WrOp::kRead);
  r.post(WrOp::kWrite);
  r.leave();
  r.ack(101);
  const std::vector<Cqe> early = r.completions();
  ASSERT_EQ(early.size(), 1u);
  EXPECT_EQ(early[0].user_ctx, 2u);
}

TEST(FusedAnswer, of_a_tpsack_does_not_include_what_was_only_received) {
  Rol r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.leave();
  const uint64_t bits[wire::kSackMaxWords] = {0b111};
  std::byte bytes[wire::sack_size(0)];
  wire::write_sack(bytes, 0, Psn(102), bits);
  ta::on_sack(*r.s, r.channel, r.header(100, 0, 0), bytes);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

TEST(FusedAnswer, reads_and_atomics_have_a_response) {
  Rol r;
  r.post(WrOp::kRead);
  r.post(WrOp::kFetchAdd);
  r.leave();
  r.ack(101);
  EXPECT_EQ(r.outcomes(), (Outcomes{}));
  r.answer(0);
  r.answer(1);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk}));
}

TEST(FusedAnswer, on_other_channels_an_acknowledgement_ends_nothing) {
  Rol r(false);
  r.post(WrOp::kWrite);
  r.leave();
  r.ack(100);
  EXPECT_EQ(r.outcomes(), (Outcomes{}));
}

// 6.2.1: RSPST in a TPACK. All before the message succeeded.
TEST(FusedAnswer, a_failure_is_that_of_one_message_and_is_confirmed) {
  const struct {
    uint8_t rspst, rspinfo;
    CrStatus write, send;
  } kCases[] = {
      {wire::kRspError, wire::kErrRemoteAbort, CrStatus::kRemAccessAbort, CrStatus::kRemAccessAbort},
      {wire::kRspError, wire::kErrUnsupportedRequest, CrStatus::kRemUnsupported, CrStatus::kRemOperation},
      {wire::kRspFused, wire::kFusedFatal, CrStatus::kAckTimeout, CrStatus::kAckTimeout},
  };
  for (const auto& c : kCases) {
    for (const WrOp op : {WrOp::kWrite, WrOp::kSend}) {
      Rol r;
      r.post(WrOp::kWrite);
      r.post(op);
      r.post(WrOp::kWrite);
      r.leave();
      r.ack(101, c.rspst, c.rspinfo);
      EXPECT_EQ(r.outcomes(), (Outcomes{kOk, op == WrOp::kSend ? c.send : c.write}));
      EXPECT_EQ(r.count(Counter::kTaRxError), c.rspst == wire::kRspError ? 1u : 0u);
      EXPECT_TRUE(r.ch().fused.confirm_owed);
      EXPECT_EQ(r.ch().fused.confirmed.message, Tpmsn(1));
      r.ack(102);
      EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
    }
  }
}

TEST(FusedAnswer, a_refused_message_goes_again_and_says_so) {
  Rol r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kSend);
  r.leave();
  r.ack(101, wire::kRspRnr, 3);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
  EXPECT_TRUE(r.ch().fused.confirm_owed);
  r.pass(milliseconds(1));
  r.timer();
  r.retries.clear();
  EXPECT_EQ(r.leave(), (std::vector<uint32_t>{1}));
  EXPECT_EQ(r.retries, (std::vector<bool>{true})) << "it is the oldest, because those before it are known to be done";
  r.ack(102);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

TEST(FusedAnswer, a_message_is_refused_as_often_as_its_queue_allows) {
  Rol r(true, 0);
  r.post(WrOp::kSend);
  r.leave();
  r.ack(100, wire::kRspRnr, 3);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRnrRetryExceeded}));
}

TEST(FusedAnswer, a_page_fault_and_a_failure_that_a_retry_mends_are_refusals) {
  for (const auto& [rspst, rspinfo] : {std::pair(wire::kRspPageFault, uint8_t{0}),
                                       std::pair(wire::kRspFused, wire::kFusedRetry)}) {
    Rol r;
    r.post(WrOp::kWrite);
    r.leave();
    r.ack(100, rspst, rspinfo);
    r.pass(milliseconds(1));
    r.timer();
    EXPECT_EQ(r.leave(), (std::vector<uint32_t>{0}));
  }
}

TEST(FusedAnswer, a_repeated_failure_is_confirmed_again_and_has_no_other_effect) {
  Rol r;
  r.post(WrOp::kSend);
  r.leave();
  r.ack(100, wire::kRspRnr, 3);
  r.ch().fused.confirm_owed = false;
  const uint64_t refused = r.count(Counter::kTaRxRnr);
  r.ack(100, wire::kRspRnr, 3);
  EXPECT_TRUE(r.ch().fused.confirm_owed) << "the first confirmation was lost";
  EXPECT_EQ(r.count(Counter::kTaRxRnr), refused);
}

TEST(FusedAnswer, a_failure_of_a_request_that_was_given_up_is_confirmed) {
  Rol r;
  r.post(WrOp::kSend);
  r.leave();
  give_up(*r.s, r.queue_index, 0, CrStatus::kWrFlush);
  r.ack(100, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_TRUE(r.ch().fused.confirm_owed);
}

TEST(FusedAnswer, a_failure_of_packets_that_are_not_in_flight_is_stale) {
  Rol r;
  r.post(WrOp::kWrite);
  r.leave();
  r.ack(105, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_FALSE(r.ch().fused.confirm_owed);
  EXPECT_EQ(r.count(Counter::kTpRxStaleAck), 1u);
  EXPECT_EQ(r.outcomes(), (Outcomes{}));
}

TEST(FusedAnswer, a_success_of_packets_that_are_not_in_flight_is_counted_as_stale) {
  Rol r;
  r.post(WrOp::kWrite);
  r.leave();
  r.ack(105);
  EXPECT_EQ(r.count(Counter::kTpRxAck), 1u);
  EXPECT_EQ(r.count(Counter::kTpRxStaleAck), 1u);
  EXPECT_EQ(r.outcomes(), (Outcomes{}));
}

TEST(FusedAnswer, a_failure_does_not_end_a_message_of_which_packets_are_missing) {
  Rol r;
  r.post(WrOp::kWrite, 2 * kMtu);
  r.leave(2);
  r.ack(100, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(r.outcomes(), (Outcomes{}));
  r.ack(101);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
}

// ---- two jettys on one channel -----------------------------------------------------------------------------------

struct TwoQueues : Rol {
  TwoQueues() {
    JettyConfig c = jetty_config(make_jfr());
    c.mode = Mode::kRc;
    c.lower_layer_order = true;
    second = make(c);
  }
  /// A WRITE of each, the first one's first.
  void leave_one_each() {
    SendRingMemory& theirs = send_rings.back();
    theirs.slots[0] = post(WrOp::kWrite);
    theirs.indices.produced.store(1);
    schedule_queue(*s, jetty(second).queue);
    EXPECT_EQ(leave().size(), 2u);
  }
  uint32_t second = 0;
};

TEST(FusedAnswer, a_failure_completes_behind_what_was_executed_before_it) {
  TwoQueues r;
  r.leave_one_each();
  r.ack(101, wire::kRspError, wire::kErrRemoteAbort);
  const std::vector<Cqe> done = r.completions();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].local_id, r.id);
  EXPECT_EQ(done[0].status, kOk);
  EXPECT_EQ(done[1].local_id, r.second);
  EXPECT_EQ(done[1].status, CrStatus::kRemAccessAbort);
}

TEST(FusedAnswer, a_failure_completes_nothing_of_a_jetty_that_was_destroyed) {
  TwoQueues r;
  r.leave_one_each();
  ASSERT_EQ(r.queue_index, 1u);
  ASSERT_EQ(destroy_jetty(*r.s, r.id), Status::kOk);
  r.ack(101, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRemAccessAbort}));
}

// ---- other channels ----------------------------------------------------------------------------------------------

// 7.3.1.1: a target without room for an answer may put a failure into the TPACK.
TEST(FusedAnswer, on_other_channels_a_status_is_that_of_its_message_alone) {
  Rol r(false);
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite);
  r.leave();
  r.ack(101, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(r.outcomes(), (Outcomes{})) << "in order, and the first one has no answer yet";
  EXPECT_FALSE(r.ch().fused.confirm_owed) << "nothing is frozen there";
  r.answer(0);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, CrStatus::kRemAccessAbort}));
}

TEST(FusedAnswer, on_other_channels_a_status_of_a_segment_that_was_answered_is_ignored) {
  for (const uint32_t answered : {0u, 1u}) {
    Rol r(false);
    r.post(WrOp::kWrite, 2 * kSegment);
    r.leave();
    r.answer(answered);
    r.ack(100 + answered, wire::kRspError, wire::kErrRemoteAbort);
    r.answer(1 - answered);
    EXPECT_EQ(r.outcomes(), (Outcomes{kOk}));
  }
}

}  // namespace
}  // namespace ub::ta
