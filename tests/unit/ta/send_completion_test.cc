// SPDX-License-Identifier: Apache-2.0
//
// The end of a send request, whatever engine it is of: who completes, with what, and what the application gets back.
#include "lib/transport/ta/send_completion.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/transport/resource/objects.h"
#include "tests/unit/transport/test_state.h"

namespace ub::ta {
namespace {

constexpr uint32_t kSender = 3;  // a record among the waiters

// A ring whose oldest request ends, and the JFC that it completes into.
struct Sending : TestState {
  Sending() {
    JfcConfig c;
    c.slots = cqes.data();
    c.slot_count = c.depth = 2;
    c.indices = &completions;
    EXPECT_EQ(create_jfc(*s, c, &jfc), Status::kOk);
    ring.indices = &indices;
    wqe.op = WrOp::kFetchAdd;
    wqe.user_ctx = 0x1234;
    wqe.length = 99;
  }
  bool complete(CrStatus status = CrStatus::kSuccess, uint32_t end = 5) {
    return complete_send(*s, ring, jfc, s->queue_waiters, kSender, wqe, end, status, [&] {
      ++described;
      Cqe cqe{};
      cqe.local_id = 77;
      return cqe;
    });
  }
  void signal() { wqe.flags |= kWrSignaled; }
  void fill_jfc() {
    for (int i = 0; i < 2; ++i) push_completion(*s, jfc, Cqe{});
  }
  bool waits() { return static_cast<bool>(s->queues[kSender].waiter); }

  std::vector<Cqe> cqes = std::vector<Cqe>(2);
  QueueIndices completions{}, indices{};
  SendRing ring{};
  Wqe wqe{};
  uint32_t jfc = 0, described = 0;
};

TEST(SendCompletion, who_asked_for_one_gets_it) {
  Sending q;
  q.signal();
  ASSERT_TRUE(q.complete());
  ASSERT_EQ(q.completions.produced.load(), 1u);
  EXPECT_EQ(q.cqes[0].user_ctx, 0x1234u);
  EXPECT_EQ(q.cqes[0].op, WrOp::kFetchAdd);
  EXPECT_EQ(q.cqes[0].length, 99u);
  EXPECT_EQ(q.cqes[0].status, CrStatus::kSuccess);
  EXPECT_EQ(q.cqes[0].local_id, 77u) << "as the sender says";
}

TEST(SendCompletion, who_did_not_ask_gets_none_unless_it_failed) {
  Sending q;
  ASSERT_TRUE(q.complete());
  EXPECT_EQ(q.completions.produced.load(), 0u);
  EXPECT_EQ(q.described, 0u);
  ASSERT_TRUE(q.complete(CrStatus::kRemAccessAbort));
  ASSERT_EQ(q.completions.produced.load(), 1u);
  EXPECT_EQ(q.cqes[0].status, CrStatus::kRemAccessAbort);
}

TEST(SendCompletion, counts_the_request_and_gives_its_slots_back) {
  Sending q;
  ASSERT_TRUE(q.complete(CrStatus::kSuccess, 5));
  EXPECT_EQ(q.indices.consumed.load(), 5u);
  EXPECT_EQ(q.indices.retired.load(), 1u);
  q.signal();
  ASSERT_TRUE(q.complete(CrStatus::kSuccess, 8));
  EXPECT_EQ(q.indices.consumed.load(), 8u);
  EXPECT_EQ(q.indices.retired.load(), 2u);
}

// Who takes over the rings of a daemon that died finds out by it whether the request was counted.
TEST(SendCompletion, bears_what_the_count_becomes) {
  Sending q;
  q.signal();
  q.indices.retired.store(255);
  ASSERT_TRUE(q.complete());
  EXPECT_EQ(q.cqes[0].stamp, 256u);
  EXPECT_EQ(q.indices.retiring.load(), 256u);
  ASSERT_TRUE(q.complete());
  EXPECT_EQ(q.cqes[1].stamp, 257u);
  EXPECT_EQ(q.indices.retiring.load(), 257u);
}

TEST(SendCompletion, without_room_waits_and_changes_nothing) {
  Sending q;
  q.fill_jfc();
  q.signal();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(q.complete());
  EXPECT_TRUE(q.waits());
  EXPECT_EQ(q.s->jfcs[q.jfc].waiting.back(), q.s->queue_waiters.of(kSender));
  EXPECT_EQ(q.described, 0u);
  EXPECT_EQ(q.indices.consumed.load(), 0u);
  EXPECT_EQ(q.indices.retired.load(), 0u);
  EXPECT_EQ(q.indices.retiring.load(), 0u);
  EXPECT_EQ(q.completions.produced.load(), 2u);
}

TEST(SendCompletion, who_completes_nothing_needs_no_room) {
  Sending q;
  q.fill_jfc();
  EXPECT_TRUE(q.complete());
  EXPECT_FALSE(q.waits());
  EXPECT_EQ(q.indices.retired.load(), 1u);
}

}  // namespace
}  // namespace ub::ta
