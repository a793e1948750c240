// SPDX-License-Identifier: Apache-2.0
//
// What a hop of C-AQM answers (UB Base Specification Rev 2.0, 6.6), by the numbers of the public ns-3 model of UB.
#include "lib/impair/caqm_hop.h"

#include <gtest/gtest.h>

namespace ub::impair {
namespace {

constexpr uint32_t kPacket = 1000;
constexpr uint64_t kTarget = 10 * kPacket;
constexpr uint64_t kPeriod = 500;  // ns

/// A hop that sends a byte in a nanosecond: 500 in a period. Packets come at the ends of periods.
struct Hop : CaqmHop {
  explicit Hop(CaqmHopConstants constants = {.bits_per_second = 8'000'000'000, .packet_bytes = kPacket},
               uint64_t seed = 1)
      : CaqmHop(constants, seed) {}

  /// Nothing has left since the last renewal, so all that came is queued.
  uint8_t next_period(uint64_t queued, uint8_t ecn, uint32_t bytes = kPacket) {
    return pass({now += kPeriod}, bytes, queued, ecn);
  }
  uint8_t at_once(uint64_t queued, uint8_t ecn) { return pass({now}, kPacket, queued, ecn); }
  /// The queue is as long as that when the credit is renewed. What came to it asked for nothing.
  void queue(uint64_t bytes) {
    pass({now}, static_cast<uint32_t>(bytes), 0, wire::kEcnNotCapable);
    pass({now += kPeriod}, 0, bytes, wire::kEcnNotCapable);
  }

  uint64_t now = 0;
};

TEST(CaqmHop, the_numbers_are_those_of_the_model) {
  constexpr CaqmHopConstants kUsual;
  EXPECT_EQ(kUsual.lambda, 0.5);
  EXPECT_EQ(kUsual.target_queue_packets, 10u);
  EXPECT_EQ(kUsual.period, nanoseconds(500));
  EXPECT_EQ(kUsual.mark_chance, 0.1);
}

TEST(CaqmHop, an_idle_hop_has_half_of_the_target_and_of_what_it_can_send) {
  Hop hop;
  EXPECT_EQ(hop.credit(), static_cast<int64_t>(kTarget + 500) / 2);
  hop.queue(0);
  EXPECT_EQ(hop.credit(), static_cast<int64_t>(kTarget + 500) / 2);
}

TEST(CaqmHop, what_is_queued_and_what_was_sent_leave_less_credit) {
  Hop hop;
  hop.queue(4000);
  EXPECT_EQ(hop.credit(), (500 + 10'000 - 4000) / 2);
  hop.next_period(3500, wire::kEcnNotCapable);  // 500 bytes left
  EXPECT_EQ(hop.credit(), (10'000 - 3500) / 2);
  hop.next_period(4500, wire::kEcnNotCapable);  // nothing did
  EXPECT_EQ(hop.credit(), (500 + 10'000 - 4500) / 2);
}

TEST(CaqmHop, grants_as_long_as_the_credit_covers_a_packet) {
  Hop hop;
  hop.queue(10'500 - 2 * 2500);  // a credit of 2500
  EXPECT_EQ(hop.credit(), 2500);
  EXPECT_EQ(hop.at_once(5500, wire::kEcnEct1), wire::kEcnEct1);
  EXPECT_EQ(hop.credit(), 1500);
  EXPECT_EQ(hop.at_once(6500, wire::kEcnEct1), wire::kEcnEct1);
  EXPECT_EQ(hop.credit(), 500);
  EXPECT_NE(hop.at_once(7500, wire::kEcnEct1), wire::kEcnEct1);
  EXPECT_EQ(hop.credit(), 500) << "what is not granted costs nothing";
}

TEST(CaqmHop, a_credit_of_just_one_packet_covers_it) {
  Hop exact, less;
  exact.queue(10'500 - 2 * 1000);
  less.queue(10'500 - 2 * 999);
  EXPECT_EQ(exact.credit(), 1000);
  EXPECT_EQ(exact.at_once(8500, wire::kEcnEct1), wire::kEcnEct1);
  EXPECT_EQ(less.credit(), 999);
  EXPECT_NE(less.at_once(8502, wire::kEcnEct1), wire::kEcnEct1);
}

TEST(CaqmHop, what_was_granted_in_a_period_counts_at_its_end_and_then_no_more) {
  Hop hop;
  hop.queue(0);
  EXPECT_EQ(hop.at_once(0, wire::kEcnEct1), wire::kEcnEct1);
  hop.next_period(1000, wire::kEcnNotCapable);
  EXPECT_EQ(hop.credit(), (500 + 10'000 - 1000 - 1000) / 2);
  hop.next_period(2000, wire::kEcnNotCapable);
  EXPECT_EQ(hop.credit(), (500 + 10'000 - 2000) / 2);
}

TEST(CaqmHop, marks_a_tenth_of_the_wishes_that_the_credit_does_not_cover_and_refuses_the_others) {
  Hop hop;
  hop.queue(10'000);  // a credit of 250
  int marked = 0;
  for (int i = 0; i < 10'000; ++i) {
    const uint8_t ecn = hop.at_once(10'000, wire::kEcnEct1);
    EXPECT_NE(ecn, wire::kEcnEct1);
    marked += ecn == wire::kEcnCe;
  }
  EXPECT_NEAR(marked, 1000, 100);
}

TEST(CaqmHop, marks_none_of_those_that_want_nothing_while_there_is_credit) {
  Hop hop;
  hop.queue(10'500);
  EXPECT_EQ(hop.credit(), 0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(hop.at_once(10'500, wire::kEcnEct0), wire::kEcnEct0);
}

TEST(CaqmHop, marks_all_if_the_queue_is_too_long) {
  Hop hop;
  hop.queue(10'502);
  EXPECT_EQ(hop.credit(), -1);
  EXPECT_EQ(hop.at_once(10'502, wire::kEcnEct0), wire::kEcnCe);
  EXPECT_EQ(hop.at_once(10'502, wire::kEcnEct1), wire::kEcnCe);
}

TEST(CaqmHop, leaves_alone_what_is_marked_or_cannot_be) {
  for (const uint64_t queued : {0, 10'000, 20'000}) {
    Hop hop;
    hop.queue(queued);
    const int64_t credit = hop.credit();
    EXPECT_EQ(hop.at_once(queued, wire::kEcnNotCapable), wire::kEcnNotCapable);
    EXPECT_EQ(hop.at_once(queued, wire::kEcnCe), wire::kEcnCe);
    EXPECT_EQ(hop.credit(), credit);
  }
}

TEST(CaqmHop, the_credit_is_renewed_once_in_a_period) {
  Hop hop;
  hop.queue(0);
  const int64_t credit = hop.credit();
  hop.pass({hop.now + kPeriod - 1}, 20'000, 0, wire::kEcnNotCapable);
  hop.pass({hop.now + kPeriod - 1}, kPacket, 20'000, wire::kEcnNotCapable);
  EXPECT_EQ(hop.credit(), credit);
  hop.pass({hop.now + kPeriod}, kPacket, 21'000, wire::kEcnNotCapable);
  EXPECT_LT(hop.credit(), 0);
}

// 1000 bytes in four periods are 250 in each.
TEST(CaqmHop, after_a_pause_it_counts_what_left_as_spread_evenly) {
  Hop hop;
  hop.queue(1000);
  hop.now += 3 * kPeriod;
  hop.next_period(0, wire::kEcnNotCapable);
  EXPECT_EQ(hop.credit(), (500 - 250 + 10'000) / 2);
}

TEST(CaqmHop, the_same_seed_chooses_the_same_packets) {
  Hop a, b, other({.bits_per_second = 8'000'000'000, .packet_bytes = kPacket}, 2);
  for (Hop* hop : {&a, &b, &other}) hop->queue(10'000);
  int differences = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint8_t ecn = a.at_once(10'000, wire::kEcnEct1);
    EXPECT_EQ(b.at_once(10'000, wire::kEcnEct1), ecn);
    differences += other.at_once(10'000, wire::kEcnEct1) != ecn;
  }
  EXPECT_GT(differences, 0);
}

TEST(CaqmHop, goes_by_the_numbers_that_it_is_given) {
  const CaqmHopConstants constants{.bits_per_second = 8'000'000'000,
                                   .packet_bytes = 100,
                                   .lambda = 0.25,
                                   .target_queue_packets = 4,
                                   .period = nanoseconds(1000),
                                   .mark_chance = 1};
  Hop hop(constants);
  EXPECT_EQ(hop.credit(), (1000 + 400) / 4);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(hop.at_once(0, wire::kEcnEct1), wire::kEcnEct1);
  EXPECT_EQ(hop.credit(), 50);
  EXPECT_EQ(hop.at_once(0, wire::kEcnEct1), wire::kEcnCe) << "a chance of 1";
  hop.pass({999}, 100, 0, wire::kEcnEct0);
  EXPECT_EQ(hop.credit(), 50);
}

}  // namespace
}  // namespace ub::impair
