// SPDX-License-Identifier: Apache-2.0
//
// LDCP's window, by the rules of DCTCP (RFC 8257; UB Base Specification Rev 2.0, 6.6): the marked part of each round
// trip, what it makes of alpha and of the window, and what losses and timeouts do.
#include "lib/transport/cc/ldcp.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/transport/wire/network_header.h"

namespace ub::cc {
namespace {

constexpr uint16_t kMost = 2048;
constexpr uint32_t kWords = 512;  ///< of each packet

/// A flow whose first packet is 100, in the hands of a test. It always has as much in flight as it may.
struct Window : Ldcp {
  explicit Window(uint32_t next = 100) : until(next) { begin(v, path, until); }
  /// Beyond slow start, with a round trip that has just begun.
  Window(uint32_t packets, uint32_t alpha_, uint32_t next) : Window(next) {
    v.window_packets = static_cast<uint16_t>(packets);
    starting = false;
    alpha = alpha_ & 0xFFFF;
    round_until = Psn(next) + packets;
  }

  uint32_t packets() const { return v.window_packets; }
  /// In units of 1/kPacket.
  uint32_t exact() const { return packets() * kPacket + fraction; }

  void feed(uint32_t received, uint32_t marked) {
    total.received_words += received * kWords;
    total.marked_words += marked * kWords;
    fed_back(v, path, {}, total);
  }
  void ack(uint32_t packets, uint32_t in_flight) {
    path.in_flight = in_flight;
    acknowledged(v, path, {}, packets, until += packets);
  }
  /// One acknowledgement of so many packets, of which so many were marked; all others of the window are in flight.
  void hear(uint32_t received, uint32_t marked = 0) {
    feed(received, marked);
    ack(received, packets() - std::min(packets(), received));
  }
  /// What was in flight when the round trip began is acknowledged, and the first packet that left in it.
  void round(uint32_t marked = 0) {
    const uint32_t left = round_until.distance(until) + 1;
    hear(left, marked);
  }
  void loss(uint32_t first, uint32_t next) { lost(v, path, {}, {Psn(first), Psn(next)}); }
  void timeout(uint32_t next) { timed_out(v, path, {}, Psn(next)); }

