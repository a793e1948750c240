// SPDX-License-Identifier: Apache-2.0
//
// The window of C-AQM's sender and what its packets ask for (UB Base Specification Rev 2.0, 6.6), by the numbers of the
// public ns-3 model of UB. caqm_loop_test.cc has the whole loop.
#include "lib/transport/cc/caqm.h"

#include <gtest/gtest.h>

#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/network_header.h"

namespace ub::cc {
namespace {

constexpr CaqmConstants kUsual;
constexpr uint32_t kPacket = 1000;  // bytes
constexpr uint16_t kMost = 2048;

/// A flow whose first packet is 100, in the hands of a test.
struct Window : Caqm {
  explicit Window(Path given = {.most_packets = kMost, .packet_bytes = kPacket}) : path(given) {
    begin(v, path, Psn(100));
  }

  uint32_t packets() const { return v.window_packets; }
  /// A packet leaves, and the window is full behind it. Did it ask?
  bool send(uint32_t bytes = kPacket) { return send_with(v.window_packets - 1u, bytes); }
  /// The same with so many packets in flight before it.
  bool send_with(uint32_t in_flight, uint32_t bytes = kPacket) {
    const bool asked = v.ecn == wire::kEcnEct1;
    path.in_flight = in_flight;
    sent(v, path, {}, bytes);
    return asked;
  }
  int sends(int packets, uint32_t bytes = kPacket) {
    int asked = 0;
    for (int i = 0; i < packets; ++i) asked += send(bytes);
    return asked;
  }
  void grant(uint32_t bytes) { fed_back(v, path, {}, {.granted_bytes = bytes, .may_increase = true}); }
  void mark(uint8_t packets) { fed_back(v, path, {}, {.marked_packets = packets}); }
  /// An acknowledgement that ends a round trip, with so many packets still in flight.
  void round(uint32_t in_flight = 9) {
    path.in_flight = in_flight;
    acknowledged(v, path, {}, 1, round_until + 1);
  }
  void loss(uint32_t first, uint32_t next) { lost(v, path, {}, {Psn(first), Psn(next)}); }
  void timeout(uint32_t next) { timed_out(v, path, {}, Psn(next)); }
  /// Out of slow start, with a window of so many packets.
  void avoid(uint32_t packets) {
    slow_start = false;
    window_bytes = packets * kPacket;
    unasked_bytes = 0;
    v.ecn = wire::kEcnEct0;
    v.window_packets = static_cast<uint16_t>(packets);
  }

