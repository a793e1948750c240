// SPDX-License-Identifier: Apache-2.0
//
// Swift's window, by the rules of its paper (Kumar et al., SIGCOMM 2020): the target of a round trip, growth below it,
// decreases beyond it.
#include "lib/transport/cc/swift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ub::cc {
namespace {

constexpr SwiftConstants kUsual;
constexpr uint16_t kMost = 2048;
constexpr uint32_t kPacket = Swift::kPacket;
constexpr Duration kLow = microseconds(20);    ///< below every target
constexpr Duration kHigh = microseconds(100);  ///< beyond every target

/// A flow in the hands of a test, a second after the origin of time. It always has as much in flight as it may.
struct Window : Swift {
  Window() { begin(v, path, Psn(0)); }
  explicit Window(uint64_t in_units) : Window() { window = static_cast<uint32_t>(in_units); }

  uint32_t packets() const { return v.window_packets; }
  void sample(Duration delay) { round_trip(v, path, now, delay); }
  void ack(uint32_t packets, uint32_t in_flight) {
    path.in_flight = in_flight;
    acknowledged(v, path, now, packets, Psn(0));
  }
  void ack(uint32_t packets = 1) { ack(packets, this->packets() - packets); }
  void loss() { lost(v, path, now, {}); }
  void timeout() { timed_out(v, path, now, Psn(0)); }

