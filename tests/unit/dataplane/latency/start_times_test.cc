// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "dataplane/note_listeners.h"
#include "dataplane/start_times.h"

namespace ub {
namespace {

TEST(StartTimes, what_began_is_found_until_it_is_taken) {
  StartTimes table(64);
  EXPECT_TRUE(table.put({7, 3}, {100, 5}));
  EXPECT_EQ(table.find({7, 3})->ns, 100u);
  EXPECT_EQ(table.take({7, 3})->what, 5u);
  EXPECT_FALSE(table.take({7, 3}));
}

TEST(StartTimes, neither_another_owner_nor_another_number_is_taken_for_it) {
  StartTimes table(64);
  table.put({7, 3}, {100});
  EXPECT_FALSE(table.find({8, 3}));
  EXPECT_FALSE(table.find({7, 3 + 16}));  // the same place in each bank
}

TEST(StartTimes, the_same_thing_that_begins_again_takes_its_own_place) {
  StartTimes table(64);
  table.put({7, 3}, {100});
  EXPECT_TRUE(table.put({7, 3}, {200}));
  EXPECT_EQ(table.take({7, 3})->ns, 200u);
  EXPECT_FALSE(table.take({7, 3}));
}

TEST(StartTimes, numbers_in_a_row_do_not_meet) {
  StartTimes table(256);
  for (uint32_t n = 0; n < 64; ++n) EXPECT_TRUE(table.put({7, UINT32_MAX - 20 + n}, {n + 1})) << n;
  for (uint32_t n = 0; n < 64; ++n) EXPECT_EQ(table.take({7, UINT32_MAX - 20 + n})->ns, n + 1);
}

TEST(StartTimes, in_a_full_table_the_oldest_gives_way) {
  StartTimes table(4);  // one place in each bank
  for (uint32_t n = 1; n <= 4; ++n) EXPECT_TRUE(table.put({n, n}, {n * 10}));
  EXPECT_FALSE(table.put({5, 5}, {50}));
  EXPECT_FALSE(table.find({1, 1}));
  for (uint32_t n = 2; n <= 5; ++n) EXPECT_EQ(table.find({n, n})->ns, n * 10) << n;
}

// ---- who hears of notes ------------------------------------------------------------------------------------------

class Hearer final : public NoteListener {
 public:
  explicit Hearer(size_t most) : most_(most) {}
  bool hear(uint64_t, const Note&) override { return ++heard < most_; }
  size_t heard = 0;

 private:
  size_t most_;
};

TEST(NoteListeners, each_hears_until_it_wants_no_more) {
  NoteListeners all;
  Hearer soon_full(2), other(100);
  all.add(soon_full);
  all.add(other);
  all.add(other);  // once is enough
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(all.tell(1, {Stage::kPosted, 1}));
  EXPECT_EQ(soon_full.heard, 2u);
  EXPECT_EQ(other.heard, 5u);
  all.remove(other);
  EXPECT_FALSE(all.any());
}

}  // namespace
}  // namespace ub
