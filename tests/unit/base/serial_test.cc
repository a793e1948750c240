// SPDX-License-Identifier: Apache-2.0
#include "lib/base/serial.h"

#include <gtest/gtest.h>

#include "lib/base/prng.h"

namespace ub {
namespace {

TEST(Serial, masks_its_value) {
  EXPECT_EQ(Psn(0x1234567).value(), 0x234567u);
  EXPECT_EQ(Tassn(0x12345).value(), 0x2345u);
  EXPECT_EQ(Psn().value(), 0u);
}

TEST(Serial, wraps_upwards_and_downwards) {
  EXPECT_EQ((Psn(0xFFFFFF) + 1).value(), 0u);
  EXPECT_EQ((Psn(0) - 1).value(), 0xFFFFFFu);
  EXPECT_EQ((Tassn(0xFFFF) + 3).value(), 2u);
  Psn p(0xFFFFFF);
  EXPECT_EQ((p++).value(), 0xFFFFFFu);
  EXPECT_EQ(p.value(), 0u);
  p -= 2;
  EXPECT_EQ((++p).value(), 0xFFFFFFu);
}

TEST(Serial, distance_counts_forward_across_the_wrap) {
  EXPECT_EQ(Psn(5).distance(Psn(0xFFFFFE)), 7u);
  EXPECT_EQ(Psn(0xFFFFFE).distance(Psn(5)), 0xFFFFF9u);
  EXPECT_EQ(Psn(5).signed_distance(Psn(0xFFFFFE)), 7);
  EXPECT_EQ(Psn(0xFFFFFE).signed_distance(Psn(5)), -7);
  EXPECT_EQ(Psn(9).signed_distance(Psn(9)), 0);
}

TEST(Serial, after_and_before_are_strict_and_opposite_within_half_the_circle) {
  EXPECT_TRUE(Psn(0).after(Psn(0xFFFFFF)));
  EXPECT_TRUE(Psn(0xFFFFFF).before(Psn(0)));
  EXPECT_FALSE(Psn(7).after(Psn(7)));
  EXPECT_FALSE(Psn(7).before(Psn(7)));
  EXPECT_TRUE(Psn(0x7FFFFF).after(Psn(0)));
  EXPECT_FALSE(Psn(0x800000).after(Psn(0)));  // exactly opposite: neither
  EXPECT_FALSE(Psn(0x800000).before(Psn(0)));
  EXPECT_EQ(Psn(0x800000).signed_distance(Psn(0)), -0x800000);
}

TEST(Serial, laws_hold_for_random_pairs) {
  Prng rng(1);
  for (int i = 0; i < 100000; ++i) {
    const Tassn a(rng.next_u32()), b(rng.next_u32());
    const int32_t d = a.signed_distance(b);
    EXPECT_EQ(b + d, a);
    EXPECT_EQ(b + a.distance(b), a);
    EXPECT_EQ(a.after(b), d > 0);
    if (d != -0x8000) {
      EXPECT_EQ(a.before(b), d < 0);
    }
  }
}

TEST(Serial, is_as_small_as_its_number) {
  EXPECT_EQ(sizeof(Psn), 4u);
  EXPECT_EQ(sizeof(Tassn), 2u);
}

}  // namespace
}  // namespace ub
