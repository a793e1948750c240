// SPDX-License-Identifier: Apache-2.0
//
// What goes again and when (UB Base Specification Rev 2.0, 6.4.2): holes that a selective acknowledgement shows,
// everything behind a TPNAK, and after a timeout what nobody reported.
#include <algorithm>

#include "lib/base/prng.h"
#include "lib/transport/tp/retransmission_timeout.h"
#include "tests/unit/tp/sender.h"
#include "tests/unit/transport/test_host.h"

namespace ub::tp {
namespace {

// ---- selective acknowledgements --------------------------------------------------------------------------------

// 6.4.2.3: every hole below the highest one that arrived, and nothing behind it.
TEST(Sack, its_holes_go_again_at_once) {
  Sender s(100);
  s.send_one_by_one(10);
  s.sack(101, {103, 104, 107});
  EXPECT_EQ(s.ch().oldest_unacked, Psn(102));
  EXPECT_EQ(s.resend(), (Psns{102, 105, 106}));
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 3u);
  EXPECT_EQ(s.ch().retransmits, 3u);
  EXPECT_TRUE(s.ch().on_active_list);
}

TEST(Sack, holes_across_the_wrap_go_again_in_order) {
  Sender s(0xFFFFFC);
  s.send_one_by_one(8);
  s.sack(0xFFFFFC, {0xFFFFFE, 1, 3});
  EXPECT_EQ(s.resend(), (Psns{0xFFFFFD, 0xFFFFFF, 0, 2}));
}

// Bits of the blocks are found by PSN modulo the largest window: a flight may lie across its end.
TEST(Sack, holes_across_the_end_of_the_bitmap_go_again_in_order) {
  Sender s(kMaxWindow - 3);
  s.send_one_by_one(8);
  s.sack(kMaxWindow - 3, {kMaxWindow - 1, kMaxWindow + 2});
  EXPECT_EQ(s.resend(), (Psns{kMaxWindow - 2, kMaxWindow, kMaxWindow + 1}));
}

TEST(Sack, the_same_holes_again_go_once) {
  Sender s(100);
  s.send_one_by_one(10);
  s.sack(101, {103});
  EXPECT_EQ(s.resend(), (Psns{102}));
  s.sack(101, {103});
  s.sack(101, {103, 104});
  EXPECT_TRUE(s.resend().empty());
}

TEST(Sack, several_holes_that_are_reported_again_go_once) {
  Sender s(100);
  s.send_one_by_one(10);
  s.sack(100, {102, 105});
  EXPECT_EQ(s.resend(), (Psns{101, 103, 104}));
  s.sack(100, {102, 105, 106});
  EXPECT_TRUE(s.resend().empty());
}

// 6.4.2.3.1: HighRtxPSN is the largest one that went again, and stays it when a smaller one goes a third time.
TEST(Sack, a_hole_that_waits_while_a_smaller_one_goes_a_third_time_goes_once) {
  Sender s(100);
  s.send_one_by_one(6);
  s.sack(100, {102, 103, 105});
  resent(*s.s, s.ch(), Psn(101), s.now);
  s.send();  // 106
  s.sack(100, {102, 103, 105, 106});
  EXPECT_EQ(s.resend(), (Psns{101, 104}));
  s.sack(100, {102, 103, 105, 106});
  EXPECT_TRUE(s.resend().empty());
}

TEST(Sack, a_hole_waiting_to_go_again_is_not_counted_twice) {
  Sender s(100);
  s.send_one_by_one(10);
  s.sack(101, {103});
  s.sack(101, {103});
  EXPECT_EQ(s.recovery().resend_count, 1u);
  s.send();  // 110, which proves lost what went again before it
  s.sack(101, psns(103, 8));
  EXPECT_EQ(s.recovery().resend_count, 1u);
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 1u);
  EXPECT_EQ(s.count(Counter::kTpRxSack), 3u);
  EXPECT_EQ(s.resend(), (Psns{102}));
}

// A block is given back with what it noted.
TEST(Sack, what_another_channel_left_in_its_block_is_forgotten) {
  Sender s(100);
  s.send_one_by_one(6);
  s.sack(100, {103, 105});
  s.s->recovery.free(s.ch().recovery);  // as a channel does that dies
  s.ch().recovery = 0;
  s.timeout();
  EXPECT_EQ(s.resend(), psns(101, 5));
}

