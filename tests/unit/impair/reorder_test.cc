// SPDX-License-Identifier: Apache-2.0
//
// Late frames: overtaken by so many later ones as the spec says, at any rate.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/impair/link_rig.h"

namespace ub::impair {
namespace {

// By how many later frames each one was overtaken.
std::map<uint64_t, uint64_t> overtakers(const std::vector<Out>& out) {
  std::map<uint64_t, uint64_t> by;
  for (size_t i = 0; i < out.size(); ++i) {
    by[out[i].number] = 0;
    for (size_t earlier = i > 300 ? i - 300 : 0; earlier < i; ++earlier)
      by[out[i].number] += out[earlier].number > out[i].number;
  }
  return by;
}

TEST(ImpairReorder, every_second_frame_is_overtaken_by_one_to_n_later_ones) {
  LinkRig rig("rate=100G reorder=64");
  rig.offer_many(10'000);
  const std::map<uint64_t, uint64_t> by = overtakers(rig.take());
  ASSERT_EQ(by.size(), 10'000u);
  EXPECT_EQ(rig.link.counts().reordered, 5000u);
  uint64_t most = 0, passed = 0;
  for (uint64_t i = 0; i < 9900; ++i) {  // those at the end have nobody who could pass them
    if (i % 2 == 0) {
      EXPECT_EQ(by.at(i), 0u) << i;
    } else {
      EXPECT_LE(by.at(i), 64u) << i;
      passed += by.at(i) != 0;
      most = std::max(most, by.at(i));
    }
  }
  EXPECT_GT(passed, 4800u);
  EXPECT_GT(most, 48u);
}

TEST(ImpairReorder, the_order_does_not_depend_on_rate_or_size) {
  const auto order = [](const char* text, size_t bytes) {
    LinkRig rig(text);
    rig.offer_many(1000, {}, bytes);
    std::vector<uint64_t> numbers;
    for (const Out& out : rig.take()) numbers.push_back(out.number);
    numbers.resize(800);  // before those at the end, whom nobody passes
    return numbers;
  };
  EXPECT_EQ(order("rate=100G reorder=16 wait=1s", 64), order("rate=1M delay=1us reorder=16 wait=1s", 1500));
}

TEST(ImpairReorder, a_frame_that_is_passed_by_one_changes_places_with_it) {
  LinkRig rig("rate=800M reorder=1");
  rig.offer_many(4);
  const std::vector<Out> expected = {{0, Instant{1000}}, {2, Instant{3000}}, {1, Instant{3000}}};
  EXPECT_EQ(rig.take(Instant{4000}), expected);
  EXPECT_EQ(rig.take(), (std::vector<Out>{{3, Instant{104'000}}}));
}

TEST(ImpairReorder, a_share_of_the_frames_can_be_late) {
  LinkRig rig("reorder=4 late=10%");
  rig.offer_many(100'000);
  EXPECT_NEAR(static_cast<double>(rig.link.counts().reordered), 10'000, 500);
}

TEST(ImpairReorder, without_others_a_late_frame_leaves_after_its_wait) {
  LinkRig rig("delay=5us reorder=64 late=100% wait=30us");
  rig.offer({}, 0);
  EXPECT_EQ(rig.link.next_due(), Instant{35'000});
  EXPECT_EQ(rig.take(Instant{35'000}).size(), 1u);
}

TEST(ImpairReorder, by_default_the_wait_is_as_long_as_the_others_take_and_100_us_at_least) {
  LinkRig slow("rate=8M reorder=64 late=100%");  // 100 bytes: 100 us
  slow.offer({}, 0);
  EXPECT_EQ(slow.link.next_due(), Instant{} + microseconds(100) + microseconds(6400));
  LinkRig quick("rate=800G reorder=64 late=100%");
  quick.offer({}, 0);
  EXPECT_EQ(quick.link.next_due(), Instant{} + nanoseconds(1) + microseconds(100));
}

TEST(ImpairReorder, a_frame_that_waited_long_enough_leaves_in_front_of_those_that_come_then) {
  LinkRig rig("delay=1us reorder=1 wait=5us");
  rig.offer_many(2);              // 1 is late
  rig.offer(Instant{10'000}, 2);  // too late to pass it
  rig.offer(Instant{10'000}, 3);  // late
  rig.offer(Instant{10'100}, 4);
  const std::vector<Out> expected = {
      {0, Instant{1000}}, {1, Instant{6000}}, {2, Instant{11'000}}, {4, Instant{11'100}}, {3, Instant{11'100}}};
  EXPECT_EQ(rig.take(), expected);
}

TEST(ImpairReorder, no_frame_gets_stuck) {
  LinkRig rig("rate=1G reorder=32 late=60% loss=10% duplicate=10%");
  for (uint64_t i = 0; i < 5000; ++i) rig.offer(Instant{i * 700}, i);
  const Counts& counts = rig.link.counts();
  EXPECT_EQ(rig.take().size(), 5000 - counts.lost_random + counts.duplicated);
  EXPECT_EQ(rig.link.under_way(), 0u);
}

// ---- changes ----

TEST(ImpairReorder, a_late_frame_waits_no_longer_once_it_is_not_to_be_late) {
  LinkRig rig("delay=5us reorder=64 late=100% wait=1000000s");
  rig.offer_many(3);
  rig.link.set(Instant{1000}, script_of("delay=5us"));
  rig.offer(Instant{2000}, 3);
  const std::vector<Out> expected = {{0, Instant{6000}}, {1, Instant{6000}}, {2, Instant{6000}}, {3, Instant{7000}}};
  EXPECT_EQ(rig.take(), expected);
}

TEST(ImpairReorder, a_change_keeps_a_frame_behind_those_that_passed_it_already) {
  LinkRig rig("rate=8k reorder=1 wait=1000s");  // 100 bytes: 100 ms
  rig.offer_many(4);                            // 1 is late, and 2 passes it
  rig.link.set({}, script_of("rate=800k"));
  const std::vector<Out> expected = {{0, Instant{} + milliseconds(1)},
                                     {2, Instant{} + milliseconds(3)},
                                     {1, Instant{} + milliseconds(3)},
                                     {3, Instant{} + milliseconds(4)}};
  EXPECT_EQ(rig.take(), expected);
}

// ---- memory ----

// The entries that are left after so many frames, one each microsecond.
size_t planned_after(std::string_view text, uint64_t frames) {
  LinkRig rig(text);
  for (uint64_t i = 0; i < frames; ++i) {
    rig.offer(Instant{i * 1000}, i);
    rig.take(Instant{i * 1000});
  }
  EXPECT_LE(rig.link.under_way(), 200u) << text;
  return rig.link.planned();
}

TEST(ImpairReorder, memory_does_not_grow_where_every_frame_is_late_and_none_passes) {
  EXPECT_LE(planned_after("reorder=64 late=100% wait=10us", 100'000), 1000u);
}

TEST(ImpairReorder, memory_does_not_grow_where_late_frames_are_passed_long_before_their_wait_is_over) {
  EXPECT_LE(planned_after("delay=100us reorder=64 wait=1000000s", 100'000), 1000u);
}

}  // namespace
}  // namespace ub::impair
