// SPDX-License-Identifier: Apache-2.0
//
// What losses and another order cost, where nothing else holds back: 100 Gb/s, a round trip of 10 us. loss_table prints
// all of it.
#include <gtest/gtest.h>

#include "tests/sim/ideal_sender.h"
#include "tests/sim/lossy_link.h"

namespace ub::sim {
namespace {

constexpr double kBytesPerSecond = 12.5e9;
constexpr LoadSpec kLarge{WrOp::kWrite, 64 * 1024, 32, 1500, 1};
constexpr LoadSpec kSmall{WrOp::kWrite, 64, 8192, 80'000, 8};  // a channel for each queue
constexpr LoadSpec kSingle{WrOp::kRead, 64, 1, 20'000, 1};

const LinkResult& small_without_loss() {
  static const LinkResult result = run_over({}, kSmall);
  return result;
}
const LinkResult& large_without_loss() {
  static const LinkResult result = run_over({}, kLarge);
  return result;
}

// ---- nothing is lost -------------------------------------------------------------------------------------------

TEST(Goodput, large_writes_use_the_link__without_loss) {
  const LinkResult& r = large_without_loss();
  EXPECT_GT(r.bytes_per_second, 0.97 * kBytesPerSecond);
  EXPECT_EQ(r.sent_again, 0u);
}

// Neither the window of 2048 packets nor requests hold them back: the link is full of packets.
TEST(Goodput, small_writes_use_the_link__without_loss) {
  const LinkResult& r = small_without_loss();
  EXPECT_GT(r.link_share, 0.95);
  EXPECT_EQ(r.sent_again, 0u);
}

// ---- losses ----------------------------------------------------------------------------------------------------

TEST(Goodput, large_writes_lose_little_more_than_is_lost) {
  const double without = large_without_loss().bytes_per_second;
  for (const auto& [loss, least] : {std::pair{0.001, 0.99}, {0.01, 0.95}, {0.05, 0.85}}) {
    const LinkResult r = run_over({.loss = loss}, kLarge);
    EXPECT_GE(r.bytes_per_second, least * without) << loss;
    EXPECT_EQ(r.timeouts, 0u) << loss;
  }
}

TEST(Goodput, small_writes_reach_nine_tenths_of_what_an_ideal_sender_with_their_windows_would) {
  for (double loss : {0.001, 0.01, 0.05}) {
    const LinkResult r = run_over({.loss = loss}, kSmall);
    EXPECT_GE(r.bytes_per_second, 0.90 * ideal_bytes_per_second({.loss = loss}, kSmall, small_without_loss())) << loss;
    EXPECT_EQ(r.timeouts, 0u) << loss;
  }
}

// Of the packets that are under way when one is lost, Go-Back-N repeats all.
TEST(Goodput, go_back_n_repeats_a_round_trip_for_each_loss) {
  const LinkResult selective = run_over({.loss = 0.001}, kLarge);
  const LinkResult r = run_over({.loss = 0.001, .go_back_n = true}, kLarge);
  EXPECT_LT(r.bytes_per_second, selective.bytes_per_second);
  EXPECT_GE(r.bytes_per_second, 0.9 * selective.bytes_per_second);
  EXPECT_GE(r.sent_again, 10 * selective.sent_again);
  EXPECT_EQ(r.timeouts, 0u);
}

TEST(Goodput, a_window_that_losses_halve_costs_where_they_are_no_congestion) {
  const LinkResult none = run_over({.loss = 0.01}, kLarge);
  const LinkResult window = run_over({.loss = 0.01, .loss_window = true}, kLarge);
  EXPECT_LT(window.bytes_per_second, 0.9 * none.bytes_per_second);
}

// A window of one-packet messages behind a gap waits beside the channel, and does not have to be sent again.
TEST(Goodput, small_writes_behind_a_loss_do_not_go_again) {
  const LinkResult r = run_over({.loss = 0.001}, {WrOp::kWrite, 64, 2048, 50'000, 1});
  EXPECT_LT(r.sent_again, 2 * 2 * 50'000 * 0.001) << "of the requests and of their answers";
  EXPECT_EQ(r.timeouts, 0u);
}

TEST(Goodput, a_single_read_at_1_percent_loss_takes_four_round_trips_or_fewer_99_times_of_100) {
  const LinkResult r = run_over({.loss = 0.01}, kSingle);
  EXPECT_LE(r.latency_ns(0.99), 40'000u);
  EXPECT_LE(r.latency_ns(0.999), 100'000u);
  EXPECT_EQ(r.timeouts, 0u);
}

// ---- another order ---------------------------------------------------------------------------------------------

void expect_order_costs_little(const LoadSpec& load, const LinkResult& without) {
  const double in_order = without.bytes_per_second;
  for (uint64_t seed : {1, 2, 3}) {
    const LinkResult r = run_over({.reorder_packets = 64}, load, seed);
    EXPECT_GE(r.bytes_per_second, 0.95 * in_order) << seed;
    EXPECT_EQ(r.sent_again, 0u) << seed;
  }
  EXPECT_GE(run_over({.loss = 0.001, .reorder_packets = 64}, load).bytes_per_second, 0.90 * in_order);
}

TEST(Goodput, another_order_within_64_packets_costs_large_writes_little_and_sends_nothing_again) {
  expect_order_costs_little(kLarge, large_without_loss());
}
TEST(Goodput, another_order_within_64_packets_costs_small_writes_little_and_sends_nothing_again) {
  expect_order_costs_little(kSmall, small_without_loss());
}

// ---- turns -----------------------------------------------------------------------------------------------------

// One on each lane, in packets of the same size. What comes free in the port goes to them in turn.
TEST(Goodput, two_queues_that_find_the_port_full_have_equal_shares) {
  constexpr LoadSpec kOnePacket{WrOp::kWrite, kLinkMtu, 512}, kSixteen{WrOp::kWrite, 16 * kLinkMtu, 32};
  for (double loss : {0.0, 0.01}) {
    EXPECT_NEAR(share_of_first({.loss = loss}, kOnePacket, kSixteen), 0.5, 0.05) << loss;
  }
}

}  // namespace
}  // namespace ub::sim
