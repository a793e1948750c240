// SPDX-License-Identifier: Apache-2.0
//
// What a hop of C-AQM answers (UB Base Specification Rev 2.0, 6.6). tests/unit/cc/caqm_loop_test.cc has what comes of
// it.
#include "lib/impair/caqm_hop.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace ub::impair {
namespace {

constexpr uint32_t kPacket = 1000;
constexpr int kMany = 10'000;

/// A hop that sends a byte in a nanosecond, and 10'000 bytes in a round trip.
struct Hop : CaqmHop {
  explicit Hop(uint64_t seed = 1,
               CaqmHopConstants constants = {.bits_per_second = 8'000'000'000, .packet_bytes = kPacket})
      : CaqmHop(constants, seed) {}

  uint8_t answer(uint64_t queued, uint8_t ecn) { return pass(queued, ecn); }
  /// How many of many such packets leave with that code point?
  int leave_with(uint8_t wanted, uint64_t queued, uint8_t ecn) {
    int found = 0;
    for (int i = 0; i < kMany; ++i) found += answer(queued, ecn) == wanted;
    return found;
  }
};

TEST(CaqmHop, its_usual_numbers) {
  constexpr CaqmHopConstants kUsual;
  EXPECT_EQ(kUsual.packet_bytes, 4158u);
  EXPECT_EQ(kUsual.target_queue_packets, 10u);
  EXPECT_EQ(kUsual.unmarked_queue_packets, 6u);
  EXPECT_EQ(kUsual.round_trip, microseconds(10));
}

TEST(CaqmHop, an_idle_hop_grants_every_wish) { EXPECT_EQ(Hop().leave_with(wire::kEcnEct1, 0, wire::kEcnEct1), kMany); }

TEST(CaqmHop, a_queue_of_six_packets_is_not_marked) {
  Hop hop;
  for (const uint64_t queued : {0, 3000, 6000}) {
    EXPECT_LE(hop.mark_chance(queued), 0);
    EXPECT_EQ(hop.leave_with(wire::kEcnEct1, queued, wire::kEcnEct1), kMany);
    EXPECT_EQ(hop.leave_with(wire::kEcnEct0, queued, wire::kEcnEct0), kMany);
  }
}

TEST(CaqmHop, the_chance_of_a_mark_is_the_excess_as_a_part_of_what_is_under_way) {
  const Hop hop;
  EXPECT_DOUBLE_EQ(hop.mark_chance(7000), 1000. / 17'000);
  EXPECT_DOUBLE_EQ(hop.mark_chance(10'000), 4000. / 20'000);
  EXPECT_DOUBLE_EQ(hop.mark_chance(90'000), 84'000. / 100'000);
  EXPECT_LE(hop.mark_chance(UINT64_MAX), 1);
}

TEST(CaqmHop, marks_wishes_and_other_packets_equally_often) {
  Hop hop;
  EXPECT_NEAR(hop.leave_with(wire::kEcnCe, 10'000, wire::kEcnEct0), kMany / 5, 200);
  EXPECT_NEAR(hop.leave_with(wire::kEcnCe, 10'000, wire::kEcnEct1), kMany / 5, 200);
}

TEST(CaqmHop, a_longer_queue_or_a_slower_hop_marks_more) {
  const Hop slow(1, {.bits_per_second = 1'000'000'000, .packet_bytes = kPacket}), fast;
  EXPECT_GT(fast.mark_chance(20'000), fast.mark_chance(10'000));
  EXPECT_GT(slow.mark_chance(10'000), fast.mark_chance(10'000));
}

TEST(CaqmHop, grants_what_it_does_not_mark_until_the_queue_is_as_long_as_it_should_be) {
  Hop hop;
  EXPECT_EQ(hop.leave_with(wire::kEcnEct0, 9'999, wire::kEcnEct1), 0);
  EXPECT_NEAR(hop.leave_with(wire::kEcnEct1, 9'999, wire::kEcnEct1), kMany * 4 / 5, 200);
}

TEST(CaqmHop, refuses_every_wish_from_there_on) {
  Hop hop;
  EXPECT_EQ(hop.leave_with(wire::kEcnEct1, 10'000, wire::kEcnEct1), 0);
  EXPECT_NEAR(hop.leave_with(wire::kEcnEct0, 10'000, wire::kEcnEct1), kMany * 4 / 5, 200);
}

TEST(CaqmHop, never_grants_what_was_not_asked_for) {
  for (const uint64_t queued : {0, 8000, 20'000}) {
    EXPECT_EQ(Hop().leave_with(wire::kEcnEct1, queued, wire::kEcnEct0), 0);
  }
}

TEST(CaqmHop, leaves_alone_what_is_marked_or_cannot_be) {
  for (const uint64_t queued : {0, 8000, 20'000, 1'000'000}) {
    Hop hop;
    EXPECT_EQ(hop.leave_with(wire::kEcnNotCapable, queued, wire::kEcnNotCapable), kMany);
    EXPECT_EQ(hop.leave_with(wire::kEcnCe, queued, wire::kEcnCe), kMany);
  }
}

TEST(CaqmHop, the_same_seed_chooses_the_same_packets) {
  Hop a, b, other(2);
  int differences = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint8_t ecn = a.answer(10'000, wire::kEcnEct0);
    EXPECT_EQ(b.answer(10'000, wire::kEcnEct0), ecn);
    differences += other.answer(10'000, wire::kEcnEct0) != ecn;
  }
  EXPECT_GT(differences, 0);
}

TEST(CaqmHop, goes_by_the_numbers_that_it_is_given) {
  Hop hop(1, {.bits_per_second = 8'000'000'000,
              .packet_bytes = 100,
              .target_queue_packets = 4,
              .unmarked_queue_packets = 2,
              .round_trip = nanoseconds(600)});
  EXPECT_DOUBLE_EQ(hop.mark_chance(200), 0);
  EXPECT_DOUBLE_EQ(hop.mark_chance(400), 0.2);
  EXPECT_EQ(hop.leave_with(wire::kEcnEct0, 399, wire::kEcnEct1), 0);
  EXPECT_EQ(hop.leave_with(wire::kEcnEct1, 400, wire::kEcnEct1), 0);
}

}  // namespace
}  // namespace ub::impair
