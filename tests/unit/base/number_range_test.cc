// SPDX-License-Identifier: Apache-2.0
#include "lib/base/number_range.h"

#include <gtest/gtest.h>

namespace ub {
namespace {

TEST(NumberRange, each_number_is_in_one_range_and_each_range_counts_from_0) {
  NumberRanges all(1);
  const NumberRange a = all.take(3), none = all.take(0), b = all.take(2);
  EXPECT_EQ(all.end(), 6u);
  for (uint32_t number = 0; number < 8; ++number) {
    EXPECT_EQ(a.contains(number), number >= 1 && number < 4) << number;
    EXPECT_EQ(b.contains(number), number >= 4 && number < 6) << number;
    EXPECT_FALSE(none.contains(number)) << number;
  }
  EXPECT_EQ(b.of(0), 4u);
  EXPECT_EQ(b.of(1), 5u);
  EXPECT_EQ(b.index_of(5), 1u);
}

}  // namespace
}  // namespace ub
