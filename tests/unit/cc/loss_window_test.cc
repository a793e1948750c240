// SPDX-License-Identifier: Apache-2.0
//
// The loss-based window (UB Base Specification Rev 2.0, 6.6, leaves the algorithm to those who agree on one): slow
// start, additive increase, half at a loss, almost nothing after a timeout.
#include "lib/transport/cc/loss_window.h"

#include <gtest/gtest.h>

namespace ub::cc {
namespace {

constexpr uint16_t kMost = 2048;

/// A flow whose first packet is 100, in the hands of a test.
struct Window : LossWindow {
  explicit Window(uint32_t next = 100) : until(next) { begin(v, path, until); }
  Window(uint16_t packets, uint16_t threshold) : Window() {
    v.window_packets = packets;
    threshold_packets = threshold;
  }
  uint32_t packets() const { return v.window_packets; }
  void ack(uint32_t packets) { acknowledged(v, path, {}, packets, until += packets); }
  void loss(uint32_t first, uint32_t next) { lost(v, path, {}, {Psn(first), Psn(next)}); }
  void timeout(uint32_t next) { timed_out(v, path, {}, Psn(next)); }

  Path path{.most_packets = kMost};
  Psn until;  ///< acknowledged
  Verdict v;
};

TEST(LossWindow, begins_with_32_packets_in_slow_start) {
  Window w;
  EXPECT_EQ(w.packets(), 32u);
  w.ack(32);
  EXPECT_EQ(w.packets(), 64u) << "doubled in a round trip";
}

TEST(LossWindow, a_new_flow_forgets_the_one_before) {
  Window w;
  w.loss(100, 140);
  w.ack(3);
  w.begin(w.v, w.path, Psn(500));
  EXPECT_EQ(w.packets(), 32u);
  EXPECT_EQ(w.threshold_packets, kMost);
  EXPECT_EQ(w.acked_packets, 0u);
  w.loss(500, 540);
  EXPECT_EQ(w.packets(), 16u) << "its first packet is of no earlier round trip";
}

TEST(LossWindow, grows_by_one_packet_in_a_round_trip_above_the_threshold) {
  Window w(10, 10);
  w.ack(9);
  EXPECT_EQ(w.packets(), 10u);
  w.ack(1);
  EXPECT_EQ(w.packets(), 11u);
  w.ack(10);
  EXPECT_EQ(w.packets(), 11u);
  w.ack(3);
  EXPECT_EQ(w.packets(), 12u);
  EXPECT_EQ(w.acked_packets, 2u) << "what is left counts towards the next";
}

TEST(LossWindow, slow_start_ends_at_the_threshold) {
  Window w(9, 10);
  w.ack(1);
  EXPECT_EQ(w.packets(), 10u);
  w.ack(1);
  EXPECT_EQ(w.packets(), 10u);
}

TEST(LossWindow, never_exceeds_what_a_sender_can_track) {
  Window w(kMost - 1, kMost);
  w.ack(1000);
  EXPECT_EQ(w.packets(), kMost);
  for (int i = 0; i < 10; ++i) w.ack(kMost);
  EXPECT_EQ(w.packets(), kMost);
  Window unlimited;
  unlimited.path.most_packets = kNoWindow;
  for (int i = 0; i < 100; ++i) unlimited.ack(1u << 16);
  EXPECT_EQ(unlimited.packets(), kNoWindow);
}

TEST(LossWindow, half_of_a_small_one_is_no_less_than_the_least) {
  for (uint16_t packets : {2, 3, 4, 5, 6, 7, 8, 9}) {
    Window lost(packets, kMost), timed_out = lost;
    lost.loss(100, 140);
    timed_out.timeout(140);
    EXPECT_EQ(lost.threshold_packets, packets < 4 ? 2 : packets / 2) << packets;
    EXPECT_EQ(timed_out.threshold_packets, lost.threshold_packets) << packets;
  }
}

TEST(LossWindow, a_loss_halves_it_and_ends_slow_start) {
  Window w(40, kMost);
  w.acked_packets = 7;
  w.loss(100, 140);
  EXPECT_EQ(w.packets(), 20u);
  EXPECT_EQ(w.threshold_packets, 20u);
  EXPECT_EQ(w.acked_packets, 0u);
}

TEST(LossWindow, losses_of_one_round_trip_halve_it_once) {
  Window w(40, kMost);
  w.loss(100, 140);
  w.loss(120, 150);
  w.loss(139, 150);
  EXPECT_EQ(w.packets(), 20u);
  w.loss(140, 160);  // sent after the window was halved
  EXPECT_EQ(w.packets(), 10u);
}

TEST(LossWindow, what_is_acknowledged_within_a_round_trip_does_not_end_it) {
  Window w(40, kMost);
  w.loss(100, 140);
  w.ack(10);
  w.loss(120, 150);
  EXPECT_EQ(w.threshold_packets, 20u);
}

TEST(LossWindow, round_trips_are_told_apart_across_the_wrap) {
  Window w(0xFFFFF0);
  w.loss(0xFFFFF0, 8);
  EXPECT_EQ(w.packets(), 16u);
  w.loss(7, 20);
  EXPECT_EQ(w.packets(), 16u);
  w.loss(8, 20);
  EXPECT_EQ(w.packets(), 8u);
}

TEST(LossWindow, never_falls_below_two_packets) {
  Window w(3, kMost);
  w.loss(100, 110);
  EXPECT_EQ(w.packets(), kUsualConstants.loss_window.least_packets);
  w.loss(110, 120);
  EXPECT_EQ(w.packets(), kUsualConstants.loss_window.least_packets);
  EXPECT_EQ(w.threshold_packets, kUsualConstants.loss_window.least_packets);
}

TEST(LossWindow, a_timeout_leaves_two_packets_and_half_as_the_threshold) {
  Window w(40, kMost);
  w.acked_packets = 7;
  w.timeout(140);
  EXPECT_EQ(w.packets(), kUsualConstants.loss_window.least_packets);
  EXPECT_EQ(w.threshold_packets, 20u);
  EXPECT_EQ(w.acked_packets, 0u);
  w.loss(139, 150);
  EXPECT_EQ(w.threshold_packets, 20u) << "of what was in flight at the timeout";
  w.timeout(140);
  EXPECT_EQ(w.threshold_packets, kUsualConstants.loss_window.least_packets);
}

TEST(LossWindow, after_a_timeout_it_starts_slowly_up_to_the_threshold) {
  Window w(40, kMost);
  w.timeout(140);
  w.ack(2);
  w.ack(4);
  w.ack(8);
  w.ack(4);
  EXPECT_EQ(w.packets(), 20u);
  w.ack(19);
  EXPECT_EQ(w.packets(), 20u);
}

TEST(LossWindow, limits_no_rate_and_marks_nothing) {
  Window w;
  w.loss(100, 140);
  EXPECT_TRUE(w.v.timer_at.is_never());
  EXPECT_EQ(w.v.next_packet, Instant{});
  EXPECT_EQ(w.v.ecn, 0);
}

// Half of all PSNs later, what was ahead of them is behind: a flow that never rests must not remember it.
TEST(LossWindow, a_loss_long_after_another_halves_the_window_again) {
  for (uint32_t millions : {0u, 5u, 9u, 12u, 15u}) {
    SCOPED_TRACE(millions);
    Window w;
    w.ack(1000);
    w.loss(w.until.value(), (w.until + 100).value());
    for (uint32_t i = 0; i < millions * 10; ++i) w.ack(100'000);
    w.ack(1000);
    const uint32_t before = w.packets();
    w.loss(w.until.value(), (w.until + 100).value());
    EXPECT_EQ(w.packets(), before / 2);
  }
}

// On one of several paths, a packet in front of others that arrived may be known as lost only now.
TEST(LossWindow, a_loss_long_after_another_may_lie_before_what_was_acknowledged) {
  Window w;
  w.loss(100, 140);
  for (int i = 0; i < 50; ++i) w.ack(100'000);
  const uint32_t before = w.packets();
  w.loss((w.until - 5).value(), (w.until + 100).value());
  EXPECT_EQ(w.packets(), before / 2);
}

}  // namespace
}  // namespace ub::cc
