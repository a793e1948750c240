// SPDX-License-Identifier: Apache-2.0
//
// Started requests of a queue: whether an answer to one is awaited, and which is the oldest that others wait for.
#include "lib/transport/ta/request_state.h"

#include <array>

#include "tests/unit/ta/requests.h"

namespace ub::ta {
namespace {

// ---- deadlines -------------------------------------------------------------------------------------------------

TEST(InFlight, the_last_segment_alone_is_awaited_like_any_other) {
  Requests r;
  r.post(WrOp::kWrite, 2 * kSegment);
  r.sent();
  r.pass(milliseconds(5));
  r.answer(0);
  EXPECT_EQ(r.state_of(0).deadline, r.s->now + r.q().request_timeout);
}

// Nobody is to blame for a request that waits for others.
TEST(InFlight, nothing_is_awaited_where_all_that_was_sent_is_answered) {
  Requests r;
  r.post(WrOp::kSend);
  r.post(WrOp::kWriteImm, 2 * kMtu);
  r.sent();
  r.refuse(0);
  r.answer(1);
  EXPECT_TRUE(r.sent().empty()) << "the last part may not overtake the message that was refused";
  EXPECT_TRUE(r.state_of(1).deadline.is_never());
}

TEST(InFlight, the_oldest_of_64_segments_is_awaited_when_all_others_are_answered) {
  Requests r;
  r.post(WrOp::kWrite, 64 * kSegment);
  ASSERT_EQ(r.sent().size(), 64u);
  r.pass(milliseconds(5));
  for (uint32_t tassn = 1; tassn < 64; ++tassn) r.answer(tassn);
  EXPECT_EQ(r.state_of(0).deadline, r.s->now + r.q().request_timeout);
}

// ---- the oldest one that is not done ---------------------------------------------------------------------------

// A queue with eight requests under way. Those that ask for an order and those that are done are given as bits.
struct Started {
  static constexpr uint32_t kCount = 8;
  Started(uint32_t head, uint32_t ordered, uint32_t done) {
    q.slots = slots.data();
    q.work = work.data();
    q.slot_mask = q.work_mask = kCount - 1;
    q.started_head = head;
    q.started_tail = head + kCount;
    for (uint32_t i = 0; i < kCount; ++i) {
      const uint32_t at = (head + i) % kCount;
      work[at].slot = at;
      work[at].done = (done >> i & 1) != 0;
      slots[at].place_order = (ordered >> i & 1) != 0 ? 1 : 0;
    }
  }
  // The same, found without a cursor.
  uint32_t expected(uint32_t number) const {
    for (uint32_t n = q.started_head; n != number; ++n) {
      if (!work[n % kCount].done && slots[n % kCount].place_order != 0) return n;
    }
    return number;
  }

  SendQueue q{};
  std::array<Wqe, kCount> slots{};
  std::array<WrState, kCount> work{};
};

TEST(OldestUnfinished, is_found_wherever_the_numbers_wrap_and_however_old_the_last_search_is) {
  for (const uint32_t head : {0u, 3u, UINT32_MAX / 2 - 20, UINT32_MAX / 2 + 20, UINT32_MAX - 3}) {
    for (const uint32_t ago : {0u, 1u, 4u, 9u, 35u, 40u, 1000u}) {
      for (uint32_t bits = 0; bits < 256; ++bits) {
        for (uint32_t first = 0; first < Started::kCount; ++first) {
          Started s(head, bits, bits * 37 % 256 & 0x5b);
          s.q.ordered_from = head - ago;
          for (uint32_t n = head + first; n != s.q.started_tail; ++n) {
            ASSERT_EQ(oldest_ordered(s.q, n), s.expected(n)) << head << ' ' << ago << ' ' << bits;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ub::ta
