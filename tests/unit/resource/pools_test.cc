// SPDX-License-Identifier: Apache-2.0
//
// Tables of records, and what one of many may take of a pool.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/transport/test_state.h"

namespace ub {
namespace {

TEST(Slab, gives_each_record_once_and_never_number_0) {
  TestState t;
  std::set<uint32_t> given;
  for (uint32_t i = 0; i < 8; ++i) given.insert(t.s->jobs.alloc());
  EXPECT_EQ(given.size(), 8u);
  EXPECT_EQ(given.count(0), 0u);
  EXPECT_EQ(t.s->jobs.alloc(), 0u) << "full";
  EXPECT_EQ(t.s->jobs.in_use(), 8u);
}

TEST(Slab, the_record_freed_last_is_given_first) {
  TestState t;
  for (uint32_t i = 0; i < 8; ++i) t.s->jobs.alloc();
  t.s->jobs.free(3);
  t.s->jobs.free(5);
  EXPECT_EQ(t.s->jobs.in_use(), 6u);
  EXPECT_EQ(t.s->jobs.alloc(), 5u);
  EXPECT_EQ(t.s->jobs.alloc(), 3u);
  EXPECT_EQ(t.s->jobs.alloc(), 0u);
  EXPECT_EQ(t.s->jobs.high_water(), 8u);
}

// Whoever takes what he can gets half, and the next one half of what is left.
TEST(Share, one_gets_no_more_than_is_left_for_all_others) {
  TestState t;
  const auto take_all = [&] {
    uint32_t held = 0;
    while (has_share(t.s->jobs, held)) held += t.s->jobs.alloc() != 0;
    return held;
  };
  EXPECT_EQ(take_all(), 4u);
  EXPECT_EQ(take_all(), 2u);
  EXPECT_EQ(take_all(), 1u);
  EXPECT_EQ(take_all(), 1u);
  EXPECT_EQ(take_all(), 0u) << "the pool is empty";
}

TEST(Share, grows_when_others_give_back) {
  TestState t;
  for (uint32_t i = 0; i < 8; ++i) t.s->jobs.alloc();
  EXPECT_FALSE(has_share(t.s->jobs, 0));
  t.s->jobs.free(1);
  EXPECT_TRUE(has_share(t.s->jobs, 0));
  EXPECT_FALSE(has_share(t.s->jobs, 1));
}

}  // namespace
}  // namespace ub
