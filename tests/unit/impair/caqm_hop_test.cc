// SPDX-License-Identifier: Apache-2.0
//
// What a hop of C-AQM answers (UB Base Specification Rev 2.0, 6.6). caqm_loop_test.cc has what comes of it.
#include "lib/impair/caqm_hop.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/unit/wire/wire_test_util.h"

namespace ub::impair {
namespace {

constexpr uint32_t kPacket = 1000;
constexpr int kMany = 10'000;

/// A hop that sends a byte in a nanosecond, and 10'000 bytes in a round trip.
struct Hop : CaqmHop {
  explicit Hop(uint64_t seed = 1, uint64_t bits_per_second = 8'000'000'000,
               const CaqmTarget& target = {.target_bytes = 10 * kPacket})
      : CaqmHop(bits_per_second, target, seed) {}

  uint8_t answer(uint64_t queued, uint8_t ecn) {
    wire::Cci cci = cci_of(ecn);
    pass(queued, cci);
    return congestion_code(cci);
  }
  /// How many of many such packets leave with that code point?
  int leave_with(uint8_t wanted, uint64_t queued, uint8_t ecn) {
    int found = 0;
    for (int i = 0; i < kMany; ++i) found += answer(queued, ecn) == wanted;
    return found;
  }
};

TEST(CaqmHop, its_usual_numbers) {
  EXPECT_EQ(kUsualCaqmPackets, 10u);
  EXPECT_EQ(CaqmTarget{}.round_trip, microseconds(10));
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
  const Hop slow(1, 1'000'000'000), fast;
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
  Hop hop;
  hop.set(8'000'000'000, {.target_bytes = 400, .round_trip = nanoseconds(400)});
  EXPECT_DOUBLE_EQ(hop.mark_chance(240), 0);
  EXPECT_DOUBLE_EQ(hop.mark_chance(400), 0.2);
  EXPECT_EQ(hop.leave_with(wire::kEcnEct0, 399, wire::kEcnEct1), 0);
  EXPECT_EQ(hop.leave_with(wire::kEcnEct1, 400, wire::kEcnEct1), 0);
}

// ---- with a CCI ----------------------------------------------------------------------------------------------------

constexpr wire::Cci kWish{.enable = true, .increase = true, .hint = 100};  // 3200 bytes

/// What becomes of a packet that is not marked.
CaqmAnswer pass_unmarked(uint64_t queued, wire::Cci& cci) {
  Hop hop;
  const wire::Cci before = cci;
  CaqmAnswer answer = hop.pass(queued, cci);
  while (answer == CaqmAnswer::kMark) answer = hop.pass(queued, cci = before);
  return answer;
}

TEST(CaqmHopWithHints, grants_all_that_fits_under_the_target) {
  for (const uint64_t queued : {0, 6000, 6800}) {
    wire::Cci cci = kWish;
    EXPECT_EQ(pass_unmarked(queued, cci), CaqmAnswer::kGrant);
    EXPECT_EQ(cci, kWish) << queued;
  }
}

TEST(CaqmHopWithHints, grants_a_part_where_no_more_fits) {
  struct {
    uint64_t queued;
    uint8_t granted;
  } constexpr kCases[] = {{6801, 100}, {6832, 99}, {8400, 50}, {9968, 1}, {9999, 1}};
  for (const auto& c : kCases) {
    wire::Cci cci = kWish, expected = kWish;
    expected.hint = c.granted;
    EXPECT_EQ(pass_unmarked(c.queued, cci), CaqmAnswer::kGrant);
    EXPECT_EQ(cci, expected) << c.queued;
  }
}

TEST(CaqmHopWithHints, refuses_from_the_target_on) {
  for (const uint64_t queued : {10'000, 20'000}) {
    wire::Cci cci = kWish;
    EXPECT_EQ(pass_unmarked(queued, cci), CaqmAnswer::kRefusal);
    EXPECT_EQ(cci, (wire::Cci{.enable = true})) << queued;
  }
}

TEST(CaqmHopWithHints, a_mark_takes_the_wish_with_it) {
  Hop hop;
  wire::Cci cci = kWish;
  while (hop.pass(9000, cci) != CaqmAnswer::kMark) cci = kWish;
  EXPECT_EQ(cci, (wire::Cci{.enable = true, .congested = true}));
}

TEST(CaqmHopWithHints, leaves_alone_what_asks_for_nothing_is_marked_or_wants_to_hear_nothing) {
  for (const wire::Cci before :
       {wire::Cci{.enable = true}, wire::Cci{.loc = true, .enable = true, .congested = true}, wire::Cci{}}) {
    for (const uint64_t queued : {0, 9000, 20'000}) {
      wire::Cci cci = before;
      EXPECT_EQ(pass_unmarked(queued, cci), CaqmAnswer::kNothing);
      EXPECT_EQ(cci, before);
    }
  }
}

// A second hop grants of what the first one left.
TEST(CaqmHopWithHints, the_narrowest_of_several_hops_decides) {
  wire::Cci cci = kWish;
  pass_unmarked(8400, cci);
  pass_unmarked(0, cci);
  EXPECT_EQ(cci.hint, 50);
  pass_unmarked(9200, cci);
  EXPECT_EQ(cci.hint, 25);
}

// FECN has light congestion where C-AQM has a wish; no hop makes that less.
TEST(CaqmHopWithHints, of_fecn_it_only_marks) {
  for (const uint8_t code : {wire::kEcnEct0, wire::kEcnEct1}) {
    const wire::Cci before{.mode = wire::CciMode::kFecn, .fecn = code};
    wire::Cci cci = before;
    EXPECT_EQ(pass_unmarked(20'000, cci), CaqmAnswer::kNothing);
    EXPECT_EQ(cci, before);
    Hop hop;
    while (hop.pass(20'000, cci) == CaqmAnswer::kNothing) {
    }
    EXPECT_EQ(cci, (wire::Cci{.mode = wire::CciMode::kFecn, .fecn = wire::kEcnCe}));
  }
}

// ---- frames --------------------------------------------------------------------------------------------------------

TEST(CaqmHopFrames, have_a_cci_or_a_code_point) {
  Hop hop;
  wire::Bytes cna(100);
  wire::cna_template({wire::IpAddress::from_v4(1), 1}, {wire::IpAddress::from_v4(2), 2}, 0).write(cna.data(), 0, 0);
  wire::write_cci(cna.data(), kWish);
  while (hop.pass(8400, cna) != CaqmAnswer::kGrant) wire::write_cci(cna.data(), kWish);
  wire::Cci cci;
  ASSERT_TRUE(wire::read_cci(cna, cci));
  EXPECT_EQ(cci.hint, 50);

  for (const auto& headers : {wire::template_v4(), wire::template_v6()}) {
    const wire::Bytes wish = wire::frame_of(headers, wire::Bytes(100), wire::kEcnEct1);
    wire::Bytes frame = wish;
    EXPECT_EQ(hop.pass(0, frame), CaqmAnswer::kGrant);
    EXPECT_EQ(frame, wish);
    while (hop.pass(10'000, frame) != CaqmAnswer::kRefusal) frame = wish;
    EXPECT_EQ(frame, wire::frame_of(headers, wire::Bytes(100), wire::kEcnEct0)) << "the checksum of IPv4, too";
  }
}

TEST(CaqmHopFrames, of_other_protocols_pass) {
  wire::Bytes frame(60, std::byte{0xFF});
  EXPECT_EQ(Hop().pass(1'000'000, frame), CaqmAnswer::kNothing);
  EXPECT_EQ(frame, wire::Bytes(60, std::byte{0xFF}));
}

}  // namespace
}  // namespace ub::impair
