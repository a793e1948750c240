// SPDX-License-Identifier: Apache-2.0
//
// The loss-based window (UB Base Specification Rev 2.0, 6.6, leaves the algorithm to those who agree on one): slow start,
// additive increase, half at a loss, almost nothing after a timeout.
#include "lib/transport/tp/congestion_window.h"

#include <gtest/gtest.h>

namespace ub::tp {
namespace {

CongestionWindow window(uint32_t packets, uint32_t threshold) {
  CongestionWindow cc;
  cc_init(cc, Psn(100));
  cc.window = packets;
  cc.threshold = threshold;
  return cc;
}

TEST(CongestionWindow, begins_with_32_packets_in_slow_start) {
  CongestionWindow cc;
  cc_init(cc, Psn(100));
  EXPECT_EQ(cc.window, 32u);
  cc_acked(cc, 32);
  EXPECT_EQ(cc.window, 64u) << "doubled in a round trip";
}

TEST(CongestionWindow, grows_by_one_packet_in_a_round_trip_above_the_threshold) {
  CongestionWindow cc = window(10, 10);
  cc_acked(cc, 9);
  EXPECT_EQ(cc.window, 10u);
  cc_acked(cc, 1);
  EXPECT_EQ(cc.window, 11u);
  cc_acked(cc, 10);
  EXPECT_EQ(cc.window, 11u);
  cc_acked(cc, 3);
  EXPECT_EQ(cc.window, 12u);
  EXPECT_EQ(cc.acked, 2u) << "what is left counts towards the next";
}

TEST(CongestionWindow, slow_start_ends_at_the_threshold) {
  CongestionWindow cc = window(9, 10);
  cc_acked(cc, 1);
  EXPECT_EQ(cc.window, 10u);
  cc_acked(cc, 1);
  EXPECT_EQ(cc.window, 10u);
}

TEST(CongestionWindow, never_exceeds_what_a_sender_can_track) {
  CongestionWindow cc = window(kMaxWindow - 1, kMaxWindow);
  cc_acked(cc, 1000);
  EXPECT_EQ(cc.window, kMaxWindow);
  for (int i = 0; i < 10; ++i) cc_acked(cc, kMaxWindow);
  EXPECT_EQ(cc.window, kMaxWindow);
}

TEST(CongestionWindow, half_of_a_small_one_is_no_less_than_the_least) {
  for (uint32_t packets : {2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u}) {
    CongestionWindow lost = window(packets, kMaxWindow), timed_out = lost;
    cc_lost(lost, Psn(100), Psn(140));
    cc_timeout(timed_out, Psn(140));
    EXPECT_EQ(lost.threshold, packets < 4 ? 2 : packets / 2) << packets;
    EXPECT_EQ(timed_out.threshold, lost.threshold) << packets;
  }
}

TEST(CongestionWindow, a_loss_halves_it_and_ends_slow_start) {
  CongestionWindow cc = window(40, kMaxWindow);
  cc.acked = 7;
  cc_lost(cc, Psn(100), Psn(140));
  EXPECT_EQ(cc.window, 20u);
  EXPECT_EQ(cc.threshold, 20u);
  EXPECT_EQ(cc.acked, 0u);
}

TEST(CongestionWindow, losses_of_one_round_trip_halve_it_once) {
  CongestionWindow cc = window(40, kMaxWindow);
  cc_lost(cc, Psn(100), Psn(140));
  cc_lost(cc, Psn(120), Psn(150));
  cc_lost(cc, Psn(139), Psn(150));
  EXPECT_EQ(cc.window, 20u);
  cc_lost(cc, Psn(140), Psn(160));  // sent after the window was halved
  EXPECT_EQ(cc.window, 10u);
}

TEST(CongestionWindow, round_trips_are_told_apart_across_the_wrap) {
  CongestionWindow cc;
  cc_init(cc, Psn(0xFFFFF0));
  cc_lost(cc, Psn(0xFFFFF0), Psn(8));
  EXPECT_EQ(cc.window, 16u);
  cc_lost(cc, Psn(7), Psn(20));
  EXPECT_EQ(cc.window, 16u);
  cc_lost(cc, Psn(8), Psn(20));
  EXPECT_EQ(cc.window, 8u);
}

TEST(CongestionWindow, never_falls_below_two_packets) {
  CongestionWindow cc = window(3, kMaxWindow);
  cc_lost(cc, Psn(100), Psn(110));
  EXPECT_EQ(cc.window, kMinWindow);
  cc_lost(cc, Psn(110), Psn(120));
  EXPECT_EQ(cc.window, kMinWindow);
  EXPECT_EQ(cc.threshold, kMinWindow);
}

TEST(CongestionWindow, a_timeout_leaves_two_packets_and_half_as_the_threshold) {
  CongestionWindow cc = window(40, kMaxWindow);
  cc.acked = 7;
  cc_timeout(cc, Psn(140));
  EXPECT_EQ(cc.window, kMinWindow);
  EXPECT_EQ(cc.threshold, 20u);
  EXPECT_EQ(cc.acked, 0u);
  cc_lost(cc, Psn(139), Psn(150));
  EXPECT_EQ(cc.threshold, 20u) << "of what was in flight at the timeout";
  cc_timeout(cc, Psn(140));
  EXPECT_EQ(cc.threshold, kMinWindow);
}

TEST(CongestionWindow, after_a_timeout_it_starts_slowly_up_to_the_threshold) {
  CongestionWindow cc = window(40, kMaxWindow);
  cc_timeout(cc, Psn(140));
  cc_acked(cc, 2);
  cc_acked(cc, 4);
  cc_acked(cc, 8);
  cc_acked(cc, 4);
  EXPECT_EQ(cc.window, 20u);
  cc_acked(cc, 19);
  EXPECT_EQ(cc.window, 20u);
}

}  // namespace
}  // namespace ub::tp