  Path path{.most_packets = kMost};
  Instant now{seconds(1).ns};
  Verdict v;
};

// ---- begin -----------------------------------------------------------------------------------------------------

TEST(Swift, begins_with_ten_packets) {
  Window w;
  EXPECT_EQ(w.packets(), 10u);
  EXPECT_EQ(w.v.next_packet, Instant{});
  EXPECT_TRUE(w.v.timer_at.is_never());
  EXPECT_EQ(w.v.ecn, 0) << "it needs no marks";
  w.path.most_packets = 4;
  w.begin(w.v, w.path, Psn(0));
  EXPECT_EQ(w.packets(), 4u);
}

TEST(Swift, a_new_flow_forgets_the_one_before) {
  Window w(2 * kPacket);
  w.sample(kHigh);
  w.begin(w.v, w.path, Psn(0));
  EXPECT_EQ(w.packets(), 10u);
  EXPECT_EQ(w.v.next_packet, Instant{});
  EXPECT_EQ(w.delay_ns, 0u);
  EXPECT_TRUE(w.below_target);
  EXPECT_EQ(w.decreased_at, Instant{});
}

// ---- the target ------------------------------------------------------------------------------------------------

TEST(Swift, the_target_is_the_longest_for_the_smallest_window) {
  for (const uint64_t units : {uint64_t{kPacket / 2}, uint64_t{kPacket}}) {
    EXPECT_EQ(Window(units).target(kUsual), kUsual.base_target + kUsual.most_scaling) << units;
  }
  for (const uint64_t packets : {100, 101, 2048, 65535}) {
    EXPECT_EQ(Window(packets * kPacket).target(kUsual), kUsual.base_target) << packets;
  }
}

TEST(Swift, the_scaling_is_linear_in_the_inverse_of_the_root) {
  for (uint64_t units = kPacket; units <= 100 * kPacket; units += 777) {
    const double inverse = 1 / std::sqrt(static_cast<double>(units) / kPacket);
    const double scaling = 25'000 * (inverse - 0.1) / (1 - 0.1);
    EXPECT_NEAR(static_cast<double>(Window(units).target(kUsual).ns), 25'000 + scaling, 10) << units;
  }
}

TEST(Swift, a_larger_window_has_no_longer_target) {
  for (uint64_t units = kPacket / 2; units <= 101 * kPacket; units += 97) {
    EXPECT_LE(Window(units + 97).target(kUsual), Window(units).target(kUsual)) << units;
  }
}

TEST(Swift, windows_may_be_scaled_between_any_two) {
  SwiftConstants c;
  c.base_target = microseconds(100);
  c.most_scaling = microseconds(30);
  c.least_scaled_packets = 4;
  c.most_scaled_packets = 16;
  EXPECT_EQ(Window(4 * kPacket).target(c), microseconds(130));
  EXPECT_EQ(Window(16 * kPacket).target(c), microseconds(100));
  EXPECT_NEAR(static_cast<double>(Window(9 * kPacket).target(c).ns), 110'000, 10) << "(1/3 - 1/4) of (1/2 - 1/4)";
  c.least_scaled_packets = c.most_scaled_packets = 8;
  EXPECT_EQ(Window(8 * kPacket).target(c), microseconds(130));
  EXPECT_EQ(Window(8 * kPacket + 1).target(c), microseconds(100));
  c.least_scaled_packets = 1;
  c.most_scaled_packets = UINT16_MAX;
  c.most_scaling = seconds(1);
  EXPECT_NEAR(static_cast<double>(Window(4 * kPacket).target(c).ns), 1e5 + 1e9 * (0.5 - 1. / 256) / (1 - 1. / 256),
              1e5);
}

// ---- growth ----------------------------------------------------------------------------------------------------

TEST(Swift, grows_by_one_packet_for_each_window_below_the_target) {
  Window w;
  w.sample(kLow);
  w.ack(10);
  EXPECT_EQ(w.packets(), 11u);
  w.ack(5);
  EXPECT_EQ(w.window, 11 * kPacket + 5 * kPacket / 11);
  for (int i = 0; i < 7; ++i) w.ack();
  EXPECT_EQ(w.packets(), 12u) << "fractions add up";
}

TEST(Swift, grows_while_nothing_was_measured) {
  Window w;
  w.ack(10);
  EXPECT_EQ(w.packets(), 11u);
}

TEST(Swift, does_not_grow_at_the_target_or_beyond) {
  Window w;
  const Duration target = w.target(kUsual);
  w.sample(target);
  w.ack(10);
  EXPECT_EQ(w.window, 10 * kPacket);
  EXPECT_EQ(w.decreased_at, Instant{}) << "nothing was taken";
  w.sample(target - nanoseconds(1));
  w.ack(10);
  EXPECT_EQ(w.packets(), 11u);
}

// A smaller window has a longer target: with that, the same round trip might be below it.
TEST(Swift, the_round_trip_that_took_something_lets_nothing_grow) {
  Window w;
  w.sample(w.target(kUsual) + nanoseconds(10));
  const uint32_t after = w.window;
  ASSERT_LT(after, 10 * kPacket);
  w.ack(5);
  EXPECT_EQ(w.window, after);
}

TEST(Swift, never_exceeds_what_a_sender_can_track) {
  Window w(kMost * kPacket - 1);
  w.ack(kMost);
  EXPECT_EQ(w.window, kMost * kPacket);
  EXPECT_EQ(w.packets(), kMost);
  Window unlimited(uint64_t{kNoWindow - 1} * kPacket);
  unlimited.path.most_packets = kNoWindow;
  for (int i = 0; i < 10; ++i) unlimited.ack(1u << 23, 0);
  EXPECT_EQ(unlimited.packets(), kNoWindow);
}

TEST(Swift, does_not_grow_while_less_than_half_is_in_flight) {
  Window w;
  w.ack(1, 3);
  EXPECT_EQ(w.window, 10 * kPacket);
  w.ack(1, 4);  // five were
  EXPECT_GT(w.window, 10 * kPacket);
}

TEST(Swift, an_application_that_sends_one_packet_at_a_time_earns_less_than_four) {
  Window w(kPacket);
  w.sample(kLow);
  for (int i = 0; i < 10'000; ++i) w.ack(1, 0);
  EXPECT_EQ(w.packets(), 3u);
}

// ---- decreases -------------------------------------------------------------------------------------------------

TEST(Swift, takes_a_part_of_the_excess) {
  Window w;
  const Duration target = w.target(kUsual), delay = target + microseconds(10);
  w.sample(delay);
  const double part = 0.8 * 10'000 / static_cast<double>(delay.ns);
  EXPECT_NEAR(w.window, 10 * kPacket * (1 - part), 20);
  EXPECT_EQ(w.decreased_at, w.now);
}

TEST(Swift, takes_at_most_half) {
  Window w;
  w.sample(milliseconds(500));
  EXPECT_EQ(w.window, 5 * kPacket);
  Window edge;  // 80 % of 5/8 is half
  edge.sample(edge.target(kUsual) * 8 / 3 + nanoseconds(10));
  EXPECT_EQ(edge.window, 5 * kPacket);
  Window inside;
  inside.sample(inside.target(kUsual) * 8 / 3 - nanoseconds(100));
  EXPECT_GT(inside.window, 5 * kPacket);
}

TEST(Swift, takes_once_in_a_round_trip) {
  Window w;
  w.sample(kHigh);
  ASSERT_EQ(w.packets(), 5u);
  w.now += kHigh - nanoseconds(1);
  w.sample(kHigh);  // it left before the window was smaller
  EXPECT_EQ(w.packets(), 5u);
  w.now += nanoseconds(1);
  w.sample(kHigh);
  EXPECT_EQ(w.packets(), 2u);
}

TEST(Swift, a_long_round_trip_that_takes_nothing_lets_nothing_grow) {
  Window w;
  w.sample(kHigh);
  w.sample(kHigh);
  w.ack(5);
  EXPECT_EQ(w.window, 5 * kPacket);
}

TEST(Swift, of_several_round_trips_the_last_says_whether_it_grows) {
  Window w;
  w.sample(kHigh);
  w.sample(kLow);
  w.ack(5);
  EXPECT_EQ(w.window, 6 * kPacket);
}

TEST(Swift, never_falls_below_one_packet) {
  Window w;
  for (int i = 0; i < 1000; ++i) {
    w.now += kHigh;
    w.sample(kHigh);
    EXPECT_EQ(w.packets(), std::max(1u, w.window / kPacket));
  }
  EXPECT_EQ(w.window, kPacket);
}

TEST(Swift, what_takes_nothing_is_no_decrease) {
  Window w(kPacket);
  w.sample(kHigh);
  EXPECT_EQ(w.decreased_at, Instant{});
}

TEST(Swift, a_round_trip_that_does_not_fit_is_the_longest_that_does) {
  Window w;
  w.sample(seconds(5));
  EXPECT_EQ(w.delay_ns, 0x7FFFFFFFu);
  EXPECT_EQ(w.packets(), 10u) << "it left before the flow began";
  w.now += seconds(10);
  w.sample(seconds(5));
  EXPECT_EQ(w.packets(), 5u);
  w.sample(nanoseconds(0));
  EXPECT_EQ(w.delay_ns, 1u);
  EXPECT_TRUE(w.below_target);
}

// Neither 2^31 ns nor 2^32 ns later is anything mistaken for the same round trip.
TEST(Swift, long_after_a_decrease_another_is_possible) {
  for (const int64_t ns : {int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 48}) {
    for (const int64_t off : {-1, 0, 1}) {
      Window w;
      w.sample(kHigh);
      w.now += nanoseconds(ns + off);
      w.sample(kHigh);
      EXPECT_EQ(w.packets(), 2u) << ns << ", " << off;
    }
  }
}

// ---- losses and timeouts ---------------------------------------------------------------------------------------

TEST(Swift, a_loss_takes_half_once_in_a_round_trip) {
  Window w;
  w.sample(kLow);
  w.loss();
  EXPECT_EQ(w.packets(), 5u);
  w.now += kUsual.base_target - nanoseconds(1);
  w.loss();
  EXPECT_EQ(w.packets(), 5u);
  w.now += nanoseconds(1);
  w.loss();
  EXPECT_EQ(w.packets(), 2u);
}

TEST(Swift, the_round_trip_of_losses_is_the_latest_that_was_measured) {
  Window w;
  w.sample(kHigh);
  w.now += kHigh - nanoseconds(1);
  w.loss();
  EXPECT_EQ(w.packets(), 5u);
  w.now += nanoseconds(1);
  w.loss();
  EXPECT_EQ(w.packets(), 2u);
}

TEST(Swift, what_left_before_a_loss_takes_nothing) {
  Window w;
  w.loss();
  ASSERT_EQ(w.packets(), 5u);
  w.now += kHigh - nanoseconds(1);
  w.sample(kHigh);
  EXPECT_EQ(w.packets(), 5u);
}

TEST(Swift, a_timeout_leaves_one_packet) {
  Window w;
  w.timeout();
  EXPECT_EQ(w.window, kPacket);
  EXPECT_EQ(w.v.next_packet, Instant{});
  w.sample(kHigh);
  EXPECT_EQ(w.window, kPacket) << "it left before";
  w.timeout();
  EXPECT_EQ(w.window, kPacket);
}

TEST(Swift, what_left_before_a_timeout_takes_nothing) {
  Window w;
  w.sample(kLow);
  w.timeout();
  for (int n = 0; n < 6; ++n) w.ack();
  const uint32_t grown = w.packets();
  ASSERT_GE(grown, 3u);
  w.now += kUsual.base_target - nanoseconds(1);
  w.loss();
  w.sample(w.now - Instant{seconds(1).ns} + nanoseconds(1));
  EXPECT_EQ(w.packets(), grown);
  w.now += nanoseconds(1);
  w.loss();
  EXPECT_EQ(w.packets(), grown / 2);
}

TEST(Swift, hears_what_it_needs) {
  EXPECT_TRUE(Swift::kHearsRoundTrips);
  EXPECT_TRUE(Swift::kOnlyAsked);
}

// ---- other constants -------------------------------------------------------------------------------------------

TEST(Swift, goes_by_the_constants_that_it_is_given) {
  Constants constants;
  constants.swift = {.initial_packets = 20,
                     .base_target = microseconds(200),
                     .most_scaling = microseconds(0),
                     .increase_percent = 50,
                     .decrease_percent = 40,
                     .most_decrease_percent = 10};
  Window w;
  w.path.constants = &constants;
  w.begin(w.v, w.path, Psn(0));
  EXPECT_EQ(w.packets(), 20u);
  w.sample(microseconds(199));
  w.ack(20);
  EXPECT_EQ(w.window, 20 * kPacket + kPacket / 2);
  w.sample(microseconds(220));
  EXPECT_NEAR(w.window, 20.5 * kPacket * (1 - 0.4 / 11), 40);
  w.now += seconds(1);
  const uint32_t before = w.window;
  w.loss();
  EXPECT_NEAR(w.window, 0.9 * before, 40);
  w.now += seconds(1);
  w.sample(seconds(1));
  EXPECT_NEAR(w.window, 0.81 * before, 80);
  constants.swift.initial_packets = 0;
  w.begin(w.v, w.path, Psn(0));
  EXPECT_EQ(w.window, kPacket);
}

}  // namespace
}  // namespace ub::cc