TEST(Sack, a_new_hole_behind_the_old_ones_goes_again) {
  Sender s(100);
  s.send_one_by_one(10);
  s.sack(101, {103});
  s.resend();
  s.sack(101, {103, 106});
  EXPECT_EQ(s.resend(), (Psns{104, 105}));
}

// 6.4.2.3.1: what went again and is still missing goes a third time when something sent after it has arrived.
TEST(Sack, a_hole_goes_a_third_time_only_when_what_was_sent_later_arrived) {
  Sender s(100);
  s.send_one_by_one(6);  // 100 .. 105
  s.sack(100, {102});
  EXPECT_EQ(s.resend(), (Psns{101}));
  s.sack(100, {102, 103, 104, 105});  // all of it was under way already
  EXPECT_TRUE(s.resend().empty());
  s.send();  // 106: the first new one after the burst
  s.sack(100, {102, 103, 104, 105, 106});
  EXPECT_EQ(s.resend(), (Psns{101})) << "the mark has arrived: the retransmission was lost";
  s.sack(100, {102, 103, 104, 105, 106});
  EXPECT_TRUE(s.resend().empty()) << "the mark has moved";
  s.send();
  s.sack(100, {102, 103, 104, 105, 106, 107});
  EXPECT_EQ(s.resend(), (Psns{101}));
}

TEST(Sack, the_mark_of_a_retransmission_is_the_next_new_packet_and_not_one_under_way) {
  Sender s(0xFFFFFD);
  s.send_one_by_one(3);
  s.sack(0xFFFFFD, {0xFFFFFF});
  s.resend();
  EXPECT_EQ(s.records(), (std::vector<Sender::Record>{{0xFFFFFE, 0, 1}}));
}

// One mark for all of them would move with each new loss, and never be reached.
TEST(Sack, each_retransmission_has_a_mark_of_its_own) {
  Sender s(100);
  s.send_one_by_one(6);  // 100 .. 105
  s.sack(99, {101});
  s.resend();  // 100, before 106
  s.send_one_by_one(2);
  s.sack(99, {101, 103});
  s.resend();  // 102, before 108
  EXPECT_EQ(s.records(), (std::vector<Sender::Record>{{100, 106, 1}, {102, 108, 2}}));
  s.sack(99, {101, 103, 104, 105, 106});
  EXPECT_EQ(s.resend(), Psns{100}) << "106 was sent after it, and before the other";
  s.send();
  s.sack(99, {101, 103, 104, 105, 106, 107, 108});
  EXPECT_EQ(s.resend(), (Psns{100, 102}));
}

TEST(Sack, what_it_reports_is_noted_of_each_packet_and_of_no_other) {
  Sender s(100);
  s.send_one_by_one(8);
  EXPECT_TRUE(nothing_noted(*s.s, s.ch(), Psn(101)));
  s.sack(100, {102, 103, 105});
  for (uint32_t psn : {102u, 103u, 105u}) EXPECT_FALSE(nothing_noted(*s.s, s.ch(), Psn(psn))) << psn << " is there";
  for (uint32_t psn : {101u, 104u}) EXPECT_FALSE(nothing_noted(*s.s, s.ch(), Psn(psn))) << psn << " goes again";
  for (uint32_t psn : {100u, 106u, 107u}) EXPECT_TRUE(nothing_noted(*s.s, s.ch(), Psn(psn))) << psn;
}

TEST(Sack, what_it_shows_to_be_lost_is_told_to_who_looks_once) {
  Sender s(100);
  TestHost host;
  s.s->looker.begin(host);
  s.send_one_by_one(8);
  s.sack(100, {102});
  s.sack(100, {102});
  EXPECT_EQ(host.noted(Stage::kPacketsLost), (std::vector<Note>{{Stage::kPacketsLost, s.channel, 1, 101}}));
  s.sack(100, {102, 105});
  EXPECT_EQ(host.noted(Stage::kPacketsLost).size(), 2u);
  EXPECT_EQ(host.noted(Stage::kPacketsLost).back(), (Note{Stage::kPacketsLost, s.channel, 2, 103}));
}

