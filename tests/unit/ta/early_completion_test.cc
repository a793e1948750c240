// SPDX-License-Identifier: Apache-2.0
//
// Queues whose requests complete as they finish, whatever is older (UB Base Specification Rev 2.0, 7.3.2.3).
#include <vector>

#include "lib/transport/ta/completion.h"
#include "lib/transport/ta/early_completion.h"
#include "tests/unit/ta/requests.h"
#include "tests/unit/transport/test_host.h"

namespace ub::ta {
namespace {

using Contexts = std::vector<uint64_t>;

struct Early : Requests {
  explicit Early(Options o = {}) : Requests(with_early(o)) {}
  static Options with_early(Options o) {
    o.completes_early = true;
    return o;
  }
  Contexts ended() {
    Contexts all;
    for (const Cqe& c : completions()) all.push_back(c.user_ctx);
    return all;
  }
  uint32_t retired() const { return indices.retired.load(); }
  // completions() makes room again.
  void fill_jfc() {
    while (jfc_has_room(*s, jfc)) push_completion(*s, jfc, Cqe{});
  }
};

TEST(EarlyCompletion, comes_when_the_request_ends) {
  Early r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(2);
  EXPECT_EQ(r.ended(), (Contexts{3}));
  r.answer(1);
  EXPECT_EQ(r.ended(), (Contexts{2}));
  EXPECT_EQ(r.retired(), 0u) << "slots are given back in order";
  EXPECT_EQ(r.indices.consumed.load(), 0u);
  r.answer(0);
  EXPECT_EQ(r.ended(), (Contexts{1}));
  EXPECT_EQ(r.retired(), 3u);
  EXPECT_EQ(r.indices.consumed.load(), 3u);
}

TEST(EarlyCompletion, is_off_where_nobody_asks_for_it) {
  Requests r;
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(1);
  EXPECT_TRUE(r.completions().empty());
}

TEST(EarlyCompletion, of_several_that_one_answer_ends_keeps_their_order) {
  Early r;
  for (int i = 0; i < 5; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(1, wire::kRspOk, 2);
  EXPECT_EQ(r.ended(), (Contexts{2, 3, 4}));
  r.answer(0);
  EXPECT_EQ(r.retired(), 4u);
  r.answer(4);
  EXPECT_EQ(r.ended(), (Contexts{1, 5}));
}

// A NOP has no transaction number, so that one answer may be about requests on either side of it.
TEST(EarlyCompletion, of_several_with_a_nop_between_them_leaves_none_out) {
  Early r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kNop);
  r.post(WrOp::kWrite);
  r.sent();
  EXPECT_EQ(r.ended(), (Contexts{2}));
  r.answer(0, wire::kRspOk, 1);
  EXPECT_EQ(r.ended(), (Contexts{1, 3}));
  EXPECT_EQ(r.retired(), 3u);
}

// In a ring that these four fill.
TEST(EarlyCompletion, of_several_with_two_nops_between_them_leaves_none_out) {
  Early r({.depth = 4});
  for (const WrOp op : {WrOp::kWrite, WrOp::kNop, WrOp::kNop, WrOp::kWrite}) r.post(op);
  r.sent();
  EXPECT_EQ(r.ended(), (Contexts{2, 3}));
  r.answer(0, wire::kRspOk, 1);
  EXPECT_EQ(r.ended(), (Contexts{1, 4}));
  EXPECT_EQ(r.retired(), 4u);
}

TEST(EarlyCompletion, waits_for_every_segment) {
  Early r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kWrite, 2 * kSegment);
  r.sent();
  r.answer(2);
  EXPECT_TRUE(r.ended().empty());
  r.answer(1);
  EXPECT_EQ(r.ended(), (Contexts{2}));
}

TEST(EarlyCompletion, says_the_failure_of_a_request_and_no_other) {
  Early r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(1, wire::kRspError, wire::kErrRemoteAbort);
  const std::vector<Cqe> failed = r.completions();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].status, CrStatus::kRemAccessAbort);
  EXPECT_EQ(failed[0].length, 8u);
  EXPECT_EQ(failed[0].tpn, r.ch().tpn);
  r.answer(0);
  r.answer(2);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, kOk}));
  EXPECT_EQ(r.retired(), 3u);
}

TEST(EarlyCompletion, who_asks_for_none_gets_none_unless_it_fails) {
  Early r;
  for (int i = 0; i < 3; ++i) r.write(WrOp::kWrite).flags = 0;
  r.ring_bell();
  r.sent();
  r.answer(2);
  r.answer(1, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(r.ended(), (Contexts{2}));
  r.answer(0);
  EXPECT_TRUE(r.ended().empty());
  EXPECT_EQ(r.retired(), 3u);
}

TEST(EarlyCompletion, comes_for_what_needs_no_packet) {
  Early r;
  r.post(WrOp::kWrite);
  r.post(WrOp::kNop);
  r.sent();
  EXPECT_EQ(r.ended(), (Contexts{2}));
  r.answer(0);
  EXPECT_EQ(r.ended(), (Contexts{1}));
  EXPECT_EQ(r.retired(), 2u);
}

TEST(EarlyCompletion, comes_for_what_is_given_up) {
  Early r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  give_up(*r.s, r.queue_index, 1, CrStatus::kAckTimeout);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kAckTimeout}));
  r.answer(0);
  r.answer(1);
  r.answer(2);
  EXPECT_EQ(r.ended(), (Contexts{1, 3}));
}

