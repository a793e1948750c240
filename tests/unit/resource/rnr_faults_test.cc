// SPDX-License-Identifier: Apache-2.0
// Messages that find no receive because an owner asked for it: each owner has a rule of its own.
#include "lib/transport/resource/rnr_faults.h"

#include <gtest/gtest.h>

namespace ub {
namespace {

fault::RnrRule next(uint32_t count, uint32_t jfr = 0) { return {.jfr = jfr, .choice = {.at_most = count}}; }

TEST(RnrFaults, are_none_at_first) {
  RnrFaults faults;
  EXPECT_FALSE(faults.any());
  EXPECT_FALSE(faults.refuses(0, 7));
  EXPECT_EQ(faults.refused(0), 0u);
}

TEST(RnrFaults, are_of_their_owner_and_jfr) {
  RnrFaults faults;
  ASSERT_EQ(faults.set(1, next(2)), Status::kOk);
  ASSERT_EQ(faults.set(2, next(1, 9)), Status::kOk);
  EXPECT_FALSE(faults.refuses(3, 7));
  EXPECT_TRUE(faults.refuses(1, 7));
  EXPECT_TRUE(faults.refuses(1, 8));
  EXPECT_FALSE(faults.refuses(1, 7));
  EXPECT_EQ(faults.refused(1), 2u);
  EXPECT_FALSE(faults.refuses(2, 7));
  EXPECT_TRUE(faults.refuses(2, 9));
  EXPECT_EQ(faults.refused(2), 1u);
}

TEST(RnrFaults, begin_again_when_they_are_set_again) {
  RnrFaults faults;
  faults.set(1, next(1));
  EXPECT_TRUE(faults.refuses(1, 7));
  faults.set(1, next(1));
  EXPECT_EQ(faults.refused(1), 0u);
  EXPECT_TRUE(faults.refuses(1, 7));
  EXPECT_EQ(faults.set(1, {}), Status::kOk);
  EXPECT_FALSE(faults.any());
  EXPECT_FALSE(faults.refuses(1, 7));
}

TEST(RnrFaults, are_of_a_bounded_number_of_owners_and_make_room_for_others) {
  RnrFaults faults;
  Owner owners = 0;
  while (faults.set(owners, next(1)) == Status::kOk) ++owners;
  EXPECT_EQ(owners, 64);
  EXPECT_EQ(faults.set(owners, next(1)), Status::kNoMemory);
  EXPECT_EQ(faults.set(5, next(2)), Status::kOk) << "it has one already";
  EXPECT_EQ(faults.set(6, {}), Status::kOk);
  EXPECT_EQ(faults.set(owners, next(1)), Status::kOk);
  EXPECT_TRUE(faults.refuses(owners, 1));
  EXPECT_FALSE(faults.refuses(6, 1));
  for (Owner other = 0; other < owners; ++other) EXPECT_EQ(faults.refuses(other, 1), other != 6) << other;
}

}  // namespace
}  // namespace ub
