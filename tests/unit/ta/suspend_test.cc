// SPDX-License-Identifier: Apache-2.0
//
// Queues whose exception mode is "suspend" (UB Base Specification Rev 2.0, 8.2.2.3): a request that fails stops what
// was not started, what was started comes to its end, and the application goes on when it has taken everything back.
#include <vector>

#include "lib/transport/resource/objects.h"
#include "lib/transport/ta/completion.h"
#include "tests/unit/ta/requests.h"
#include "tests/unit/transport/test_host.h"

namespace ub::ta {
namespace {

constexpr CrStatus kOk = CrStatus::kSuccess, kMarker = CrStatus::kWrSuspendDone;

struct Suspends : Requests {
  Suspends() : Requests({.suspends = true}) {}
  void fail(uint32_t tassn) { answer(tassn, wire::kRspError, wire::kErrRemoteAbort); }
  // User contexts of what is handed back.
  std::vector<uint64_t> taken() {
    Cqe out[16];
    const uint32_t n = take_unhandled(*s, queue_index, out, 16);
    std::vector<uint64_t> all;
    for (uint32_t i = 0; i < n; ++i) {
      EXPECT_EQ(out[i].status, CrStatus::kWrUnhandled);
      all.push_back(out[i].user_ctx);
    }
    return all;
  }
};

TEST(Suspend, a_request_that_fails_stops_what_was_not_started) {
  Suspends r;
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.fail(0);
  EXPECT_EQ(r.q().state, QueueState::kSuspended);
  r.post(WrOp::kWrite);
  EXPECT_TRUE(r.sent().empty());
  EXPECT_TRUE(r.taken().empty()) << "before the marker";
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRemAccessAbort})) << "the second one is under way";
  r.answer(1);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kMarker}));
  EXPECT_EQ(r.taken(), (std::vector<uint64_t>{3}));
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kReady), Status::kOk);
  r.post(WrOp::kWrite);
  EXPECT_EQ(r.sent().size(), 1u);
}

TEST(Suspend, there_is_one_marker_however_many_fail) {
  Suspends r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  for (const uint32_t tassn : {2, 0, 1}) r.fail(tassn);
  const Outcomes abort(3, CrStatus::kRemAccessAbort);
  Outcomes expected = abort;
  expected.push_back(kMarker);
  EXPECT_EQ(r.outcomes(), expected);
}

TEST(Suspend, what_was_refused_or_cut_comes_to_its_end) {
  Suspends r;
  r.post(WrOp::kSend);
  r.post(WrOp::kWriteImm, 2 * kMtu);
  r.post(WrOp::kWrite);
  r.sent();
  r.refuse(0);
  r.fail(3);
  ASSERT_EQ(r.q().state, QueueState::kSuspended);
  r.answer(1);
  EXPECT_TRUE(r.sent().empty()) << "behind the message that was refused";
  r.s->now = r.state_of(0).retry_at;
  r.timer();
  EXPECT_EQ(r.sent().size(), 2u) << "the retry, and the end of the WRITE_IMM";
  r.answer(0);
  r.answer(2);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk, CrStatus::kRemAccessAbort, kMarker}));
}

TEST(Suspend, a_request_that_is_wrong_by_itself_suspends_at_its_turn) {
  Suspends r;
  r.post(WrOp::kWrite);
  r.write(WrOp::kWrite).target = 77;
  r.write(WrOp::kWrite).target = 77;
  r.ring_bell();
  r.sent();
  EXPECT_EQ(r.q().state, QueueState::kSuspended);
  r.answer(0);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, CrStatus::kLocOperation, kMarker}));
  EXPECT_EQ(r.taken(), (std::vector<uint64_t>{3})) << "the one behind it was not looked at";
}

TEST(Suspend, a_request_that_times_out_is_a_failure_too) {
  Suspends r;
  r.post(WrOp::kWrite);
  r.sent();
  r.s->now = r.q().deadline;
  r.timer();
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kAckTimeout, kMarker}));
  EXPECT_EQ(r.q().state, QueueState::kSuspended);
}

TEST(Suspend, the_queue_goes_on_when_everything_was_taken_back) {
  Suspends r;
  r.post(WrOp::kWrite);
  r.sent();
  r.fail(0);
  r.post(WrOp::kWrite);
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kReady), Status::kBusy);
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kReset), Status::kBusy);
  EXPECT_EQ(r.taken().size(), 1u);
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kReady), Status::kOk);
  EXPECT_EQ(r.q().state, QueueState::kReady);
}

TEST(Suspend, an_application_may_ask_for_it) {
  Suspends r;
  r.post(WrOp::kWrite);
  r.sent();
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kSuspended), Status::kOk);
  r.post(WrOp::kWrite);
  EXPECT_TRUE(r.sent().empty());
  r.answer(0);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kMarker}));
  EXPECT_EQ(r.taken(), (std::vector<uint64_t>{2}));
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kReset), Status::kOk);
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kSuspended), Status::kInvalid) << "only from READY";
}

TEST(Suspend, where_nothing_is_under_way_the_marker_comes_at_once) {
  Suspends r;
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kSuspended), Status::kOk);
  EXPECT_EQ(r.outcomes(), (Outcomes{kMarker}));
}

TEST(Suspend, a_queue_without_anything_under_way_waits_for_no_channel) {
  Suspends r;
  r.write(WrOp::kWrite).target = r.add(r.target_config(3));  // its channel is not up
  r.ring_bell();
  const uint32_t channel = r.q().waits_for;
  ASSERT_NE(channel, 0u);
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kSuspended), Status::kOk);
  EXPECT_EQ(r.q().waits_for, 0u);
  EXPECT_TRUE(r.s->channels[channel].queues.empty());
}

TEST(Suspend, is_noted_with_the_queue) {
  Suspends r;
  TestHost host;
  r.s->looker.begin(host);
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kSuspended), Status::kOk);
  const Note note{Stage::kQueueState, r.queue_index, static_cast<uint32_t>(QueueState::kSuspended)};
  EXPECT_EQ(host.noted(Stage::kQueueState), (std::vector<Note>{note}));
}

TEST(Suspend, what_will_not_be_started_is_not_held_back_by_an_answer) {
  Suspends r;
  r.post(WrOp::kRead);
  r.sent();
  r.write(WrOp::kWrite).flags |= kWrFence;
  r.ring_bell();
  ASSERT_TRUE(r.q().held_back);
  ASSERT_EQ(set_state(*r.s, r.id, QueueState::kSuspended), Status::kOk);
  r.ring_bell();
  EXPECT_FALSE(r.q().held_back);
  EXPECT_EQ(r.s->held_back, 0u);
}

TEST(Suspend, from_there_to_error_there_is_the_marker_of_error_alone) {
  Suspends r;
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.fail(0);
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kError), Status::kOk);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRemAccessAbort, CrStatus::kWrFlush, CrStatus::kWrFlushDone}));
}

TEST(Suspend, a_queue_of_the_other_mode_goes_on_after_a_failure) {
  Requests r;
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(0, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(r.q().state, QueueState::kReady);
  r.post(WrOp::kWrite);
  EXPECT_EQ(r.sent().size(), 1u);
  EXPECT_EQ(set_state(*r.s, r.id, QueueState::kSuspended), Status::kInvalid);
}

}  // namespace
}  // namespace ub::ta
