// SPDX-License-Identifier: Apache-2.0
//
// The judge of order by itself: what it objects to, and what it lets pass.
#include <gtest/gtest.h>

#include "tests/sim/order_model.h"

namespace ub::sim {
namespace {

using Tag = OrderModel::Tag;
using Use = OrderModel::Use;

// Requests of one queue. Request i owns the bytes [100 i, 100 i + 8) of region 1 and, for its result, of region 2.
struct Judge {
  uint64_t post(Tag tag, bool fence = false, Use use = Use::kWritten, uint32_t queue = 7) {
    const uint64_t id = ++posted;
    model.post(id, queue, tag, fence);
    model.own(id, 1, 100 * id, 8, use);
    model.own(id, 2, 100 * id, 8, Use::kResult);
    return id;
  }
  void execute(uint64_t id) { model.touch(1, 100 * id + 3, false); }
  void read(uint64_t id) { model.touch(1, 100 * id, true); }
  void answer(uint64_t id) {
    model.arrive(2, 100 * id);
    model.touch(2, 100 * id, false);
  }
  // What is seen of it at its end; 0: nothing.
  uint64_t overtaken_by(uint64_t id) {
    const auto v = model.end(id);
    return v ? v->later : 0;
  }

  OrderModel model;
  uint64_t posted = 0;
};

TEST(OrderModel, a_strong_request_overtakes_no_ordered_one) {
  for (Tag tag : {Tag::kNo, Tag::kRelaxed, Tag::kStrong}) {
    Judge j;
    const uint64_t first = j.post(tag), strong = j.post(Tag::kStrong);
    j.execute(strong);
    j.execute(first);
    EXPECT_EQ(j.overtaken_by(first), tag == Tag::kNo ? 0 : strong);
    EXPECT_EQ(j.overtaken_by(strong), 0u);
  }
}

TEST(OrderModel, unordered_and_relaxed_requests_overtake_whom_they_like) {
  for (Tag tag : {Tag::kNo, Tag::kRelaxed}) {
    Judge j;
    const uint64_t strong = j.post(Tag::kStrong), later = j.post(tag);
    j.execute(later);
    j.execute(strong);
    EXPECT_EQ(j.overtaken_by(strong), 0u);
  }
}

TEST(OrderModel, the_order_of_posting_is_no_violation) {
  Judge j;
  const uint64_t first = j.post(Tag::kRelaxed), strong = j.post(Tag::kStrong);
  j.execute(first);
  j.execute(strong);
  EXPECT_EQ(j.overtaken_by(first), 0u);
}

// A response that is lost is read from memory once more: then, too, before what comes later has written.
TEST(OrderModel, a_read_is_over_with_its_last_look) {
  Judge j;
  const uint64_t first = j.post(Tag::kRelaxed, false, Use::kRead), strong = j.post(Tag::kStrong);
  j.read(first);
  j.answer(first);
  j.execute(strong);
  EXPECT_EQ(j.overtaken_by(first), 0u);
  j = Judge();
  const uint64_t again = j.post(Tag::kRelaxed, false, Use::kRead), write = j.post(Tag::kStrong);
  j.read(again);
  j.execute(write);
  j.read(again);
  j.answer(again);
  EXPECT_EQ(j.overtaken_by(again), write);
}

TEST(OrderModel, a_response_that_is_made_again_after_it_has_arrived_shows_nothing) {
  Judge j;
  const uint64_t first = j.post(Tag::kRelaxed, false, Use::kRead), strong = j.post(Tag::kStrong);
  j.read(first);
  j.answer(first);
  j.execute(strong);
  j.read(first);
  EXPECT_EQ(j.overtaken_by(first), 0u);
}

TEST(OrderModel, nobody_else_who_reads_there_counts) {
  Judge j;
  const uint64_t first = j.post(Tag::kRelaxed), strong = j.post(Tag::kStrong);
  j.execute(first);
  j.execute(strong);
  j.read(first);
  EXPECT_EQ(j.overtaken_by(first), 0u);
}

TEST(OrderModel, queues_do_not_order_each_other) {
  Judge j;
  const uint64_t first = j.post(Tag::kRelaxed, false, Use::kWritten, 7);
  const uint64_t strong = j.post(Tag::kStrong, false, Use::kWritten, 8);
  j.execute(strong);
  j.execute(first);
  EXPECT_EQ(j.overtaken_by(first), 0u);
}

TEST(OrderModel, no_result_comes_after_what_a_fence_holds_back) {
  for (const bool behind : {false, true}) {  // the fenced request begins, or the one behind it
    Judge j;
    const uint64_t read = j.post(Tag::kNo), fenced = j.post(Tag::kNo, true), last = j.post(Tag::kNo);
    j.execute(read);
    j.execute(behind ? last : fenced);
    j.answer(read);
    EXPECT_EQ(j.overtaken_by(read), behind ? last : fenced);
  }
}

TEST(OrderModel, a_fence_lets_results_come_before_it_and_concerns_nobody_behind_it) {
  Judge j;
  const uint64_t read = j.post(Tag::kNo), fenced = j.post(Tag::kNo, true), late = j.post(Tag::kNo),
                 last = j.post(Tag::kNo);
  j.answer(read);
  j.execute(fenced);
  j.execute(last);
  j.answer(late);
  EXPECT_EQ(j.overtaken_by(read), 0u);
  EXPECT_EQ(j.overtaken_by(late), 0u);
}

TEST(OrderModel, memory_is_free_for_others_at_the_end) {
  Judge j;
  const uint64_t first = j.post(Tag::kRelaxed);
  j.overtaken_by(first);
  const uint64_t other = j.post(Tag::kNo);
  j.model.own(other, 1, 100 * first, 8, Use::kWritten);
  j.model.touch(1, 100 * first, false);
  EXPECT_EQ(j.overtaken_by(other), 0u);
}

}  // namespace
}  // namespace ub::sim
