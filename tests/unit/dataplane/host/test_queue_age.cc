// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/queue_age.h"

#include <gtest/gtest.h>

#include <deque>

namespace ub::dpdk {
namespace {

constexpr uint32_t kPlaces = 8;

TEST(QueueAge, what_comes_out_first_may_be_as_old_as_the_queue) {
  QueueAge age(kPlaces, Instant{5});
  EXPECT_EQ(age.came_after(), Instant{5});
  age.taken(Instant{100}, kPlaces - 1);
  EXPECT_EQ(age.came_after(), Instant{5});
}

TEST(QueueAge, a_queue_that_was_seen_empty_has_newer_ones) {
  QueueAge age(kPlaces, Instant{5});
  age.seen_empty(Instant{100});
  EXPECT_EQ(age.came_after(), Instant{100});
  age.taken(Instant{200}, kPlaces - 1);
  EXPECT_EQ(age.came_after(), Instant{100});
}

// A queue that is always full, and a reader who is now slow, now fast: no frame is older than is said.
TEST(QueueAge, no_frame_is_older_than_is_said_and_a_busy_queue_does_not_look_old) {
  QueueAge age(kPlaces, Instant{0});
  std::deque<Instant> queue(kPlaces, Instant{0});
  Instant now{0};
  for (int i = 0; i < 1000; ++i) {
    now = now + nanoseconds(i % 7 == 0 ? 1000 : 10);
    const uint32_t burst = 1 + static_cast<uint32_t>(i) % 5;
    for (uint32_t k = 0; k < burst; ++k) {
      ASSERT_LE(age.came_after(), queue.front()) << i;
      queue.pop_front();
      queue.push_back(now);
    }
    age.taken(now, burst);
    if (i > 20) {
      EXPECT_LT(now - age.came_after(), nanoseconds(4000)) << i;
    }
  }
}

}  // namespace
}  // namespace ub::dpdk
