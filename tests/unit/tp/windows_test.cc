// SPDX-License-Identifier: Apache-2.0
//
// What may leave on a wire that may lose packets (transmit_state.h; UB Base Specification Rev 2.0, 6.4.2): how many
// packets are on their way, by the window of the peer and that of the flow, and which ask for an acknowledgement.
#include "tests/unit/tp/lossy.h"

namespace ub::tp {
namespace {

// ---- windows ---------------------------------------------------------------------------------------------------

TEST(OnTheirWay, what_has_arrived_and_what_waits_to_go_again_leaves_room_in_the_window_of_the_flow) {
  Lossy s(100, 0);
  s.ch().send_window = 8;
  s.send_one_by_one(8);
  EXPECT_FALSE(window_open(*s.s, s.ch()));
  s.sack(99, {101});
  EXPECT_EQ(on_their_way(s.recovery(), numbered(s.ch())), 6u) << "101 has arrived, 100 is lost";
  EXPECT_TRUE(window_open(*s.s, s.ch()));
  s.resend();
  EXPECT_EQ(on_their_way(s.recovery(), numbered(s.ch())), 7u);
}

TEST(OnTheirWay, the_window_of_the_peer_counts_from_the_oldest_one_on) {
  Lossy s(100, 0);
  s.ch().send_window = s.ch().agreed_window = 8;
  s.send_one_by_one(8);
  s.sack(99, psns(101, 7));
  EXPECT_EQ(on_their_way(s.recovery(), numbered(s.ch())), 0u);
  EXPECT_FALSE(window_open(*s.s, s.ch()));
  EXPECT_EQ(s.resend(), Psns{100});
}

TEST(OnTheirWay, retransmissions_obey_the_window_of_the_flow) {
  Lossy s(100, 0);
  s.send_one_by_one(10);
  s.ch().send_window = 2;
  s.timeout();
  EXPECT_EQ(s.resend(), (Psns{100, 101}));
  s.ack(100);
  EXPECT_EQ(s.resend(), Psns{102});
}

TEST(OnTheirWay, fewer_than_the_window_of_the_flow_let_another_one_leave) {
  Lossy s(100, 0);
  s.send_one_by_one(8);
  s.sack(99, {101});
  ASSERT_EQ(on_their_way(s.recovery(), numbered(s.ch())), 6u);
  s.ch().send_window = 6;
  EXPECT_FALSE(window_open(*s.s, s.ch()));
  s.ch().send_window = 7;
  EXPECT_TRUE(window_open(*s.s, s.ch()));
}

TEST(OnTheirWay, packets_that_wait_for_memory_are_numbered_too) {
  Lossy s;
  s.send(2, false);
  s.ch().held_new = 3;
  EXPECT_EQ(numbered(s.ch()), 5u);
}

TEST(OnTheirWay, if_there_is_none_one_retransmission_leaves_through_any_window) {
  for (const uint32_t window : {0u, 1u}) {
    Lossy s;
    s.send_one_by_one(3);
    s.timeout();
    s.ch().send_window = window;
    EXPECT_EQ(s.resend(), Psns{100});
  }
}

TEST(OnTheirWay, what_a_report_shows_to_be_lost_obeys_the_window_of_the_flow) {
  Lossy s(100, 0);
  s.send_one_by_one(4);
  s.sack(99, {103});
  s.ch().send_window = 1;
  EXPECT_EQ(s.resend(), Psns{100});
  s.ch().send_window = 3;
  EXPECT_EQ(s.resend(), (Psns{101, 102}));
}

TEST(OnTheirWay, after_probes_a_timeout_obeys_the_window_of_the_flow_too) {
  Lossy s;
  s.ch().asked = Psn(102);
  s.send_one_by_one(3);
  s.timer();
  s.timeout();
  EXPECT_EQ(s.ch().probes, 1);
  s.ch().send_window = 1;
  EXPECT_EQ(s.resend(), Psns{100});
}

TEST(OnTheirWay, retransmissions_obey_the_rate_of_the_flow) {
  Lossy s(100, 0);
  s.send_one_by_one(4);
  s.sack(99, {101});
  s.ch().paced = true;
  EXPECT_TRUE(s.resend().empty());
  s.ch().paced = false;
  EXPECT_EQ(s.resend(), Psns{100});
}

// ---- questions -------------------------------------------------------------------------------------------------

TEST(AsksForAck, the_first_four_of_a_flight_and_each_32nd_one_where_packets_may_be_lost) {
  Lossy s(101);
  std::vector<uint32_t> asking;
  for (int i = 0; i < 40; ++i) {
    if (asks_for_ack(*s.s, s.ch(), false)) asking.push_back(s.ch().next_psn.value());
    s.send();
  }
  EXPECT_EQ(asking, (std::vector<uint32_t>{101, 102, 103, 104, 128}));
  s.ch().asks_soon = false;
  s.ack(140);
  EXPECT_FALSE(asks_for_ack(*s.s, s.ch(), false));
}

constexpr uint32_t kPacketsUntilCalm = CoreConfig{}.questions_until_calm * kPacketsPerQuestion;

// Sends packets of a short round trip, each one when the one before it has arrived; the PSNs of those that asked.
Psns send_in_turn(Lossy& s, uint32_t packets, Duration round_trip = kRoundTripOfCalm) {
  s.ch().round_trip.smoothed = round_trip;
  Psns asking;
  for (uint32_t i = 0; i < packets; ++i) {
    const Psn psn = s.ch().next_psn;
    if (asks_for_ack(*s.s, s.ch(), false)) asking.push_back(psn.value());
    s.send();
    s.ch().timing = false;  // the round trip stays what it is said to be
    s.ack(psn.value());
  }
  return asking;
}

TEST(AsksForAck, each_32nd_one_alone_after_many_packets_of_which_none_went_again) {
  Lossy s(1);
  EXPECT_EQ(send_in_turn(s, kPacketsUntilCalm - 1), psns(1, kPacketsUntilCalm - 1));
  EXPECT_EQ(send_in_turn(s, 65), (Psns{kPacketsUntilCalm, kPacketsUntilCalm + 32, kPacketsUntilCalm + 64}));
}

// The newest packet is sent, is not acknowledged, and goes again.
void repeat_one(Lossy& s) {
  asks_for_ack(*s.s, s.ch(), false);
  s.send();
  for (int i = 0; i < 2 && s.ch().recovery == 0; ++i) s.timer();
  const uint32_t psn = s.ch().next_psn.value() - 1;
  EXPECT_EQ(s.resend(), Psns{psn});
  s.ack(psn);
}

TEST(AsksForAck, the_first_of_a_flight_again_for_some_time_after_a_packet_that_went_again) {
  constexpr uint32_t kPacketsBack = kQuestionsBack * kPacketsPerQuestion;
  Lossy s(1);
  send_in_turn(s, kPacketsUntilCalm);
  EXPECT_EQ(send_in_turn(s, 1), Psns{});
  repeat_one(s);  // 1026
  EXPECT_EQ(send_in_turn(s, kPacketsBack - 3), psns(1027, kPacketsBack - 3));
  EXPECT_EQ(send_in_turn(s, 2), Psns{kPacketsUntilCalm + kPacketsBack});
}

TEST(AsksForAck, many_packets_that_went_again_do_not_make_up_for_more_than_there_is) {
  Lossy s(1);
  send_in_turn(s, kPacketsUntilCalm);
  for (int i = 0; i < 9; ++i) repeat_one(s);
  EXPECT_EQ(s.ch().calm, 0);
}

TEST(AsksForAck, a_channel_of_long_round_trips_is_never_calm) {
  Lossy s(1);
  const Duration longer = kRoundTripOfCalm + nanoseconds(1);
  EXPECT_EQ(send_in_turn(s, 2 * kPacketsUntilCalm, longer), psns(1, 2 * kPacketsUntilCalm));
  send_in_turn(s, kPacketsUntilCalm);
  EXPECT_EQ(send_in_turn(s, 64, longer).size(), 64u - 32 + 1) << "it is calm until the next question";
}

TEST(AsksForAck, a_calm_channel_asks_near_the_end_of_its_window_too) {
  Lossy s(1);
  send_in_turn(s, kPacketsUntilCalm);
  s.ch().send_window = 4;
  s.send_one_by_one(2);
  EXPECT_TRUE(asks_for_ack(*s.s, s.ch(), false));
}

TEST(AsksForAck, only_packets_that_ask_measure_the_round_trip) {
  Lossy s(101);
  s.ch().asked = Psn(103);
  s.send_one_by_one(2);
  EXPECT_FALSE(s.ch().timing);
  s.send();
  EXPECT_TRUE(s.ch().timing);
  EXPECT_EQ(s.ch().timed_psn, Psn(103));
}

// What arrives farther from the oldest packet than a bitmap reaches is acknowledged when a gap before it is filled.
TEST(AsksForAck, packets_beyond_the_reach_of_a_bitmap_measure_nothing) {
  for (const uint32_t beyond : {0u, 1u}) {
    Lossy s(100);
    s.send(wire::kSackMaxBits - 1 + beyond, false);
    s.ch().asked = s.ch().next_psn;
    s.send_more(1);
    EXPECT_EQ(s.ch().timing, beyond == 0);
  }
}

TEST(AsksForAck, the_newest_packet_that_did_is_known) {
  Lossy s(101);
  for (int i = 0; i < 40; ++i) {
    asks_for_ack(*s.s, s.ch(), false);
    s.send();
  }
  EXPECT_EQ(s.ch().asked, Psn(128)) << "those behind it did not";
}

}  // namespace
}  // namespace ub::tp
