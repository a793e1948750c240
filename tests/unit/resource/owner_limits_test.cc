// SPDX-License-Identifier: Apache-2.0
//
// What the send queues of one owner share: his rate, and the time that elements without a packet may take.
#include "lib/transport/resource/owner_limits.h"

#include <gtest/gtest.h>

namespace ub {
namespace {

TEST(OwnerLimits, a_request_gives_back_the_price_of_the_first_element_that_was_passed) {
  const Instant now{seconds(1).ns};
  OwnerLimits paid, passed;
  for (OwnerLimits* limits : {&paid, &passed}) limits->passing.charge(now, Allowance::kMost);
  paid.charge(now, 100);
  for (OwnerLimits* limits : {&paid, &passed}) limits->passing.charge(now, OwnerLimits::kPassedFirst);
  EXPECT_TRUE(paid.passing.has_any(now));
  EXPECT_FALSE(passed.passing.has_any(now));
}

TEST(OwnerLimits, a_request_is_charged_to_the_rate) {
  const Instant now{seconds(1).ns};
  OwnerLimits limits;
  limits.pacer.bytes_per_second = 1'000'000'000;
  limits.charge(now, 10'000'000 - cc::Pacer::kRequestBytes);
  EXPECT_EQ(limits.pacer.next, now + milliseconds(10));
}

}  // namespace
}  // namespace ub
