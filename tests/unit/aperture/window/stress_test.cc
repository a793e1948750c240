// SPDX-License-Identifier: Apache-2.0
//
// Threads, small caches and random accesses against a model; tests/tsan/window_stress does it for longer.
#include "tests/unit/aperture/window/stress.h"

#include <gtest/gtest.h>

namespace ub::aperture::test {
namespace {

TEST(WindowStress, threads_on_shared_pages__lose_nothing) {
  Stress stress({.seed = 1});
  EXPECT_EQ(stress.run(), "");
  EXPECT_GT(stress.counters(0).evicted_pages, 100u);
}

TEST(WindowStress, two_windows__write_different_bytes_of_the_same_pages) {
  Stress stress({.seed = 2, .threads = 4, .windows = 2, .policy = WritePolicy::kWriteBack});
  EXPECT_EQ(stress.run(), "");
  EXPECT_GT(stress.counters(1).written_back_pages, 100u);
}

TEST(WindowStress, failures__lose_nothing_either) {
  Stress stress({.seed = 3, .threads = 3, .windows = 2, .paths = 1, .failures = true});
  EXPECT_EQ(stress.run(), "");
}

TEST(WindowStress, one_thread__on_its_own) {
  Stress stress({.seed = 4, .threads = 1, .paths = 1, .operations = 3000});
  EXPECT_EQ(stress.run(), "");
}

}  // namespace
}  // namespace ub::aperture::test
