// SPDX-License-Identifier: Apache-2.0
//
// CETPH as what it says (UB Base Specification Rev 2.0, 6.2.2). The bytes are those of headers_test and golden_test,
// here with their units.
#include "lib/transport/cc/feedback.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace ub::cc {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values, size_t size) {
  std::vector<std::byte> all;
  for (int v : values) all.push_back(static_cast<std::byte>(v));
  all.resize(size);
  return all;
}

TEST(Feedback, ldcp_tells_totals) {
  const auto bytes = bytes_of({0, 0, 0x10, 0, 0, 0, 0, 0x20}, 8);
  Feedback f;
  ASSERT_EQ(read_feedback(wire::CcAlgorithm::kLdcp, bytes, &f), wire::Drop::kNone);
  EXPECT_EQ(f.received_words, 0x1000u);
  EXPECT_EQ(f.marked_words, 0x20u);
  EXPECT_EQ(feedback_size(wire::CcAlgorithm::kLdcp), 8u);
}

TEST(Feedback, caqm_tells_what_switches_granted) {
  const auto bytes = bytes_of({0, 0, 0x10, 0, 3, 2, 0, 0x40}, 8);
  Feedback f;
  ASSERT_EQ(read_feedback(wire::CcAlgorithm::kCaqm, bytes, &f), wire::Drop::kNone);
  EXPECT_EQ(f.received_words, 0x1000u);
  EXPECT_EQ(f.granted_bytes, 0x40u * 32);
  EXPECT_EQ(f.marked_packets, 2u);
  EXPECT_TRUE(f.may_increase && f.at_last_hop);
  EXPECT_EQ(feedback_size(wire::CcAlgorithm::kCaqm), 8u);
}

TEST(Feedback, is_none_where_no_algorithm_was_agreed_that_has_it) {
  const auto bytes = bytes_of({}, 16);
  Feedback f;
  EXPECT_EQ(read_feedback(wire::CcAlgorithm::kNone, bytes, &f), wire::Drop::kBadTpOpcode);
  EXPECT_EQ(read_feedback(wire::CcAlgorithm::kDcqcn, bytes, &f), wire::Drop::kBadTpOpcode);
  EXPECT_EQ(feedback_size(wire::CcAlgorithm::kNone), 0u);
  EXPECT_EQ(feedback_size(wire::CcAlgorithm::kDcqcn), 0u);
}

TEST(Feedback, a_short_one_is_dropped) {
  const auto bytes = bytes_of({}, 7);
  Feedback f;
  EXPECT_EQ(read_feedback(wire::CcAlgorithm::kLdcp, bytes, &f), wire::Drop::kTruncatedHeader);
  EXPECT_EQ(read_feedback(wire::CcAlgorithm::kCaqm, bytes, &f), wire::Drop::kTruncatedHeader);
}

TEST(Notification, has_a_level_and_a_place) {
  Mark mark;
  bool any = false;
  ASSERT_EQ(read_notification(bytes_of({0xE0}, 16), &mark, &any), wire::Drop::kNone);
  EXPECT_TRUE(any && mark.severe && mark.at_last_hop);
  ASSERT_EQ(read_notification(bytes_of({0x40}, 16), &mark, &any), wire::Drop::kNone);
  EXPECT_TRUE(any);
  EXPECT_FALSE(mark.severe || mark.at_last_hop);
  ASSERT_EQ(read_notification(bytes_of({}, 16), &mark, &any), wire::Drop::kNone);
  EXPECT_FALSE(any) << "no congestion";
  EXPECT_EQ(read_notification(bytes_of({0xE0}, 15), &mark, &any), wire::Drop::kTruncatedHeader);
  EXPECT_FALSE(any);
}

}  // namespace
}  // namespace ub::cc
