// SPDX-License-Identifier: Apache-2.0
//
// The seam itself: what a sender tells reaches the algorithm that was chosen, and no other; round trips of every packet
// that can tell one.
#include "lib/transport/cc/flow.h"

#include <gtest/gtest.h>

#include <vector>

namespace ub::cc {
namespace {

constexpr uint32_t kPackets = 64;

struct TestFlow : Flow {
  explicit TestFlow(Algorithm chosen) : memory(1 << 16) {
    Arena arena(memory.data());
    times.init(arena, 1, kPackets);
    begin(*this, times, chosen, path, Psn(100));
  }
  void send(uint32_t psn, uint64_t now, bool again = false) {
    sent(*this, times, path, {now}, Psn(psn), 1000, {.again = again});
  }
  void ack(uint32_t from, uint32_t to, uint64_t now) { acknowledged(*this, times, path, {now}, Psn(from), Psn(to)); }

  std::vector<std::byte> memory;
  SendTimes times;
  Path path{.most_packets = kPackets, .line_kbytes_per_second = 1'000'000};
};

// Everything that can be told, once or more.
void tell_all(TestFlow& f) {
  f.send(100, 1000);
  f.send(100, 1100, true);
  sent(f, f.path, {1200}, 1000);
  arrived(f, f.times, f.path, {1300}, Psn(100));
  f.ack(100, 101, 1400);
  marked(f, f.path, {1500}, {});
  fed_back(f, f.path, {1600}, {.marked_packets = 1});
  lost(f, f.path, {1700}, {Psn(101), Psn(110)});
  timed_out(f, f.path, {1800}, Psn(110));
  timer(f, f.path, {1'000'000});
}

TEST(Flow, without_an_algorithm_nothing_is_limited_and_nothing_heard) {
  TestFlow f(Algorithm::kNone);
  tell_all(f);
  EXPECT_EQ(f.window_packets, kNoWindow);
  EXPECT_TRUE(may_leave(f, {}));
  EXPECT_TRUE(deadline(f, {}).is_never());
  EXPECT_FALSE(hears_packets(f));
  EXPECT_EQ(f.send_times, 0u);
  EXPECT_EQ(f.ecn, 0);
}

TEST(Flow, each_algorithm_hears_what_it_heeds) {
  TestFlow listening(Algorithm::kListener);
  tell_all(listening);
  EXPECT_EQ(listening.listener.marks, 2u);
  EXPECT_EQ(listening.listener.losses, 1u);
  EXPECT_EQ(listening.listener.timeouts, 1u);
  EXPECT_EQ(listening.window_packets, kNoWindow);

  TestFlow window(Algorithm::kLossWindow);
  EXPECT_EQ(window.window_packets, 32u);
  window.ack(100, 104, 1000);
  EXPECT_EQ(window.window_packets, 36u);
  lost(window, window.path, {}, {Psn(104), Psn(140)});
  EXPECT_EQ(window.window_packets, 18u);
  timed_out(window, window.path, {}, Psn(150));
  EXPECT_EQ(window.window_packets, 2u);
  marked(window, window.path, {}, {});
  EXPECT_EQ(window.window_packets, 2u);

  TestFlow rate(Algorithm::kDcqcn);
  lost(rate, rate.path, {}, {Psn(101), Psn(110)});
  timed_out(rate, rate.path, {}, Psn(110));
  EXPECT_EQ(rate.dcqcn.rate_kbytes_per_second, 0u);
  marked(rate, rate.path, {1000}, {});
  EXPECT_EQ(rate.dcqcn.rate_kbytes_per_second, 500'000u);
  sent(rate, rate.path, {1000}, 1000);
  EXPECT_EQ(rate.next_packet, Instant{3000});
  timer(rate, rate.path, rate.timer_at);
  EXPECT_EQ(rate.dcqcn.rate_kbytes_per_second, 750'000u);
}

TEST(Flow, who_limits_a_rate_or_measures_hears_of_each_packet) {
  EXPECT_TRUE(hears_packets(TestFlow(Algorithm::kDcqcn)));
  EXPECT_TRUE(hears_packets(TestFlow(Algorithm::kListener)));
  EXPECT_FALSE(hears_packets(TestFlow(Algorithm::kLossWindow)));
}

// ---- round trips -----------------------------------------------------------------------------------------------

TEST(Flow, an_acknowledgement_tells_the_round_trip_of_each_packet_that_it_covers) {
  TestFlow f(Algorithm::kListener);
  for (uint32_t i = 0; i < 3; ++i) f.send(100 + i, 1000 + 100 * i);
  f.ack(100, 103, 1500);
  EXPECT_EQ(f.listener.round_trips, 3u);
  EXPECT_EQ(f.listener.least_round_trip_ns, 300u);
}

TEST(Flow, a_packet_behind_a_gap_tells_its_round_trip_when_it_is_reported) {
  TestFlow f(Algorithm::kListener);
  f.send(100, 1000);
  f.send(101, 1000);
  arrived(f, f.times, f.path, {1200}, Psn(101));
  EXPECT_EQ(f.listener.round_trips, 1u);
  EXPECT_EQ(f.listener.least_round_trip_ns, 200u);
  f.send(100, 1300, true);
  f.ack(100, 102, 1350);
  EXPECT_EQ(f.listener.round_trips, 1u) << "one went again, and the other was known to be there";
}

// Karn
TEST(Flow, a_packet_that_left_again_tells_none) {
  TestFlow f(Algorithm::kListener);
  f.send(100, 1000);
  f.send(100, 1300, true);
  f.ack(100, 101, 1350);
  EXPECT_EQ(f.listener.round_trips, 0u);
}

TEST(Flow, a_whole_window_may_be_acknowledged_at_once) {
  TestFlow f(Algorithm::kListener);
  for (uint32_t i = 0; i < kPackets; ++i) f.send(100 + i, 1000);
  f.ack(100, 100 + kPackets, 1700);
  EXPECT_EQ(f.listener.round_trips, kPackets);
}

TEST(Flow, where_no_block_is_left_it_measures_nothing_and_hears_the_rest) {
  TestFlow first(Algorithm::kListener);
  Flow f;
  begin(f, first.times, Algorithm::kListener, first.path, Psn(100));
  EXPECT_EQ(f.send_times, 0u);
  EXPECT_FALSE(hears_packets(f));
  sent(f, first.times, first.path, {1000}, Psn(100), 1000, {});
  arrived(f, first.times, first.path, {1100}, Psn(100));
  acknowledged(f, first.times, first.path, {1200}, Psn(100), Psn(101));
  marked(f, first.path, {1300}, {});
  EXPECT_EQ(f.listener.round_trips, 0u);
  EXPECT_EQ(f.listener.marks, 1u);
  end(f, first.times);
  EXPECT_EQ(first.times.blocks().in_use(), 1u);
}

TEST(Flow, only_who_wants_round_trips_takes_a_block_and_gives_it_back) {
  TestFlow f(Algorithm::kListener);
  EXPECT_EQ(f.times.blocks().in_use(), 1u);
  begin(f, f.times, Algorithm::kLossWindow, f.path, Psn(7));
  EXPECT_EQ(f.times.blocks().in_use(), 0u);
  begin(f, f.times, Algorithm::kListener, f.path, Psn(7));
  EXPECT_EQ(f.times.blocks().in_use(), 1u);
  end(f, f.times);
  EXPECT_EQ(f.times.blocks().in_use(), 0u);
  EXPECT_EQ(f.algorithm, Algorithm::kNone);
}

TEST(Flow, a_new_one_begins_without_the_limits_of_the_one_before) {
  TestFlow f(Algorithm::kDcqcn);
  marked(f, f.path, {1000}, {});
  sent(f, f.path, {1000}, 1000);
  begin(f, f.times, Algorithm::kDcqcn, f.path, Psn(7));
  EXPECT_EQ(f.dcqcn.rate_kbytes_per_second, 0u);
  EXPECT_EQ(f.next_packet, Instant{});
  EXPECT_TRUE(f.timer_at.is_never());
}

TEST(Flow, takes_over_what_the_peer_counts_from_one_of_the_same_algorithm_alone) {
  constexpr Feedback kReport{.received_words = 3'000'000'000, .marked_words = 70};
  for (const Algorithm before : {Algorithm::kLdcp, Algorithm::kCaqm, Algorithm::kNone}) {
    TestFlow old(before), f(Algorithm::kLdcp);
    fed_back(old, old.path, {}, {.received_words = kReport.received_words / 2});
    fed_back(old, old.path, {}, kReport);
    take_over(f, old);
    const bool same = before == Algorithm::kLdcp;
    EXPECT_EQ(f.ldcp.received_words, same ? kReport.received_words : 0);
    EXPECT_EQ(f.ldcp.received_before, same ? kReport.received_words : 0);
    EXPECT_EQ(f.ldcp.marked_words, same ? kReport.marked_words : 0);
    EXPECT_EQ(f.ldcp.marked_before, same ? kReport.marked_words : 0);
    EXPECT_EQ(f.window_packets, TestFlow(Algorithm::kLdcp).window_packets) << "its window is its own";
  }
}

// ---- when to look again ----------------------------------------------------------------------------------------

TEST(Verdict, a_packet_may_leave_when_its_time_has_come) {
  Verdict v;
  v.next_packet = {1000};
  EXPECT_FALSE(may_leave(v, {999}));
  EXPECT_TRUE(may_leave(v, {1000}));
}

TEST(Verdict, the_deadline_is_that_of_the_next_packet_or_of_the_timer) {
  Verdict v;
  v.next_packet = {1000};
  v.timer_at = {2000};
  EXPECT_EQ(deadline(v, {500}), Instant{1000});
  EXPECT_EQ(deadline(v, {1000}), Instant{2000});
  v.timer_at = {700};
  EXPECT_EQ(deadline(v, {500}), Instant{700});
}

}  // namespace
}  // namespace ub::cc
