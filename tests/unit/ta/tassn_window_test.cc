// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/tassn_window.h"

#include <gtest/gtest.h>

namespace ub::ta {
namespace {

TEST(TassnWindow, moves_over_what_is_done_in_any_order) {
  TassnWindow w;
  EXPECT_EQ(w.first(), Tassn(0));
  w.mark(Tassn(1));
  w.mark(Tassn(3));
  EXPECT_EQ(w.first(), Tassn(0));
  w.mark(Tassn(0));
  EXPECT_EQ(w.first(), Tassn(2));
  w.mark(Tassn(2));
  EXPECT_EQ(w.first(), Tassn(4));
}

TEST(TassnWindow, spans_256_numbers_and_ignores_others) {
  TassnWindow w;
  for (uint32_t n = 0; n < 10; ++n) w.mark(Tassn(n));
  EXPECT_TRUE(w.spans(Tassn(10)));
  EXPECT_TRUE(w.spans(Tassn(10 + 255)));
  EXPECT_FALSE(w.spans(Tassn(10 + 256)));
  EXPECT_FALSE(w.spans(Tassn(9)));
  w.mark(Tassn(10 + 256));
  w.mark(Tassn(9));
  w.mark(Tassn(10));
  EXPECT_EQ(w.first(), Tassn(11)) << "neither of the two left a mark";
  for (uint32_t n = 11; n < 10 + 256; ++n) w.mark(Tassn(n));
  EXPECT_EQ(w.first(), Tassn(10 + 256));
}

TEST(TassnWindow, goes_round_all_numbers) {
  TassnWindow w;
  const uint32_t all = 3 * (Tassn::kMask + 1);
  for (uint32_t n = 0; n < all; n += 2) {
    w.mark(Tassn(n + 1));
    ASSERT_EQ(w.first(), Tassn(n));
    w.mark(Tassn(n));
    ASSERT_EQ(w.first(), Tassn(n + 2));
  }
}

}  // namespace
}  // namespace ub::ta