  Path path{.most_packets = kMost};
  Psn until;  ///< acknowledged
  Feedback total;
  Verdict v;
};

Window beyond_slow_start(uint32_t packets, uint32_t alpha) { return {packets, alpha, 100}; }

constexpr uint32_t kOne = Ldcp::kAlphaOne;
constexpr uint32_t kPacket = Ldcp::kPacket;

// ---- begin -----------------------------------------------------------------------------------------------------

TEST(Ldcp, begins_with_ten_packets_whose_data_may_be_marked) {
  Window w;
  EXPECT_EQ(w.packets(), 10u);
  EXPECT_EQ(w.v.ecn, wire::kEcnEct0);
  EXPECT_EQ(w.v.next_packet, Instant{});
  EXPECT_TRUE(w.v.timer_at.is_never());
}

TEST(Ldcp, a_new_flow_forgets_the_one_before) {
  Window w = beyond_slow_start(40, kOne / 2);
  w.feed(40, 20);
  w.loss(100, 140);
  w.begin(w.v, w.path, Psn(7));
  EXPECT_EQ(w.exact(), 10 * kPacket);
  EXPECT_EQ(w.alpha, kOne);
  EXPECT_TRUE(w.starting);
  EXPECT_FALSE(w.halved);
  EXPECT_EQ(w.received_words + w.marked_words + w.received_before + w.marked_before, 0u);
  EXPECT_EQ(w.round_until, Psn(7));
}

// ---- slow start ------------------------------------------------------------------------------------------------

TEST(Ldcp, slow_start_doubles_the_window_in_a_round_trip) {
  Window w;
  w.hear(4);
  EXPECT_EQ(w.packets(), 14u);
  w.hear(6);
  EXPECT_EQ(w.packets(), 20u);
  w.hear(20);
  EXPECT_EQ(w.packets(), 40u);
  EXPECT_EQ(w.alpha, kOne) << "nothing is learnt in slow start";
}

TEST(Ldcp, the_first_mark_halves_the_window_and_ends_slow_start) {
  Window w;
  w.hear(30);
  ASSERT_EQ(w.packets(), 40u);
  w.hear(2, 1);
  EXPECT_EQ(w.packets(), 20u);
  EXPECT_FALSE(w.starting);
  w.hear(1);
  EXPECT_EQ(w.packets(), 20u) << "one packet in a round trip, not with each acknowledgement";
}

TEST(Ldcp, the_round_trip_after_slow_start_changes_only_alpha) {
  Window w;
  w.hear(10);
  w.hear(1, 1);
  ASSERT_EQ(w.packets(), 10u);
  Window calm = w;
  w.round(1);
  EXPECT_EQ(w.packets(), 10u) << "what left before was too much, and is paid for";
  EXPECT_LT(w.alpha, kOne);
  calm.round();
  EXPECT_EQ(calm.packets(), 10u) << "it heard of packets of the larger window only";
  calm.round();
  EXPECT_EQ(calm.packets(), 11u);
  w.round(1);
  EXPECT_LT(w.exact(), 10 * kPacket);
}

// ---- the marked part of a round trip ---------------------------------------------------------------------------

TEST(Ldcp, grows_by_one_packet_in_a_round_trip_without_marks) {
  Window w = beyond_slow_start(20, kOne / 2);
  for (uint32_t packets = 20; packets < 25; ++packets) {
    EXPECT_EQ(w.packets(), packets);
    w.round();
  }
}

TEST(Ldcp, a_round_trip_ends_when_the_psn_that_was_next_is_passed) {
  Window w = beyond_slow_start(20, 0);
  w.hear(19);
  EXPECT_EQ(w.packets(), 20u);
  w.hear(1);
  EXPECT_EQ(w.until, w.round_until);
  EXPECT_EQ(w.packets(), 20u) << "the first packet that left in it is in flight";
  w.hear(1);
  EXPECT_EQ(w.packets(), 21u);
  EXPECT_EQ(w.round_until, w.until + 19) << "what was in flight when it began";
}

TEST(Ldcp, a_window_of_one_packet_has_a_round_trip_with_each_packet) {
  Window w = beyond_slow_start(1, 0);
  w.hear(1);
  EXPECT_EQ(w.packets(), 1u);
  w.hear(1);
  EXPECT_EQ(w.packets(), 2u);
}

TEST(Ldcp, alpha_follows_the_marked_part_by_a_sixteenth) {
  Window w = beyond_slow_start(20, 0);
  w.feed(10, 4);
  w.round(3);  // 21 packets more
  const uint32_t part = 7 * kOne / 31;
  EXPECT_EQ(w.alpha, part / 16);
  const uint32_t before = w.alpha;
  w.round();
  EXPECT_EQ(w.alpha, before - (before + 15) / 16) << "rounded down";
}

TEST(Ldcp, alpha_reaches_nothing_and_almost_all) {
  Window calm = beyond_slow_start(20, kOne);
  for (int i = 0; i < 500; ++i) calm.round();
  EXPECT_EQ(calm.alpha, 0u);
  Window marked = beyond_slow_start(20, 0);
  for (int i = 0; i < 500; ++i) marked.round(marked.round_until.distance(marked.until) + 1);
  EXPECT_EQ(marked.alpha, kOne - 15);
  EXPECT_EQ(marked.packets(), 1u);
}

TEST(Ldcp, a_marked_round_trip_takes_half_of_alpha) {
  Window w = beyond_slow_start(20, kOne);
  w.round(21);  // all: alpha stays one
  EXPECT_EQ(w.alpha, kOne);
  EXPECT_EQ(w.exact(), 10 * kPacket);
  Window little = beyond_slow_start(1000, kOne / 10);
  little.round(1);
  const uint64_t all = 1000 * kPacket;
  EXPECT_EQ(little.exact(), all - all * little.alpha / (2 * kOne));
}

TEST(Ldcp, one_mark_is_a_mark_however_many_packets_arrived) {
  Window w = beyond_slow_start(kMost, 0);
  w.total.marked_words = 1;
  w.round();
  EXPECT_EQ(w.packets(), kMost) << "alpha is nothing yet";
  w = beyond_slow_start(100, 0);
  w.total.marked_words = 1;
  w.round();
  EXPECT_EQ(w.packets(), 100u) << "but there is no growth";
}

// A cut by 1/64 of 3 packets is less than one packet. Whole packets alone would lose all of it, or take too much.
TEST(Ldcp, fractions_of_small_windows_add_up) {
  Window w = beyond_slow_start(3, kOne / 32);
  w.round(1);
  EXPECT_EQ(w.packets(), 2u);
  EXPECT_GT(w.fraction, kPacket / 2);
  const uint32_t after_cut = w.exact();
  w.round();
  EXPECT_EQ(w.exact(), after_cut + kPacket);
  for (int i = 0; i < 8; ++i) {
    const uint32_t before = w.exact();
    w.round(1);
    EXPECT_LT(w.exact(), before);
    EXPECT_GT(w.exact(), before * 3 / 4);
  }
}

TEST(Ldcp, never_falls_below_one_packet) {
  for (const uint32_t packets : {1, 2, 3}) {
    Window w = beyond_slow_start(packets, kOne);
    for (int i = 0; i < 10; ++i) {
      w.round(w.round_until.distance(w.until) + 1);
      EXPECT_GE(w.packets(), 1u);
    }
    EXPECT_EQ(w.exact(), kPacket);
    w.round();
    EXPECT_EQ(w.exact(), 2 * kPacket) << "nothing is owed";
  }
}

TEST(Ldcp, never_exceeds_what_a_sender_can_track) {
  Window w = beyond_slow_start(kMost - 1, 0);
  w.fraction = kPacket / 2;
  w.round();
  EXPECT_EQ(w.exact(), kMost * kPacket);
  w.round();
  EXPECT_EQ(w.exact(), kMost * kPacket);
  Window starting;
  for (int i = 0; i < 20; ++i) starting.hear(starting.packets());
  EXPECT_EQ(starting.exact(), kMost * kPacket);
  Window unlimited;
  unlimited.path.most_packets = kNoWindow;
  for (int i = 0; i < 20; ++i) unlimited.hear(unlimited.packets());
  EXPECT_EQ(unlimited.packets(), kNoWindow);
}

TEST(Ldcp, begins_with_no_more_than_a_sender_can_track) {
  Window w;
  w.path.most_packets = 4;
  w.begin(w.v, w.path, Psn(100));
  EXPECT_EQ(w.packets(), 4u);
}

// ---- only while it is used -------------------------------------------------------------------------------------

TEST(Ldcp, does_not_grow_while_less_than_half_is_in_flight) {
  Window w;
  w.ack(1, 3);
  EXPECT_EQ(w.packets(), 10u);
  w.ack(1, 4);  // five were
  EXPECT_EQ(w.packets(), 11u);

  Window later = beyond_slow_start(20, 0);
  later.round_until = later.until;
  later.ack(1, 8);
  EXPECT_EQ(later.packets(), 20u);
  later.round_until = later.until;
  later.ack(1, 9);
  EXPECT_EQ(later.packets(), 21u);
}

TEST(Ldcp, an_application_that_sends_one_packet_at_a_time_earns_three) {
  Window w;
  w.timeout(100);
  for (int i = 0; i < 10'000; ++i) {
    w.feed(1, 0);
    w.ack(1, 0);
  }
  EXPECT_EQ(w.packets(), 3u);
}

TEST(Ldcp, an_unused_window_still_shrinks) {
  Window w = beyond_slow_start(20, kOne);
  w.round_until = w.until;
  w.feed(1, 1);
  w.ack(1, 0);
  EXPECT_EQ(w.packets(), 10u);
}

// ---- what the receiver tells -----------------------------------------------------------------------------------

TEST(Ldcp, older_totals_are_ignored) {
  Window w = beyond_slow_start(20, 0);
  w.feed(20, 5);
  const Feedback newest = w.total;
  w.fed_back(w.v, w.path, {}, {.received_words = newest.received_words - 1});
  w.fed_back(w.v, w.path, {}, {.received_words = newest.received_words - 0x7FFFFFFF});
  w.fed_back(w.v, w.path, {}, {.received_words = newest.received_words, .marked_words = 1});
  EXPECT_EQ(w.received_words, newest.received_words);
  EXPECT_EQ(w.marked_words, newest.marked_words);
  w.fed_back(w.v, w.path, {}, {newest.received_words + 1, newest.marked_words + 1});
  EXPECT_EQ(w.received_words, newest.received_words + 1);
  EXPECT_EQ(w.marked_words, newest.marked_words + 1);
}

TEST(Ldcp, totals_wrap) {
  Window w = beyond_slow_start(20, 0);
  w.total = {.received_words = 0x7FFFFFFF, .marked_words = 0xFFFFFF00};
  w.fed_back(w.v, w.path, {}, w.total);
  w.total.received_words = 0xFFFFFF00;
  w.fed_back(w.v, w.path, {}, w.total);
  w.received_before = w.received_words;
  w.marked_before = w.marked_words;
  w.round(7);
  EXPECT_LT(w.received_words, 0xFFFFFF00u);
  EXPECT_LT(w.marked_words, 0xFFFFFF00u);
  EXPECT_EQ(w.alpha, 7 * kOne / 21 / 16);
}

TEST(Ldcp, more_marked_than_received_is_all) {
  Window w = beyond_slow_start(20, kOne);
  w.total.marked_words = 1u << 31;
  w.round();
  EXPECT_EQ(w.alpha, kOne);
  EXPECT_EQ(w.packets(), 10u);
}

TEST(Ldcp, acknowledgements_that_tell_nothing_are_not_marked) {
  Window w = beyond_slow_start(20, kOne / 2);
  w.ack(21, 19);
  EXPECT_EQ(w.alpha, kOne / 2 - kOne / 32);
  EXPECT_EQ(w.packets(), 21u);
}

TEST(Ldcp, what_is_told_changes_the_window_only_with_an_acknowledgement) {
  Window w = beyond_slow_start(20, kOne);
  w.feed(100, 100);
  EXPECT_EQ(w.packets(), 20u);
}

// ---- losses and timeouts ---------------------------------------------------------------------------------------

TEST(Ldcp, a_loss_halves_it_and_ends_slow_start) {
  Window w;
  w.hear(30);
  w.loss(130, 170);
  EXPECT_EQ(w.packets(), 20u);
  EXPECT_FALSE(w.starting);
  w = beyond_slow_start(5, 0);
  w.loss(100, 105);
  EXPECT_EQ(w.exact(), 5 * kPacket / 2);
}

TEST(Ldcp, losses_of_one_round_trip_halve_it_once) {
  Window w = beyond_slow_start(40, 0);
  w.loss(100, 140);
  w.loss(120, 150);
  w.loss(139, 150);
  EXPECT_EQ(w.packets(), 20u);
  w.loss(140, 160);  // it left after the window was halved
  EXPECT_EQ(w.packets(), 10u);
}

TEST(Ldcp, marks_of_the_packets_that_left_before_a_loss_change_only_alpha) {
  Window w = beyond_slow_start(40, kOne);
  w.loss(100, 140);
  w.round(41);
  EXPECT_EQ(w.packets(), 20u);
  EXPECT_EQ(w.alpha, kOne);
  w.round(1);
  EXPECT_LT(w.packets(), 20u);
}

TEST(Ldcp, a_loss_after_the_end_of_slow_start_is_of_the_same_round_trip) {
  Window w;
  w.hear(30);
  w.hear(1, 1);
  ASSERT_EQ(w.packets(), 20u);
  const Psn next = w.round_until;
  w.loss((next - 1).value(), (next + 5).value());
  EXPECT_EQ(w.packets(), 20u);
  w.loss(next.value(), (next + 5).value());
  EXPECT_EQ(w.packets(), 10u);
}

TEST(Ldcp, a_cut_by_marks_does_not_spare_the_cut_by_a_loss) {
  Window w = beyond_slow_start(40, kOne);
  w.round(41);
  ASSERT_EQ(w.packets(), 20u);
  w.loss(w.until.value(), w.round_until.value());
  EXPECT_EQ(w.packets(), 10u);
}

TEST(Ldcp, a_timeout_leaves_one_packet_and_starts_slowly_again) {
  Window w = beyond_slow_start(40, kOne / 4);
  w.fraction = 77;
  w.timeout(140);
  EXPECT_EQ(w.exact(), kPacket);
  EXPECT_EQ(w.alpha, kOne / 4);
  w.loss(139, 150);
  EXPECT_TRUE(w.starting) << "it was in flight at the timeout";
  w.hear(1);
  w.hear(2);
  w.hear(4);
  EXPECT_EQ(w.packets(), 8u);
}

TEST(Ldcp, marks_of_the_packets_that_left_before_a_timeout_do_not_end_slow_start) {
  Window w = beyond_slow_start(40, 0);
  w.timeout(140);
  w.hear(2, 1);
  EXPECT_TRUE(w.starting);
  w.hear(38, 38);
  w.hear(1, 1);  // the round trip ends
  EXPECT_TRUE(w.starting);
  w.hear(1, 1);
  EXPECT_FALSE(w.starting);
}

TEST(Ldcp, round_trips_are_told_apart_across_the_wrap) {
  Window w(40, 0, 0xFFFFF0);
  w.round();
  EXPECT_EQ(w.packets(), 41u);
  EXPECT_LT(w.until.value(), 0x100u);
  Window lost(40, 0, 0xFFFFF0);
  lost.loss(0xFFFFF0, 8);
  EXPECT_EQ(lost.packets(), 20u);
  lost.loss(7, 20);
  EXPECT_EQ(lost.packets(), 20u);
  lost.loss(8, 20);
  EXPECT_EQ(lost.packets(), 10u);
}

// Half of all PSNs later, what was ahead of them is behind: a flow that never rests must not remember it.
TEST(Ldcp, a_loss_long_after_a_timeout_halves_the_window) {
  for (uint32_t millions : {0u, 5u, 9u, 12u, 15u}) {
    SCOPED_TRACE(millions);
    Window w;
    w.timeout(120);
    for (uint32_t i = 0; i < 100 + millions * 1000; ++i) w.hear(1000);
    ASSERT_EQ(w.packets(), kMost);
    w.loss(w.until.value(), (w.until + 100).value());
    EXPECT_EQ(w.packets(), kMost / 2);
  }
}

// ---- other constants -------------------------------------------------------------------------------------------

TEST(Ldcp, goes_by_the_constants_that_it_is_given) {
  Constants constants;
  constants.ldcp = {.initial_packets = 3, .gain_shift = 1};
  Window w;
  w.path.constants = &constants;
  w.begin(w.v, w.path, Psn(100));
  EXPECT_EQ(w.packets(), 3u);
  w.starting = false;
  w.alpha = 0;
  w.round_until = w.until;
  w.hear(1, 1);
  EXPECT_EQ(w.alpha, kOne / 2);
  constants.ldcp.gain_shift = 15;
  w.alpha = 0;
  w.round(w.round_until.distance(w.until) + 1);
  EXPECT_EQ(w.alpha, 1u);
}

}  // namespace
}  // namespace ub::cc