TEST(Sack, a_hole_that_was_filled_meanwhile_does_not_go_again) {
  Sender s(100);
  s.send_one_by_one(10);
  s.sack(101, {105});
  s.sack(101, {103, 105});
  EXPECT_EQ(s.resend(), (Psns{102, 104}));
}

TEST(Sack, what_is_acknowledged_meanwhile_does_not_go_again) {
  Sender s(100);
  s.send_one_by_one(10);
  s.sack(101, {105});
  s.ack(103);
  EXPECT_EQ(s.recovery().resend_count, 1u);
  EXPECT_EQ(s.resend(), (Psns{104}));
}

TEST(Sack, without_fast_retransmission_it_is_noted_for_the_timeout) {
  Sender s(100);
  s.ch().fast = false;
  s.send_one_by_one(6);
  s.sack(100, {102, 104});
  EXPECT_TRUE(s.resend().empty());
  s.timeout();
  EXPECT_EQ(s.resend(), (Psns{101, 103, 105}));
}

TEST(Sack, what_it_says_of_packets_never_sent_is_not_believed) {
  Sender s(100);
  s.send_one_by_one(4);  // 100 .. 103
  s.sack(100, {103, 104, 110});
  EXPECT_EQ(s.resend(), (Psns{101, 102}));
  s.send_one_by_one(2);
  s.sack(100, {101, 102, 103});
  s.timeout();
  EXPECT_EQ(s.resend(), (Psns{104, 105})) << "they were sent after somebody claimed to have them";
}

TEST(Sack, the_newest_packet_in_flight_can_be_reported) {
  Sender s(100);
  s.send_one_by_one(3);
  s.sack(100, {102});
  EXPECT_TRUE(test_bit(s.recovery().sacked, 102));
  EXPECT_EQ(s.resend(), (Psns{101}));
}

TEST(Sack, the_last_bit_of_its_bitmap_counts) {
  Sender s(100);
  s.send_one_by_one(100);
  s.sack(100, {163});
  EXPECT_EQ(s.resend(), psns(101, 62));
}

TEST(Sack, that_covers_all_in_flight_leaves_nothing_behind) {
  for (uint32_t first : {100u, 101u}) {
    Sender s(first);
    s.send_one_by_one(4);
    s.sack(first, {first + 2});
    s.sack(first + 3, {});
    EXPECT_EQ(s.ch().recovery, 0u);
    EXPECT_EQ(s.s->recovery.in_use(), 0u);
  }
}

// A channel that stays busy for many windows: what was reported of a PSN says nothing of the packet that has its place
// a window later.
TEST(Sack, what_was_reported_of_a_packet_is_forgotten_when_it_is_acknowledged) {
  Sender s(100);
  s.send_one_by_one(4);
  s.sack(100, {102});
  s.resend();
  for (uint32_t psn = 101; psn < 102 + kMaxWindow; ++psn) {  // something is always missing: the block is kept
    s.send();
    s.sack(psn, {psn + 2});
    s.resend();
    ASSERT_NE(s.ch().recovery, 0u);
  }
  for (Psn psn = s.ch().next_psn; psn != s.ch().oldest_unacked + kMaxWindow; ++psn) {
    ASSERT_TRUE(nothing_noted(*s.s, s.ch(), psn)) << psn.value();
  }
  EXPECT_EQ(s.recovery().sacked_count, 2u) << "those beyond the gap";
  s.sack((s.ch().next_psn - 1).value(), {});
  EXPECT_EQ(s.ch().recovery, 0u);
}

TEST(Sack, a_block_that_says_nothing_is_given_back_though_packets_are_in_flight) {
  Sender s(100);
  s.send_one_by_one(6);
  s.sack(100, {102});
  s.resend();
  s.ack(102);
  EXPECT_EQ(s.ch().outstanding(), 3u);
  EXPECT_EQ(s.ch().recovery, 0u);
  EXPECT_EQ(s.s->recovery.in_use() + s.s->resent.in_use(), 0u);
}

