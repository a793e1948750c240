// SPDX-License-Identifier: Apache-2.0
//
// No test asks how late an alarm rings: it waits for the ring, however long that takes, and looks at the clock only to
// see that it did not come too soon. What must not ring is asked of the kernel's timer itself.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

#include <cstdint>
#include <string>

#include "dataplane/alarm.h"

namespace ub {
namespace {

constexpr Duration kShort = milliseconds(2);
constexpr Duration kHour = seconds(3600);

Instant real_time() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Instant{static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec)};
}

class AlarmTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    ASSERT_TRUE(alarm_.create(&error)) << error;
  }

  // The timer of the kernel, in nanoseconds from now; 0: none.
  int64_t left() const {
    itimerspec spec{};
    EXPECT_EQ(timerfd_gettime(alarm_.fd(), &spec), 0);
    EXPECT_EQ(spec.it_interval.tv_sec + spec.it_interval.tv_nsec, 0) << "it rings once";
    return spec.it_value.tv_sec * 1'000'000'000 + spec.it_value.tv_nsec;
  }
  bool is_armed() const { return left() != 0; }
  bool rang() const { return wait(0); }
  bool wait_for_ring() const { return wait(-1); }

  Alarm alarm_;

 private:
  bool wait(int milliseconds) const {
    pollfd p{alarm_.fd(), POLLIN, 0};
    return poll(&p, 1, milliseconds) == 1;
  }
};

TEST_F(AlarmTest, made__neither_armed_nor_rung) {
  EXPECT_FALSE(is_armed());
  EXPECT_FALSE(rang());
}

TEST_F(AlarmTest, set__rings_at_the_time_and_not_before) {
  const Instant now = real_time(), due = now + kShort;
  alarm_.set(now, due);
  EXPECT_EQ(alarm_.rings_at(), due);
  ASSERT_TRUE(wait_for_ring());
  EXPECT_GE(real_time(), due);
}

TEST_F(AlarmTest, set_of_seconds__the_timer_has_the_seconds_too) {
  const Instant now = real_time();
  alarm_.set(now, now + kHour + milliseconds(500));
  EXPECT_LE(left(), (kHour + milliseconds(500)).ns);
  EXPECT_GT(left(), (kHour / 2).ns);
}

TEST_F(AlarmTest, set_later__the_earlier_one_stays_and_rings) {
  const Instant now = real_time(), early = now + kShort;
  alarm_.set(now, early);
  alarm_.set(now, now + kHour);
  EXPECT_EQ(alarm_.rings_at(), early);
  EXPECT_LE(left(), kShort.ns) << "armed anew";
  EXPECT_TRUE(wait_for_ring());
}

TEST_F(AlarmTest, set_for_the_same_time__stays) {
  const Instant now = real_time(), due = now + kHour;
  alarm_.set(now, due);
  const int64_t before = left();
  alarm_.set(now + kHour / 2, due);  // would be armed for half of the time
  EXPECT_GT(left(), (kHour / 4 * 3).ns);
  EXPECT_LE(left(), before);
}

TEST_F(AlarmTest, set_earlier__rings_earlier) {
  const Instant now = real_time();
  alarm_.set(now, now + kHour);
  alarm_.set(now, now + kShort);
  EXPECT_EQ(alarm_.rings_at(), now + kShort);
  ASSERT_TRUE(wait_for_ring());
}

TEST_F(AlarmTest, set_later_after_it_rang__armed_again) {
  Instant now = real_time();
  alarm_.set(now, now + kShort);
  ASSERT_TRUE(wait_for_ring());
  alarm_.silence();
  now = real_time();
  alarm_.set(now, now + kHour);
  EXPECT_EQ(alarm_.rings_at(), now + kHour);
  EXPECT_TRUE(is_armed());
  EXPECT_FALSE(rang());
}

// By the clock of who sets it, the time of the old one is over, though nobody looked whether it rang.
TEST_F(AlarmTest, set_at_the_time_of_the_old_one__armed_again) {
  const Instant now = real_time(), old = now + kShort;
  alarm_.set(now, old);
  alarm_.set(old, old + kHour);
  EXPECT_EQ(alarm_.rings_at(), old + kHour);
  EXPECT_GT(left(), (kHour / 2).ns);
}

// The clock of who sets it need not run as fast as the kernel's: by it, the alarm rang too soon.
TEST_F(AlarmTest, set_by_a_clock_that_lags_after_it_rang__armed_again) {
  const Instant now = real_time(), due = now + kShort;
  alarm_.set(now, due);
  ASSERT_TRUE(wait_for_ring());
  EXPECT_EQ(alarm_.rings_at(), due);
  alarm_.silence();
  EXPECT_EQ(alarm_.rings_at(), due) << "or rang";
  alarm_.set(due - nanoseconds(1000), due);
  ASSERT_TRUE(is_armed() || rang()) << "nobody wakes who sleeps until then";
  EXPECT_TRUE(wait_for_ring());
}

TEST_F(AlarmTest, set_for_never__arms_nothing) {
  alarm_.set(real_time(), Instant::never());
  EXPECT_FALSE(is_armed());
  EXPECT_FALSE(rang());
}

TEST_F(AlarmTest, set_for_never__leaves_what_is_armed) {
  const Instant now = real_time();
  alarm_.set(now, now + kHour);
  alarm_.set(now, Instant::never());
  EXPECT_EQ(alarm_.rings_at(), now + kHour);
  EXPECT_TRUE(is_armed());
}

TEST_F(AlarmTest, silence__until_the_next_ring) {
  Instant now = real_time();
  alarm_.set(now, now + kShort);
  ASSERT_TRUE(wait_for_ring());
  EXPECT_TRUE(rang()) << "it rings on until it is silenced";
  alarm_.silence();
  EXPECT_FALSE(rang());
  now = real_time();
  alarm_.set(now, now + kShort);
  EXPECT_TRUE(wait_for_ring());
}

TEST_F(AlarmTest, silence_before_it_rang__returns_and_leaves_it_armed) {
  const Instant now = real_time();
  alarm_.set(now, now + kHour);
  alarm_.silence();
  EXPECT_TRUE(is_armed());
}

}  // namespace
}  // namespace ub
