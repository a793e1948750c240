// SPDX-License-Identifier: Apache-2.0
// How long a wait may take when signals interrupt it. poll() and the clock are the test's: poll() takes a moment of
// this clock, and says that a signal came.
#include "lib/urma/wait.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "lib/urma/backends/placement.h"
#include "lib/urma/library.h"

namespace {

constexpr int kMomentMs = 3;

std::vector<int> limits;  // that poll() was called with
size_t signals = 0;       // that come, one in each call
int64_t now_ms = 1000;

}  // namespace

extern "C" int clock_gettime(clockid_t, timespec* now) noexcept {
  *now = {now_ms / 1000, now_ms % 1000 * 1'000'000};
  return 0;
}

extern "C" int poll(pollfd* entries, nfds_t, int ms) {
  limits.push_back(ms);
  entries->revents = 0;
  if (limits.size() > signals) return 0;
  now_ms += kMomentMs;
  errno = EINTR;
  return -1;
}

namespace ub::urma {

namespace {

std::vector<int> limits_of(int time_out, size_t interruptions) {
  EXPECT_EQ(Library::get().start(0), URMA_FAIL);
  limits.clear();
  signals = interruptions;
  errno = EDOM;
  EXPECT_TRUE(wait_readable(0, time_out, WaitFor::kOther));
  EXPECT_EQ(errno, EDOM);
  return limits;
}

TEST(Wait, what_is_left_after_a_signal_is_less_by_the_time_before_it) {
  const std::vector<int> left = limits_of(60'000, 5);
  ASSERT_EQ(left.size(), 6u);
  EXPECT_EQ(left[0], 60'000);
  for (size_t i = 1; i < left.size(); ++i) EXPECT_EQ(left[i], left[i - 1] - kMomentMs) << i;
}

TEST(Wait, a_signal_after_the_end_leaves_nothing) {
  EXPECT_EQ(limits_of(1, 1), (std::vector{1, 0}));
  EXPECT_EQ(limits_of(0, 1), (std::vector{0, 0}));
}

TEST(Wait, without_a_limit_there_is_none_after_a_signal) { EXPECT_EQ(limits_of(-1, 2), (std::vector{-1, -1, -1})); }

}  // namespace
}  // namespace ub::urma