  Path path;
  Verdict v;
};

TEST(Caqm, the_numbers_are_those_of_the_model) {
  EXPECT_EQ(kUsual.initial_packets, 10);
  EXPECT_EQ(kUsual.increase_percent, 50);
  EXPECT_EQ(kUsual.decrease_percent, 50);
  EXPECT_EQ(kUsual.calm_round_trips, 10);
}

TEST(Caqm, begins_with_ten_packets_and_asks) {
  Window w;
  EXPECT_EQ(w.packets(), 10u);
  EXPECT_EQ(w.v.ecn, wire::kEcnEct1);
  EXPECT_TRUE(w.slow_start);
}

TEST(Caqm, a_new_flow_forgets_the_one_before) {
  Window w;
  w.sends(5, 300);
  w.mark(3);
  w.loss(100, 120);
  w.begin(w.v, w.path, Psn(500));
  const Window other;
  EXPECT_EQ(w.packets(), 10u);
  EXPECT_EQ(w.v.ecn, wire::kEcnEct1);
  EXPECT_EQ(w.sixteen_packets, other.sixteen_packets);
  EXPECT_EQ(w.unasked_bytes + w.calm_round_trips + w.wish_round_trips, 0u);
  EXPECT_TRUE(w.slow_start && !w.disturbed && !w.cut);
  EXPECT_EQ(w.round_until, Psn(500));
}

TEST(Caqm, limits_no_rate_and_wants_no_timer) {
  Window w;
  w.sends(5);
  w.mark(1);
  EXPECT_TRUE(w.v.timer_at.is_never());
  EXPECT_EQ(w.v.next_packet, Instant{});
}

// ---- what it asks for ---------------------------------------------------------------------------------------------

TEST(Caqm, in_slow_start_each_packet_asks) {
  Window w;
  EXPECT_EQ(w.sends(100), 100);
}

TEST(Caqm, in_slow_start_it_asks_for_as_many_bytes_as_it_sends) {
  Window w;
  w.send();
  EXPECT_NEAR(w.sends(1000, 250), 250, 1);
  EXPECT_NEAR(w.sends(1000, 990), 990, 1) << "what is left counts towards the next wish";
}

TEST(Caqm, otherwise_it_asks_for_half_a_packet_in_each_window) {
  Window w;
  w.avoid(10);
  EXPECT_EQ(w.sends(20), 0);
  EXPECT_TRUE(w.send()) << "two windows were sent";
  EXPECT_EQ(w.sends(19), 0);
  EXPECT_EQ(w.sends(200), 10);
}

TEST(Caqm, with_a_window_of_one_packet_every_other_asks) {
  Window w;
  w.avoid(1);
  EXPECT_EQ(w.sends(20), 9) << "the first two did not";
}

TEST(Caqm, small_packets_ask_by_their_bytes) {
  Window w;
  w.avoid(10);
  EXPECT_NEAR(w.sends(8000, 250), 100, 1);
}

TEST(Caqm, asks_only_while_half_of_the_window_is_used) {
  Window w;
  EXPECT_TRUE(w.send_with(4));
  EXPECT_TRUE(w.send_with(3)) << "five of ten were in flight";
  EXPECT_FALSE(w.send_with(9)) << "only four of ten were";
  EXPECT_TRUE(w.send_with(9));
}

TEST(Caqm, what_was_not_asked_for_is_not_saved_up) {
  Window w;
  w.avoid(10);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(w.send_with(0));
  EXPECT_FALSE(w.send());
  EXPECT_TRUE(w.send());
  EXPECT_EQ(w.sends(18), 0);
}

TEST(Caqm, a_smaller_window_leaves_no_wishes_of_the_larger_one) {
  Window w;
  w.avoid(100);
  w.sends(199);
  w.timeout(400);
  EXPECT_LE(w.sends(20), 11);
}

// ---- what it gets -------------------------------------------------------------------------------------------------

TEST(Caqm, a_grant_widens_the_window) {
  Window w;
  w.grant(999);
  EXPECT_EQ(w.packets(), 10u);
  w.grant(1);
  EXPECT_EQ(w.packets(), 11u);
  w.grant(3000);
  EXPECT_EQ(w.packets(), 14u);
}

TEST(Caqm, bytes_without_permission_are_no_grant) {
  Window w;
  w.fed_back(w.v, w.path, {}, {.granted_bytes = 5000});
  EXPECT_EQ(w.packets(), 10u);
}

TEST(Caqm, never_exceeds_what_a_sender_can_track) {
  Window w;
  for (int i = 0; i < 100; ++i) w.grant(UINT16_MAX * 32);
  EXPECT_EQ(w.packets(), kMost);
  EXPECT_EQ(w.window_bytes, kMost * kPacket);
  w.mark(2);
  EXPECT_EQ(w.packets(), kMost - 1u) << "nothing is kept beyond";
  Window largest({.most_packets = kNoWindow, .packet_bytes = UINT16_MAX});
  for (int i = 0; i < 3000; ++i) largest.grant(UINT16_MAX * 32);
  EXPECT_EQ(largest.packets(), kNoWindow);
  largest.avoid(1);
  largest.window_bytes = UINT32_MAX;
  largest.sends(10, UINT16_MAX);
  largest.mark(UINT8_MAX);
  EXPECT_LT(largest.packets(), kNoWindow);
}

TEST(Caqm, a_sender_that_tracks_few_packets_begins_with_those) {
  Window w({.most_packets = 4, .packet_bytes = kPacket});
  EXPECT_EQ(w.packets(), 4u);
  EXPECT_EQ(w.window_bytes, 4 * kPacket);
}

// A window of long packets may be more than can be tracked of small ones: that must not delay the effect of marks.
TEST(Caqm, marks_and_losses_reduce_what_can_be_tracked) {
  Window w({.most_packets = 40, .packet_bytes = kPacket});
  w.grant(30'000);
  w.sends(200, 100);
  EXPECT_EQ(w.packets(), 40u);
  Window other = w;
  w.mark(1);
  EXPECT_EQ(w.packets(), 39u);
  other.loss(100, 120);
  EXPECT_EQ(other.packets(), 20u);
}

TEST(Caqm, a_grant_never_narrows_the_window) {
  Window w({.most_packets = 40, .packet_bytes = kPacket});
  w.grant(30'000);
  w.sends(200, 100);  // forty of these are fewer bytes
  w.grant(32);
  EXPECT_EQ(w.window_bytes, 40'000u);
  w.sends(200);
  EXPECT_EQ(w.packets(), 40u) << "of long ones as many as before";
}

TEST(Caqm, each_mark_takes_half_a_packet) {
  Window w;
  w.mark(1);
  EXPECT_EQ(w.packets(), 9u);
  EXPECT_EQ(w.window_bytes, 9500u);
  w.mark(3);
  EXPECT_EQ(w.packets(), 8u);
}

TEST(Caqm, marks_leave_one_packet) {
  Window w;
  w.mark(17);
  EXPECT_EQ(w.window_bytes, 1500u);
  w.mark(1);
  EXPECT_EQ(w.window_bytes, 1000u);
  w.mark(UINT8_MAX);
  EXPECT_EQ(w.window_bytes, 1000u);
  EXPECT_EQ(w.packets(), 1u);
}

TEST(Caqm, a_grant_and_marks_in_one_report_both_count) {
  Window w;
  w.fed_back(w.v, w.path, {}, {.granted_bytes = 2000, .marked_packets = 1, .may_increase = true});
  EXPECT_EQ(w.window_bytes, 11'500u);
  EXPECT_FALSE(w.slow_start);
}

// ---- packets that are not as long as they may be ------------------------------------------------------------------

TEST(Caqm, the_window_allows_as_many_bytes_of_small_packets) {
  Window w;
  w.sends(200, 250);
  EXPECT_EQ(w.packets(), 40u);
  w.sends(200);
  EXPECT_EQ(w.packets(), 10u);
}

TEST(Caqm, a_mark_of_a_small_packet_takes_half_of_such_a_packet) {
  Window w;
  w.sends(200, 250);
  w.mark(8);
  EXPECT_EQ(w.window_bytes, 9000u);
}

TEST(Caqm, of_small_packets_no_window_is_less_than_a_long_one) {
  Window w;
  w.sends(200, 250);
  w.timeout(400);
  EXPECT_EQ(w.packets(), 4u);
}

TEST(Caqm, of_packets_longer_than_the_longest_there_is_still_one) {
  Window w;
  w.timeout(400);
  w.sends(200, 3 * kPacket);
  EXPECT_EQ(w.packets(), 1u);
}

// ---- slow start ---------------------------------------------------------------------------------------------------

TEST(Caqm, a_mark_ends_slow_start) {
  Window w;
  w.mark(1);
  EXPECT_FALSE(w.slow_start);
}

// Packets leave, their round trip passes, and so does the next, in which their answers come.
TEST(Caqm, a_refusal_ends_slow_start) {
  Window w;
  w.round();
  w.send();
  w.round();
  EXPECT_TRUE(w.slow_start) << "the answer may be under way";
  w.send();
  w.round();
  EXPECT_FALSE(w.slow_start);
  EXPECT_EQ(w.packets(), 10u) << "but takes nothing";
}

TEST(Caqm, one_grant_in_a_round_trip_is_no_refusal) {
  Window w;
  for (int i = 0; i < 50; ++i) {
    w.sends(10);
    w.grant(1000);
    w.sends(10);
    w.round();
  }
  EXPECT_TRUE(w.slow_start);
}

TEST(Caqm, nothing_is_refused_if_nothing_was_asked) {
  Window w;
  w.avoid(10);
  for (int i = 0; i < 9; ++i) w.sends(1), w.round();
  EXPECT_EQ(w.calm_round_trips, 9);
}

TEST(Caqm, slow_start_comes_back_after_ten_round_trips_without_mark_or_refusal) {
  Window w;
  w.mark(1);
  w.round();
  for (int i = 0; i < 9; ++i) w.round();
  EXPECT_FALSE(w.slow_start);
  w.round();
  EXPECT_TRUE(w.slow_start);
}

TEST(Caqm, each_disturbance_begins_the_count_all_over) {
  using Disturb = void (*)(Window&);
  const Disturb disturb[] = {
      [](Window& w) { w.mark(1); }, [](Window& w) { w.loss(w.round_until.value(), w.round_until.value() + 5); },
      [](Window& w) { w.timeout(w.round_until.value() + 5); },
      [](Window& w) { w.wish_round_trips = 2; },  // its answer has not come in time
  };
  for (const Disturb one : disturb) {
    Window w;
    w.avoid(10);
    for (int i = 0; i < 9; ++i) w.round();
    one(w);
    w.round();
    EXPECT_EQ(w.calm_round_trips, 0);
    for (int i = 0; i < 9; ++i) w.round();
    EXPECT_FALSE(w.slow_start);
    w.round();
    EXPECT_TRUE(w.slow_start);
  }
}

TEST(Caqm, a_round_trip_ends_when_what_left_in_it_is_acknowledged) {
  Window w;
  w.avoid(10);
  w.path.in_flight = 9;
  w.acknowledged(w.v, w.path, {}, 1, Psn(101));
  EXPECT_EQ(w.round_until, Psn(110));
  EXPECT_EQ(w.calm_round_trips, 1);
  w.acknowledged(w.v, w.path, {}, 9, Psn(110));
  EXPECT_EQ(w.calm_round_trips, 1);
  w.acknowledged(w.v, w.path, {}, 1, Psn(111));
  EXPECT_EQ(w.calm_round_trips, 2);
}

TEST(Caqm, round_trips_are_told_apart_across_the_wrap) {
  Window w;
  w.begin(w.v, w.path, Psn(0xFFFFFE));
  w.path.in_flight = 5;
  w.acknowledged(w.v, w.path, {}, 1, Psn(0xFFFFFF));
  EXPECT_EQ(w.round_until, Psn(4));
  w.acknowledged(w.v, w.path, {}, 5, Psn(4));
  EXPECT_EQ(w.calm_round_trips, 1);
  w.acknowledged(w.v, w.path, {}, 1, Psn(5));
  EXPECT_EQ(w.calm_round_trips, 2);
}

// ---- losses -------------------------------------------------------------------------------------------------------

TEST(Caqm, a_loss_halves_the_window_once_in_a_round_trip) {
  Window w;
  w.loss(100, 110);
  EXPECT_EQ(w.packets(), 5u);
  EXPECT_FALSE(w.slow_start);
  w.loss(109, 115);
  EXPECT_EQ(w.packets(), 5u);
  w.loss(110, 120);  // sent after the window was halved
  EXPECT_EQ(w.packets(), 2u);
}

TEST(Caqm, after_the_round_trip_a_loss_halves_it_again) {
  Window w;
  w.loss(100, 110);
  w.path.in_flight = 20;
  w.acknowledged(w.v, w.path, {}, 11, Psn(111));
  w.loss(111, 131);
  EXPECT_EQ(w.packets(), 2u);
}

TEST(Caqm, half_of_one_packet_is_one) {
  Window w;
  w.timeout(110);
  w.loss(110, 120);
  EXPECT_EQ(w.packets(), 1u);
}

TEST(Caqm, a_timeout_leaves_one_packet) {
  Window w;
  w.timeout(110);
  EXPECT_EQ(w.packets(), 1u);
  EXPECT_FALSE(w.slow_start);
  w.grant(1000);
  w.loss(105, 110);
  EXPECT_EQ(w.packets(), 2u) << "of what was in flight at the timeout";
}

// ---- other constants ----------------------------------------------------------------------------------------------

TEST(Caqm, goes_by_the_constants_that_it_is_given) {
  Constants constants;
  constants.caqm = {.initial_packets = 20, .increase_percent = 100, .decrease_percent = 25, .calm_round_trips = 3};
  Window w({.most_packets = kMost, .packet_bytes = kPacket, .constants = &constants});
  EXPECT_EQ(w.packets(), 20u);
  w.mark(4);
  EXPECT_EQ(w.packets(), 19u);
  w.round();
  for (int i = 0; i < 2; ++i) w.round();
  EXPECT_FALSE(w.slow_start);
  w.round();
  EXPECT_TRUE(w.slow_start);
  w.avoid(10);
  EXPECT_EQ(w.sends(101), 10);
}

// ---- hints (CCI) -------------------------------------------------------------------------------------------------

constexpr Path kHints{.most_packets = kMost, .packet_bytes = kPacket, .has_hints = true};
constexpr uint32_t kUnit = wire::kCaqmHintUnitBytes;

TEST(CaqmHints, in_slow_start_each_packet_asks_for_as_much_as_was_sent) {
  Window w(kHints);
  EXPECT_EQ(w.hint, kPacket / kUnit);
  w.send();
  EXPECT_EQ(w.hint, kPacket / kUnit);
  w.send(kUnit);
  EXPECT_LE(w.hint, 2) << "with what the last hint left over";
  EXPECT_GE(w.hint, 1);
}

TEST(CaqmHints, otherwise_each_packet_asks_for_its_part_of_half_a_packet_in_each_window) {
  Window w(kHints);
  w.avoid(10);
  uint32_t asked = 0;
  for (int i = 0; i < 1000; ++i) {
    w.send();
    asked += w.hint * kUnit;
    EXPECT_LE(w.hint, 2);
    EXPECT_EQ(w.v.ecn == wire::kEcnEct1, w.hint != 0);
  }
  EXPECT_NEAR(asked, 1000.0 / 10 / 2 * kPacket, kPacket);
}

TEST(CaqmHints, asks_only_while_half_of_the_window_is_used) {
  Window w(kHints);
  w.send_with(1);
  EXPECT_EQ(w.hint, 0);
  EXPECT_EQ(w.v.ecn, wire::kEcnEct0);
}

TEST(CaqmHints, have_eight_bits) {
  Window w({.most_packets = kMost, .packet_bytes = 9000, .has_hints = true});
  EXPECT_EQ(w.hint, UINT8_MAX);
  w.send(9000);
  EXPECT_EQ(w.hint, UINT8_MAX);
}

}  // namespace
}  // namespace ub::cc
