// SPDX-License-Identifier: Apache-2.0
//
// What a receiver adds up of the code points of IP, and what its acknowledgements say of that (UB Base Specification
// Rev 2.0, 6.2.2, 6.6).
#include "lib/transport/cc/heard.h"

#include <gtest/gtest.h>

#include "lib/transport/cc/feedback.h"

namespace ub::cc {
namespace {

constexpr auto kLdcp = wire::CcAlgorithm::kLdcp;
constexpr auto kCaqm = wire::CcAlgorithm::kCaqm;
constexpr uint32_t kGrant = 1024, kUnits = kGrant / wire::kCaqmHintUnitBytes;

wire::CetphCaqm caqm(uint32_t words, bool increase, uint8_t marks, uint16_t hint) {
  return {.ack_seq = words, .increase = increase, .marks = marks, .hint = hint};
}

// ---- totals ----------------------------------------------------------------------------------------------------

TEST(Heard, begins_with_nothing) {
  const Heard h{};
  EXPECT_EQ(h.ldcp(), wire::CetphLdcp{});
  EXPECT_EQ(h.caqm(), wire::CetphCaqm{});
}

TEST(Heard, each_packet_is_rounded_up_to_a_word) {
  for (auto agreed : {kLdcp, kCaqm}) {
    Heard h;
    h.accepted(agreed, 7, wire::kEcnEct0);
    EXPECT_EQ(h.received_words, 4u);
    h.accepted(agreed, 7, wire::kEcnEct0);
    EXPECT_EQ(h.received_words, 8u);
    h.accepted(agreed, 1000, wire::kEcnEct1);
    EXPECT_EQ(h.received_words, 508u);
  }
}

TEST(Heard, of_ldcp_the_total_of_what_was_marked_is_rounded_up_as_well) {
  Heard h;
  h.accepted(kLdcp, 100, wire::kEcnEct0);
  h.accepted(kLdcp, 31, wire::kEcnCe);
  h.accepted(kLdcp, 100, wire::kEcnEct1);
  EXPECT_EQ(h.ldcp(), (wire::CetphLdcp{116, 16}));
}

TEST(Heard, totals_wrap) {
  Heard h;
  h.received_words = h.marked_words = UINT32_MAX - 1;
  h.accepted(kLdcp, 10, wire::kEcnCe);
  EXPECT_EQ(h.ldcp(), (wire::CetphLdcp{3, 3}));
  Heard of_caqm;
  of_caqm.received_words = UINT32_MAX;
  of_caqm.accepted(kCaqm, 2, wire::kEcnEct0);
  EXPECT_EQ(of_caqm.caqm(), wire::CetphCaqm{});
}

// ---- C-AQM -----------------------------------------------------------------------------------------------------

TEST(Heard, of_caqm_what_was_accepted_is_no_mark_yet) {
  Heard h;
  h.accepted(kCaqm, 100, wire::kEcnCe);
  EXPECT_EQ(h.caqm(), caqm(50, false, 0, 0));
}

TEST(Heard, of_caqm_each_code_point_says_something_else) {
  Heard h;
  h.told(wire::kEcnNotCapable, kGrant);
  h.told(wire::kEcnEct0, kGrant);
  EXPECT_EQ(h.caqm(), wire::CetphCaqm{}) << "nobody asked, or a hop refused";
  h.told(wire::kEcnEct1, kGrant);
  h.told(wire::kEcnEct1, kGrant);
  EXPECT_EQ(h.caqm(), caqm(0, true, 0, 2 * kUnits));
  h.told(wire::kEcnCe, kGrant);
  EXPECT_EQ(h.caqm(), caqm(0, true, 1, 2 * kUnits)) << "a mark grants nothing";
}

TEST(Heard, a_grant_is_rounded_down_to_its_unit) {
  Heard h;
  h.told(wire::kEcnEct1, 2 * wire::kCaqmHintUnitBytes - 1);
  EXPECT_EQ(h.caqm(), caqm(0, true, 0, 1));
  Heard small;
  small.told(wire::kEcnEct1, wire::kCaqmHintUnitBytes - 1);
  EXPECT_EQ(small.caqm(), caqm(0, true, 0, 0)) << "the wish was granted all the same";
}

TEST(Heard, marks_beyond_255_are_255) {
  Heard h;
  for (int i = 0; i < 254; ++i) h.told(wire::kEcnCe, kGrant);
  EXPECT_EQ(h.caqm(), caqm(0, false, 254, 0));
  for (int i = 0; i < 3; ++i) {
    h.told(wire::kEcnCe, kGrant);
    EXPECT_EQ(h.caqm(), caqm(0, false, 255, 0));
  }
}

TEST(Heard, grants_beyond_their_field_fill_it) {
  Heard h;
  constexpr uint32_t kFit = UINT16_MAX / kUnits;
  for (uint32_t i = 0; i < kFit; ++i) h.told(wire::kEcnEct1, kGrant);
  EXPECT_EQ(h.caqm(), caqm(0, true, 0, kFit * kUnits));
  for (int i = 0; i < 3; ++i) {
    h.told(wire::kEcnEct1, kGrant);
    EXPECT_EQ(h.caqm(), caqm(0, true, 0, UINT16_MAX));
  }
}

// An acknowledgement says what came since the one before, and the total.
TEST(Heard, of_caqm_all_but_the_total_is_said_once) {
  Heard h;
  h.accepted(kCaqm, 100, wire::kEcnEct1);
  h.told(wire::kEcnEct1, kGrant);
  h.told(wire::kEcnCe, kGrant);
  h.caqm_said();
  EXPECT_EQ(h.caqm(), caqm(50, false, 0, 0));
  h.told(wire::kEcnCe, kGrant);
  EXPECT_EQ(h.caqm(), caqm(50, false, 1, 0));
}

// ---- both ends -------------------------------------------------------------------------------------------------

TEST(Heard, is_what_the_sender_reads) {
  std::byte bytes[8];
  Feedback f;
  Heard ldcp;
  ldcp.accepted(kLdcp, 100, wire::kEcnEct0);
  ldcp.accepted(kLdcp, 60, wire::kEcnCe);
  ldcp.ldcp().write(bytes);
  ASSERT_EQ(read_feedback(kLdcp, bytes, &f), wire::Drop::kNone);
  EXPECT_EQ(f.received_words, 80u);
  EXPECT_EQ(f.marked_words, 30u);
  Heard asked;
  asked.accepted(kCaqm, 100, wire::kEcnEct1);
  asked.told(wire::kEcnEct1, kGrant);
  asked.told(wire::kEcnCe, kGrant);
  asked.caqm().write(bytes);
  ASSERT_EQ(read_feedback(kCaqm, bytes, &f), wire::Drop::kNone);
  EXPECT_EQ(f.received_words, 50u);
  EXPECT_EQ(f.granted_bytes, kGrant);
  EXPECT_EQ(f.marked_packets, 1u);
  EXPECT_TRUE(f.may_increase);
}

// ---- the whole indicator (CCI) -----------------------------------------------------------------------------------

TEST(HeardCci, grants_add_up_by_their_hints) {
  Heard h;
  h.told({.enable = true, .increase = true, .hint = 130});
  h.told({.enable = true, .increase = true, .hint = 7});
  h.told({.enable = true, .hint = 99});  // refused: what its hint says is nothing
  EXPECT_EQ(h.caqm(), caqm(0, true, 0, 137));
}

TEST(HeardCci, a_mark_is_no_grant) {
  Heard h;
  h.told({.enable = true, .congested = true, .increase = true, .hint = 130});
  h.told({.enable = true, .congested = true});
  EXPECT_EQ(h.caqm(), caqm(0, false, 2, 0));
}

TEST(HeardCci, tells_that_congestion_was_at_the_last_hop_until_it_is_said) {
  Heard h;
  h.told({.loc = true, .enable = true, .congested = true});
  h.told({.enable = true, .congested = true});
  EXPECT_TRUE(h.caqm().loc);
  h.caqm_said();
  EXPECT_FALSE(h.caqm().loc);
}

TEST(HeardCci, hints_end_where_the_report_does) {
  Heard h;
  for (int i = 0; i < 1000; ++i) h.told({.enable = true, .increase = true, .hint = 255});
  EXPECT_EQ(h.caqm().hint, UINT16_MAX);
}

}  // namespace
}  // namespace ub::cc