TEST(Sack, what_was_to_go_again_is_forgotten_when_it_is_acknowledged) {
  Sender s(100);
  s.send_one_by_one(4);
  s.sack(100, {103});
  s.ack(102);
  EXPECT_EQ(s.recovery().resend_count, 0u);
  for (uint32_t at = 0; at < kMaxWindow; ++at) ASSERT_FALSE(test_bit(s.recovery().resend, at)) << at;
}

// Against a model, with reports in any order on a channel that is never idle for several windows.
TEST(Sack, random_reports__never_send_again_what_was_reported_and_forget_no_loss) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Prng random(seed);
    Sender s(random.next_u32() & Psn::kMask);
    std::vector<bool> arrived;  // by age, of the packets in flight
    const uint32_t base = s.ch().oldest_unacked.value();
    uint32_t acked = 0;
    for (int step = 0; step < 3000; ++step) {
      for (uint64_t n = random.below(4) + (arrived.empty() ? 1 : 0);
           n > 0 && window_open(*s.s, s.ch()) && arrived.size() < 60; --n) {
        s.send();
        arrived.push_back(random.chance(0.7));
      }
      if (random.chance(0.05)) s.timeout();
      for (uint32_t psn : s.resend()) {
        const uint32_t at = Psn(psn).distance(s.ch().oldest_unacked);
        ASSERT_LT(at, arrived.size());
        if (random.chance(0.7)) arrived[at] = true;
      }
      size_t whole = 0;
      while (whole + 1 < arrived.size() && arrived[whole]) ++whole;  // one stays in flight
      acked += static_cast<uint32_t>(whole);
      arrived.erase(arrived.begin(), arrived.begin() + static_cast<ptrdiff_t>(whole));
      const Psn cumulative = Psn(base) + acked - 1;
      Psns beyond;
      for (size_t i = 1; i < arrived.size(); ++i) {
        if (arrived[i]) beyond.push_back((cumulative + 1 + static_cast<int64_t>(i)).value());
      }
      s.sack(cumulative.value(), beyond);
      ASSERT_EQ(s.ch().oldest_unacked, cumulative + 1);
      uint32_t marked = 0;
      for (size_t i = 0; i < arrived.size(); ++i) {
        const uint32_t at = (s.ch().oldest_unacked + static_cast<int64_t>(i)).value() % kMaxWindow;
        const bool wanted = s.ch().recovery != 0 && test_bit(s.recovery().resend, at);
        marked += wanted;
        if (i > 0 && arrived[i]) {
          ASSERT_FALSE(wanted) << "seed " << seed << " step " << step << ": it was reported";
        }
      }
      ASSERT_EQ(marked, s.ch().recovery == 0 ? 0 : s.recovery().resend_count);
    }
    s.timeout();
    const Psns again = s.resend();
    for (size_t i = 1; i < arrived.size(); ++i) {
      const bool goes = std::find(again.begin(), again.end(),
                                  (s.ch().oldest_unacked + static_cast<int64_t>(i)).value()) != again.end();
      ASSERT_EQ(goes, !arrived[i]) << "seed " << seed;
    }
  }
}

constexpr uint16_t kInitialPackets = cc::kUsualConstants.loss_window.initial_packets;

TEST(Sack, its_first_hole_is_a_loss_to_the_congestion_window_once) {
  Sender s(100);
  s.govern(cc::Algorithm::kLossWindow);
  s.send_one_by_one(20);
  s.sack(100, {102, 105});
  EXPECT_EQ(s.ch().send_window, (kInitialPackets + 1u) / 2);
  s.resend();
  s.sack(100, {102, 105, 108});
  EXPECT_EQ(s.ch().send_window, (kInitialPackets + 1u) / 2) << "losses of the same round trip";
  Sender lossless(100);
  lossless.send_one_by_one(20);
  lossless.sack(100, {102});
  EXPECT_EQ(lossless.ch().send_window, lossless.ch().agreed_window);
}

// ---- negative acknowledgements ---------------------------------------------------------------------------------

// 6.4.2, Go-Back-N with fast retransmission (gap_report_test.cc has the receiver).
TEST(Nak, everything_from_it_on_goes_again) {
  Sender s(100);
  s.send_one_by_one(5);
  s.nak(102);
  EXPECT_EQ(s.resend(), (Psns{102, 103, 104}));
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitFast), 3u);
  EXPECT_EQ(s.records().size(), 3u);
  EXPECT_EQ(s.records().back(), (Sender::Record{104, 105, 3}));
}

