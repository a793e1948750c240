// SPDX-License-Identifier: Apache-2.0
#include "dataplane/ownership.h"

#include <gtest/gtest.h>

namespace ub {
namespace {

// A signal handler that calls the data path while its thread owns the Core finds it taken, however often that thread
// owned it before: from some number on it is the biased owner.
TEST(Ownership, a_thread_that_owns_does_not_get_it_twice) {
  Ownership ownership;
  for (int times = 0; times < 2000; ++times) {
    ASSERT_TRUE(ownership.try_own()) << times;
    ASSERT_FALSE(ownership.try_own()) << times;
    ASSERT_FALSE(ownership.try_own()) << times;
    ownership.release();
  }
}

}  // namespace
}  // namespace ub
