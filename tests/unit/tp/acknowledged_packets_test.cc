// SPDX-License-Identifier: Apache-2.0
//
// What an acknowledgement means to the sender (UB Base Specification Rev 2.0, 6.4.2), and how much may be in flight
// (6.7.1). What goes again because of one is in retransmission_test.cc.
#include "tests/unit/tp/sender.h"
#include "tests/unit/transport/test_host.h"

namespace ub::tp {
namespace {

// 6.7.1: one number per packet, in order, modulo 2^24; TPMSN one per message.
TEST(Sender, packets_are_numbered_in_order_across_the_wrap) {
  Sender s(0xFFFFFE);
  EXPECT_EQ(s.send(3).first_psn, Psn(0xFFFFFE));
  EXPECT_EQ(s.ch().next_psn, Psn(1));
  EXPECT_EQ(s.ch().outstanding(), 3u);
  const TxMessage& next = s.send();
  EXPECT_EQ(next.first_psn, Psn(1));
  EXPECT_EQ(next.tpmsn, Tpmsn(1));
  EXPECT_EQ(next.packets, 1u);
}

// 6.4.2: cumulative.
TEST(Sender, an_acknowledgement_covers_all_up_to_its_psn) {
  Sender s(100);
  s.send(2);
  s.send(3);
  s.ack(102);
  EXPECT_EQ(s.ch().oldest_unacked, Psn(103));
  EXPECT_EQ(s.ch().outstanding(), 2u);
  EXPECT_EQ(s.ch().in_flight.size(), 1u) << "the first message is done with, the second is not";
  s.ack(104);
  EXPECT_EQ(s.ch().outstanding(), 0u);
  EXPECT_TRUE(s.ch().in_flight.empty());
  EXPECT_EQ(s.s->messages.in_use(), 0u);
}

TEST(Sender, acknowledgements_work_across_the_wrap) {
  Sender s(0xFFFFFE);
  s.send_one_by_one(4);
  s.ack(0xFFFFFF);
  EXPECT_EQ(s.ch().oldest_unacked, Psn(0));
  s.ack(1);
  EXPECT_EQ(s.ch().outstanding(), 0u);
}

// 6.4.2: valid from oldest - 1, a repeat, to the newest sent.
TEST(Sender, an_acknowledgement_of_the_future_is_ignored) {
  Sender s(100);
  s.send(3);
  s.ack(103);
  EXPECT_EQ(s.ch().outstanding(), 3u);
  EXPECT_EQ(s.count(Counter::kTpRxStaleAck), 1u);
  s.ack(102);
  EXPECT_EQ(s.ch().outstanding(), 0u);
}

// 6.2.3: the bitmap has the size that it says; what lies behind it is something else.
TEST(Sender, bits_behind_the_bitmap_of_a_selective_acknowledgement_say_nothing) {
  Sender s(100);
  s.send(70);
  std::byte bytes[wire::sack_size(1)];
  std::memset(bytes, 0xFF, sizeof bytes);
  const uint64_t bitmap[wire::kSackMaxWords] = {1};
  wire::write_sack(bytes, 0, Psn(99), bitmap);
  wire::SackView view;
  ASSERT_EQ(wire::SackView::read(bytes, sizeof bytes, view), wire::Drop::kNone);
  wire::RtpHeader rtp;
  rtp.psn = Psn(99);
  EXPECT_EQ(on_sack(*s.s, s.channel, s.now, rtp, view).lost, 0u);
  EXPECT_EQ(s.resend(), Psns{});
}

TEST(Sender, acknowledgements_are_counted) {
  Sender s(100);
  s.send(3);
  s.ack(100);
  s.ack(101);
  EXPECT_EQ(s.count(Counter::kTpRxAck), 2u);
}

TEST(Sender, the_packets_that_an_acknowledgement_covers_are_noted) {
  Sender s(0xFFFFFE);
  TestHost host;
  s.s->looker.begin(host);
  s.send(4);
  s.ack(0);
  EXPECT_EQ(host.noted(Stage::kPacketsAcknowledged),
            (std::vector<Note>{{Stage::kPacketsAcknowledged, s.channel, 0xFFFFFE, 0}}));
}

// 6.2.1: of the errors that an acknowledgement may report, one alone is about a PSN.
TEST(Sender, a_gap_is_reported_by_the_error_that_names_a_psn_and_by_no_other) {
  const auto reports = [](uint8_t rspst, uint8_t rspinfo) {
    wire::RtpHeader rtp;
    rtp.rspst = rspst;
    rtp.rspinfo = rspinfo;
    return reports_gap(rtp);
  };
  EXPECT_TRUE(reports(wire::kRspError, wire::kErrPsn));
  EXPECT_FALSE(reports(wire::kRspError, wire::kErrUnsupportedRequest));
  EXPECT_FALSE(reports(wire::kRspError, wire::kErrRemoteAbort));
  EXPECT_FALSE(reports(wire::kRspOk, wire::kErrPsn));
}

// What came of it, for whoever put the messages in.
TEST(Sender, messages_of_which_packets_were_acknowledged_are_walked_oldest_first) {
  Sender s(0xFFFFFE);
  for (int i = 0; i < 3; ++i) s.send(2);
  using W = Sender::Walked;
  s.ack(0);
  EXPECT_EQ(s.acknowledged.from, Psn(0xFFFFFE));
  EXPECT_EQ(s.acknowledged.to, Psn(1));
  EXPECT_EQ(s.acknowledged.lost, 0u);
  EXPECT_EQ(s.walked, (std::vector<W>{{0xFFFFFE, true}, {0, false}})) << "half of the second, nothing of the third";
  s.ack(0);
  EXPECT_EQ(s.acknowledged.from, s.acknowledged.to) << "a repeat is no news";
  EXPECT_TRUE(s.walked.empty());
  s.ack(1);
  EXPECT_EQ(s.walked, (std::vector<W>{{0, true}}));
  s.ack(3);
  EXPECT_EQ(s.walked, (std::vector<W>{{2, true}}));
  EXPECT_TRUE(s.ch().in_flight.empty());
}

TEST(Sender, a_message_that_is_not_complete_is_never_walked_as_whole) {
  Sender s(100);
  s.send(1);
  s.send(2, false);
  s.ack(102);
  EXPECT_EQ(s.walked, (std::vector<Sender::Walked>{{100, true}, {101, false}}));
  s.send_more(1);
  s.ack(103);
  EXPECT_EQ(s.walked, (std::vector<Sender::Walked>{{101, true}}));
}

TEST(Sender, a_stale_acknowledgement_says_nothing) {
  Sender s(100);
  s.send(3);
  s.ack(103);
  EXPECT_EQ(s.acknowledged.from, s.acknowledged.to);
  s.sack(103, {104});
  EXPECT_EQ(s.acknowledged.from, s.acknowledged.to);
  s.nak(103);
  EXPECT_EQ(s.acknowledged.from, s.acknowledged.to);
  EXPECT_EQ(s.ch().in_flight.size(), 1u);
}

// 6.4.2.3
TEST(Sender, what_goes_again_because_of_a_report_is_told) {
  Sender s(100);
  s.send_one_by_one(6);
  s.sack(100, {102, 104});
  EXPECT_EQ(s.acknowledged.to, Psn(101));
  EXPECT_EQ(s.acknowledged.lost, 2u) << "101 and 103";
  s.sack(100, {102, 104});
  EXPECT_EQ(s.acknowledged.lost, 0u) << "they are on their way";
  Sender n(100);
  n.send_one_by_one(6);
  n.nak(102);
  EXPECT_EQ(n.acknowledged.to, Psn(102));
  EXPECT_EQ(n.acknowledged.lost, 4u) << "a NAK says nothing of those behind it";
  EXPECT_EQ(n.walked.size(), 2u);
}

TEST(Sender, an_acknowledgement_of_the_past_is_ignored) {
  Sender s(100);
  s.send(5);
  s.ack(102);
  for (uint32_t old : {101u, 100u, 99u, 0u, 0xFFFFFFu}) s.ack(old);
  EXPECT_EQ(s.ch().oldest_unacked, Psn(103));
  EXPECT_EQ(s.count(Counter::kTpRxStaleAck), 5u);
}

TEST(Sender, a_repeated_acknowledgement_is_no_news_and_not_stale) {
  Sender s(100);
  s.send(3);
  s.ack(100);
  const Instant rto_at = s.ch().rto_at;
  s.pass(microseconds(10));
  s.ack(100);
  EXPECT_EQ(s.ch().oldest_unacked, Psn(101));
  EXPECT_EQ(s.ch().rto_at, rto_at) << "nothing new: the timer goes on";
  EXPECT_EQ(s.count(Counter::kTpRxStaleAck), 0u);
}

TEST(Sender, with_nothing_in_flight_only_a_repeat_is_acceptable) {
  Sender s(100);
  s.ack(99);
  EXPECT_EQ(s.count(Counter::kTpRxStaleAck), 0u);
  s.ack(100);
  EXPECT_EQ(s.count(Counter::kTpRxStaleAck), 1u);
  EXPECT_EQ(s.ch().oldest_unacked, Psn(100));
}

// A selective one and a NAK obey the same limits.
TEST(Sender, what_selective_and_negative_ones_say_of_the_future_is_ignored) {
  Sender s(100);
  s.send(3);
  s.sack(103, {105});
  s.nak(104);
  EXPECT_EQ(s.ch().outstanding(), 3u);
  EXPECT_EQ(s.count(Counter::kTpRxStaleAck), 2u);
  EXPECT_EQ(s.ch().recovery, 0u);
  s.nak(103);  // the next one to be sent is not in flight: it cannot be missing
  EXPECT_EQ(s.ch().outstanding(), 3u);
  EXPECT_TRUE(s.resend().empty());
}

TEST(Sender, a_nak_acknowledges_what_is_before_it) {
  Sender s(100);
  s.send_one_by_one(4);
  s.nak(102);
  EXPECT_EQ(s.ch().oldest_unacked, Psn(102));
}

// A message of which more packets follow stays, though all that were sent are acknowledged.
TEST(Sender, a_half_sent_message_stays_in_flight) {
  Sender s(100);
  s.send(2, false);
  s.ack(101);
  EXPECT_EQ(s.ch().in_flight.size(), 1u);
  EXPECT_EQ(s.ch().outstanding(), 0u);
  s.send_more(1);
  s.ack(102);
  EXPECT_TRUE(s.ch().in_flight.empty());
}

// Nothing sent of it yet, and what is acknowledged lies in front of it.
TEST(Sender, a_begun_message_is_not_popped_with_the_one_before_it) {
  Sender s(100);
  s.send(2);
  begin_message(*s.s, s.ch());
  s.ack(101);
  EXPECT_EQ(s.ch().in_flight.size(), 1u);
}

TEST(Sender, the_message_of_a_packet_is_found_by_its_psn) {
  Sender s(0xFFFFFE);
  const TxMessage& first = s.send(3);
  const TxMessage& second = s.send(1);
  EXPECT_EQ(message_at(*s.s, s.ch(), Psn(0xFFFFFE)), &first);
  EXPECT_EQ(message_at(*s.s, s.ch(), Psn(0)), &first);
  EXPECT_EQ(message_at(*s.s, s.ch(), Psn(1)), &second);
  EXPECT_EQ(message_at(*s.s, s.ch(), Psn(2)), nullptr) << "not sent yet";
  EXPECT_EQ(message_at(*s.s, s.ch(), Psn(0xFFFFFD)), nullptr);
  s.ack(0);
  EXPECT_EQ(message_at(*s.s, s.ch(), Psn(0)), nullptr) << "acknowledged";
}

TEST(Sender, without_room_for_its_descriptor_no_message_begins) {
  Sender s;
  while (s.s->messages.alloc() != 0) {
  }
  EXPECT_EQ(begin_message(*s.s, s.ch()), nullptr);
  EXPECT_TRUE(s.ch().in_flight.empty());
}

// ---- the window ------------------------------------------------------------------------------------------------

// 6.7.1
TEST(Window, is_closed_when_so_many_packets_are_in_flight) {
  Sender s(0xFFFFF0);
  s.ch().send_window = 128;
  s.send_one_by_one(127);
  EXPECT_TRUE(window_open(*s.s, s.ch()));
  s.send();
  EXPECT_FALSE(window_open(*s.s, s.ch()));
  s.ack(0xFFFFF0);
  EXPECT_TRUE(window_open(*s.s, s.ch()));
}

constexpr uint16_t kInitialPackets = cc::kUsualConstants.loss_window.initial_packets;

TEST(Window, of_congestion_holds_where_packets_can_be_lost) {
  Sender s;
  s.ch().agreed_window = 128;
  s.govern(algorithm_for(*s.s, wire::CcAlgorithm::kNone, true));
  EXPECT_EQ(s.ch().send_window, 128u);
  s.govern(algorithm_for(*s.s, wire::CcAlgorithm::kNone, false));
  EXPECT_EQ(s.ch().send_window, kInitialPackets);
  s.ch().agreed_window = 20;
  s.govern(algorithm_for(*s.s, wire::CcAlgorithm::kNone, false));
  EXPECT_EQ(s.ch().send_window, 20u) << "the smaller one rules";
}

// 6.4.2: A on retransmissions, and when a quarter of the window or less is left.
TEST(Window, acknowledgements_are_demanded_when_three_quarters_are_used) {
  Sender s(100);
  s.ch().send_window = 128;
  s.send_one_by_one(94);
  EXPECT_FALSE(asks_for_ack(*s.s, s.ch(), false));
  s.send();
  EXPECT_TRUE(asks_for_ack(*s.s, s.ch(), false)) << "with this one 96 of 128 are in flight";
  s.ack(194);
  EXPECT_FALSE(asks_for_ack(*s.s, s.ch(), false));
  EXPECT_TRUE(asks_for_ack(*s.s, s.ch(), true));
}

TEST(Window, the_smallest_one_demands_an_acknowledgement_before_it_closes) {
  Sender s(100);
  s.ch().send_window = 2;
  EXPECT_FALSE(asks_for_ack(*s.s, s.ch(), false));
  s.send();
  EXPECT_TRUE(asks_for_ack(*s.s, s.ch(), false));
}

// What is acknowledged makes the congestion window grow; on a lossless link nobody counts.
TEST(Window, of_congestion_grows_by_what_is_acknowledged) {
  Sender s(100);
  s.govern(cc::Algorithm::kLossWindow);
  s.send_one_by_one(8);
  s.ack(102);
  EXPECT_EQ(s.ch().send_window, kInitialPackets + 3u);
  s.ack(107);
  EXPECT_EQ(s.ch().send_window, kInitialPackets + 8u);
  Sender lossless(100);
  lossless.send();
  lossless.ack(100);
  EXPECT_EQ(lossless.ch().send_window, lossless.ch().agreed_window);
}

TEST(Window, a_channel_that_may_go_on_has_its_turn) {
  Sender s(100);
  s.send(2);
  EXPECT_TRUE(s.s->active.empty());
  s.ack(100);
  EXPECT_TRUE(s.ch().on_active_list);
  EXPECT_EQ(s.s->active.back(), s.channel);
}

// The window counts what is on its way: what has arrived beyond a gap makes room for as many.
TEST(Window, a_channel_that_may_go_on_because_of_what_arrived_beyond_a_gap_has_its_turn) {
  Sender s(100);
  s.send(4);
  s.ch().send_window = 4;
  s.ch().tolerance.begin(ReorderTolerance::kLeastPackets);
  ASSERT_FALSE(window_open(*s.s, s.ch()));
  s.sack(99, {101});
  ASSERT_EQ(s.acknowledged.lost, 0u);
  ASSERT_TRUE(window_open(*s.s, s.ch()));
  EXPECT_TRUE(s.ch().on_active_list);
  take_active(*s.s);
  s.sack(99, {101});
  EXPECT_FALSE(s.ch().on_active_list) << "no news";
}

// ---- time ------------------------------------------------------------------------------------------------------

// Any acknowledgement that fits shows that the peer lives, be it nothing new: it may have no room yet.
TEST(Progress, a_repeat_is_a_sign_of_life_and_a_stale_one_is_none) {
  Sender s(100);
  s.send(3);
  s.pass(milliseconds(1));
  s.ack(99);
  EXPECT_EQ(s.ch().progress_at, s.now);
  s.pass(milliseconds(1));
  const Instant before = s.ch().progress_at;
  s.ack(103);
  s.ack(98);
  EXPECT_EQ(s.ch().progress_at, before);
}

TEST(Progress, begins_with_the_flight) {
  Sender s(100);
  s.send();
  const Instant began = s.now;
  s.pass(milliseconds(1));
  s.send();
  EXPECT_EQ(s.ch().progress_at, began) << "more packets are no progress";
  s.ack(101);
  s.pass(milliseconds(1));
  s.send();
  EXPECT_EQ(s.ch().progress_at, s.now);
}

// Time in which this side's next packet waits for memory does not count as silence of the peer.
TEST(Progress, waiting_for_memory_of_this_side_is_no_silence) {
  Sender s(100);
  Channel& ch = s.ch();
  ch.progress_at = Instant{1000};
  ch.gather_since = Instant{5000};
  waited_for_memory(ch, Instant{9000});
  EXPECT_EQ(ch.progress_at, Instant{5000}) << "4000 of silence before it, and not one more";
  ch.gather_since = Instant{4000};
  waited_for_memory(ch, Instant{9500});
  EXPECT_EQ(ch.progress_at, Instant{9500}) << "the peer was heard meanwhile";
}

// ---- messages that end early -----------------------------------------------------------------------------------

TEST(HalfSentMessage, ends_with_its_next_packet) {
  Sender s;
  EXPECT_EQ(half_sent(*s.s, s.ch()), nullptr);
  const TxMessage& m = s.send(2, false);
  ASSERT_EQ(half_sent(*s.s, s.ch()), &m);
  ASSERT_FALSE(s.ch().on_active_list);
  stop_half_sent(*s.s, s.channel);
  EXPECT_TRUE(m.vanished);
  EXPECT_TRUE(s.ch().on_active_list);
}

TEST(HalfSentMessage, its_end_is_noted) {
  Sender s;
  TestHost host;
  s.s->looker.begin(host);
  s.send();
  s.send(2, false);
  stop_half_sent(*s.s, s.channel);
  EXPECT_EQ(host.noted(Stage::kMessageStopped), (std::vector<Note>{{Stage::kMessageStopped, s.channel, 1}}));
}

TEST(HalfSentMessage, one_that_was_sent_is_none) {
  Sender s;
  s.send(2, false);
  s.send_more(1);
  EXPECT_EQ(half_sent(*s.s, s.ch()), nullptr);
}

}  // namespace
}  // namespace ub::tp