TEST(Nak, what_it_says_to_be_lost_is_told_to_who_looks) {
  Sender s(100);
  TestHost host;
  s.s->looker.begin(host);
  s.send_one_by_one(5);
  s.nak(102);
  EXPECT_EQ(host.noted(Stage::kPacketsLost), (std::vector<Note>{{Stage::kPacketsLost, s.channel, 3, 102}}));
}

TEST(Nak, the_same_one_restarts_once) {
  Sender s(100);
  s.send_one_by_one(5);
  s.nak(102);
  s.resend();
  s.nak(102);
  EXPECT_TRUE(s.resend().empty());
  s.nak(103);
  EXPECT_EQ(s.resend(), (Psns{103, 104}));
}

TEST(Nak, of_the_newest_packet_sends_that_one_again) {
  Sender s(100);
  s.send_one_by_one(5);
  s.nak(104);
  EXPECT_EQ(s.resend(), (Psns{104}));
  EXPECT_EQ(s.count(Counter::kTpRxNak), 1u);
}

TEST(Nak, of_the_past_and_of_the_future_is_ignored) {
  Sender s(100);
  s.send_one_by_one(5);
  for (uint32_t psn : {99u, 98u, 105u, 106u, 107u}) s.nak(psn);
  EXPECT_EQ(s.ch().oldest_unacked, Psn(100));
  EXPECT_TRUE(s.resend().empty());
  EXPECT_EQ(s.count(Counter::kTpRxStaleAck), 4u) << "105 is what comes next: not stale, and nothing is missing";
}

TEST(Nak, the_first_one_restarts_whatever_its_number) {
  Sender s(0xFFFFFE);
  s.send_one_by_one(4);
  s.nak(0);
  EXPECT_EQ(s.resend(), (Psns{0, 1}));
}

TEST(Nak, the_channel_has_its_turn_even_if_nothing_was_acknowledged) {
  Sender s(100);
  s.send_one_by_one(2);
  s.nak(100);
  EXPECT_TRUE(s.ch().on_active_list);
}

TEST(Nak, of_what_a_timeout_sends_again_is_no_news) {
  Sender s(100);
  s.send_one_by_one(3);
  s.timeout();
  s.resend();
  s.nak(100);
  EXPECT_TRUE(s.resend().empty());
}

TEST(Nak, without_fast_retransmission_it_only_acknowledges) {
  Sender s(100);
  s.ch().fast = false;
  s.send_one_by_one(5);
  s.nak(102);
  EXPECT_EQ(s.ch().oldest_unacked, Psn(102));
  EXPECT_TRUE(s.resend().empty());
}

TEST(Nak, is_a_loss_to_the_congestion_window) {
  Sender s(100);
  s.govern(cc::Algorithm::kLossWindow);
  s.send_one_by_one(5);
  s.nak(100);
  EXPECT_EQ(s.ch().send_window, kInitialPackets / 2u);
}

// ---- timeouts --------------------------------------------------------------------------------------------------

// 6.4.2.1
TEST(Timeout, everything_that_was_not_reported_goes_again) {
  Sender s(100);
  s.send_one_by_one(6);
  s.sack(101, {104});
  s.resend();
  s.timeout();
  EXPECT_EQ(s.resend(), (Psns{102, 103, 105}));
  EXPECT_EQ(s.count(Counter::kTpTimeout), 1u);
  EXPECT_EQ(s.count(Counter::kTpTxRetransmitTimeout), 3u);
}

TEST(Timeout, is_noted_with_what_goes_again) {
  Sender s(100);
  TestHost host;
  s.s->looker.begin(host);
  s.send_one_by_one(6);
  s.sack(101, {104});
  s.timeout();
  EXPECT_EQ(host.noted(Stage::kTimerRanOut), (std::vector<Note>{{Stage::kTimerRanOut, s.channel, 3, 102}}));
}