TEST(EarlyCompletion, a_flush_says_nothing_twice) {
  Early r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(1);
  EXPECT_EQ(r.ended(), (Contexts{2}));
  flush_queue(*r.s, r.queue_index);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kWrFlush, CrStatus::kWrFlush, CrStatus::kWrFlushDone}));
}

TEST(EarlyCompletion, a_queue_that_suspends_has_its_marker_behind_all) {
  Early r({.suspends = true});
  for (int i = 0; i < 2; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(1, wire::kRspError, wire::kErrRemoteAbort);
  EXPECT_EQ(r.outcomes(), (Outcomes{CrStatus::kRemAccessAbort}));
  r.answer(0);
  EXPECT_EQ(r.outcomes(), (Outcomes{kOk, CrStatus::kWrSuspendDone}));
}

// Whoever has polled the completions of all his requests may post as many again.
TEST(EarlyCompletion, the_last_one_tells_how_many_retire_with_it) {
  Early r;
  for (int i = 0; i < 4; ++i) r.post(WrOp::kWrite);
  r.write(WrOp::kWrite).flags = 0;
  r.post(WrOp::kWrite);
  r.sent();
  for (const uint32_t tassn : {1, 2, 4}) r.answer(tassn);
  EXPECT_EQ(r.indices.retiring.load(), 0u) << "nothing retires yet";
  r.answer(0);
  EXPECT_EQ(r.indices.retiring.load(), 3u);
  EXPECT_EQ(r.retired(), 3u);
  r.answer(3);
  EXPECT_EQ(r.indices.retiring.load(), 5u) << "the one that wanted no completion, too";
  EXPECT_EQ(r.retired(), 5u);
}

TEST(EarlyCompletion, nothing_retires_with_the_oldest_one_that_has_not_ended) {
  Early r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(0);
  EXPECT_EQ(r.indices.retiring.load(), 1u);
  EXPECT_EQ(r.retired(), 1u);
}

TEST(EarlyCompletion, what_retired_before_does_not_retire_once_more_with_the_newest_one) {
  Early r({.depth = 4});
  for (uint32_t i = 0; i < 5; ++i) {
    r.post(WrOp::kWrite);
    r.sent();
    r.answer(i);
    EXPECT_EQ(r.indices.retiring.load(), i + 1);
  }
}

TEST(EarlyCompletion, bears_the_number_of_its_request) {
  Early r;
  r.indices.retired.store(0xffffffff);
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(2);
  r.answer(0);
  r.answer(1);
  const std::vector<Cqe> all = r.completions();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].stamp, 2u);
  EXPECT_EQ(all[1].stamp, 0u);
  EXPECT_EQ(all[2].stamp, 1u);
}

// A peer may say that more segments have succeeded than were sent.
TEST(EarlyCompletion, of_an_answer_that_is_about_others_too_bears_its_own_number) {
  Early r({.depth = 4});
  r.post(WrOp::kWrite);
  r.sent();
  r.answer(0, wire::kRspOk, 5);
  const std::vector<Cqe> all = r.completions();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].stamp, 1u);
  EXPECT_EQ(r.count(Counter::kTaRxStaleAnswer), 5u);
}

// If the process of the Core dies, that of the application completes what was not completed.
TEST(EarlyCompletion, is_marked_in_the_element_that_the_application_wrote) {
  Early r({.fetched = true});
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(1);
  EXPECT_EQ(r.source[0].flags & kWrReported, 0);
  EXPECT_EQ(r.source[1].flags, kWrSignaled | kWrReported);
  EXPECT_EQ(r.source[2].flags & kWrReported, 0);
}

TEST(EarlyCompletion, waits_for_room_and_then_comes_in_order) {
  Early r;
  for (int i = 0; i < 4; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.fill_jfc();
  r.answer(2);
  r.answer(0);
  r.answer(1);
  EXPECT_EQ(r.retired(), 0u);
  r.completions();
  r.answer(3);
  EXPECT_TRUE(r.completions().empty()) << "older ones come first";
  resume_jfc(*r.s, r.jfc);
  EXPECT_EQ(r.ended(), (Contexts{1, 2, 3, 4}));
  EXPECT_EQ(r.retired(), 4u);
}

TEST(EarlyCompletion, that_found_room_is_not_said_again_when_there_is_more) {
  Early r;
  for (int i = 0; i < 3; ++i) r.post(WrOp::kWrite);
  r.sent();
  r.answer(1);
  EXPECT_EQ(r.ended(), (Contexts{2}));
  r.fill_jfc();
  r.answer(2);
  r.completions();
  resume_jfc(*r.s, r.jfc);
  EXPECT_EQ(r.ended(), (Contexts{3}));
  r.answer(0);
  EXPECT_EQ(r.indices.retiring.load(), 3u);
  EXPECT_EQ(r.ended(), (Contexts{1}));
  EXPECT_EQ(r.retired(), 3u);
}

TEST(EarlyCompletion, has_no_meaning_for_datagrams) {
  Early r({.mode = Mode::kUm});
  EXPECT_FALSE(r.q().completes_early);
}

}  // namespace
}  // namespace ub::ta