TEST(Timeout, reports_of_what_it_sent_again_are_not_believed_before_the_mark) {
  Sender s(100);
  s.send_one_by_one(6);
  s.timeout();
  s.resend();
  s.sack(101, {103});
  EXPECT_TRUE(s.resend().empty()) << "102 is under way again";
  s.send();  // 106
  s.sack(101, {103, 106});
  EXPECT_EQ(s.resend(), (Psns{102, 104, 105}));
}

TEST(Timeout, what_waits_while_others_are_lost_again_goes_once) {
  Sender s(100);
  s.send_one_by_one(6);  // 100 .. 105
  s.timeout();
  for (uint32_t psn : psns(100, 5)) resent(*s.s, s.ch(), Psn(psn), s.now);  // 105 waits
  s.send_one_by_one(3);                                              // 106 .. 108
  s.sack(101, {106});
  EXPECT_EQ(s.resend(), psns(102, 4)) << "the burst was lost, but for 105, which goes the first time";
  s.sack(101, {106});
  EXPECT_TRUE(s.resend().empty());
  s.sack(101, {106, 108});
  EXPECT_EQ(s.resend(), (Psns{107})) << "beyond the burst: a loss of its own";
}

// It starts with the first packet in flight, stops with the last, and starts anew with what is acknowledged.
TEST(Timeout, runs_while_something_is_in_flight) {
  Sender s(100);
  EXPECT_TRUE(s.ch().rto_at.is_never());
  s.send();
  const Instant first = s.now + s.ch().rto;
  EXPECT_EQ(s.ch().rto_at, first);
  s.pass(microseconds(100));
  s.send();
  EXPECT_EQ(s.ch().rto_at, first) << "a further packet does not put it off";
  s.pass(microseconds(100));
  s.ack(100);
  EXPECT_EQ(s.ch().rto_at, s.now + s.ch().rto);
  s.ack(101);
  EXPECT_TRUE(s.ch().rto_at.is_never());
}

TEST(Timeout, the_timer_of_the_channel_is_set) {
  Sender s(100);
  s.send();
  EXPECT_EQ(s.s->timers.earliest(), s.ch().rto_at);
}

// 6.4.2.1: doubled with each one, to a limit.
TEST(Timeout, backs_off_to_its_limit) {
  Sender s(100);
  s.send();
  Duration expected = s.s->config.rto_min;
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(s.ch().rto, expected);
    s.timeout();
    s.resend();
    expected = std::min(expected * 2, s.s->config.rto_max);
    EXPECT_EQ(s.ch().rto_at, s.now + expected);
  }
  EXPECT_EQ(expected, s.s->config.rto_max);
  EXPECT_EQ(s.ch().timeouts, 12);
}

TEST(Timeout, the_count_of_consecutive_ones_ends_somewhere) {
  Sender s(100);
  s.send();
  for (int i = 0; i < 300; ++i) s.timeout();
  EXPECT_EQ(s.ch().timeouts, 32);
}

// 6.4.2.1: progress is a cumulative step, or a bit that is new.
TEST(Timeout, progress_ends_the_row_of_consecutive_ones) {
  Sender s(100);
  s.send_one_by_one(4);
  s.timeout();
  s.sack(99, {101});
  EXPECT_EQ(s.ch().timeouts, 0);
  s.timeout();
  s.sack(99, {101});
  EXPECT_EQ(s.ch().timeouts, 1) << "nothing new";
  s.ack(99);
  EXPECT_EQ(s.ch().timeouts, 1);
  s.ack(100);
  EXPECT_EQ(s.ch().timeouts, 0);
}

TEST(Timeout, leaves_the_congestion_window_almost_nothing) {
  Sender s(100);
  s.govern(cc::Algorithm::kLossWindow);
  s.send();
  s.timeout();
  EXPECT_EQ(s.ch().send_window, cc::kUsualConstants.loss_window.least_packets);
  Sender lossless(100);
  lossless.send();
  lossless.timeout();
  EXPECT_EQ(lossless.ch().send_window, lossless.ch().agreed_window);
}

TEST(Timeout, the_channel_has_its_turn) {
  Sender s(100);
  s.send();
  s.timeout();
  EXPECT_TRUE(s.ch().on_active_list);
}

}  // namespace
}  // namespace ub::tp
