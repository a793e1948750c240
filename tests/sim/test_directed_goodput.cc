// SPDX-License-Identifier: Apache-2.0
//
// What losses and another order cost, where nothing else holds back: 100 Gb/s, a round trip of 10 us. loss_table prints
// all of it.
#include <gtest/gtest.h>

#include "tests/sim/lossy_link.h"

namespace ub::sim {
namespace {

constexpr double kBytesPerSecond = 12.5e9;
constexpr LoadSpec kLarge{WrOp::kWrite, 64 * 1024, 32, 1500, 1};
constexpr LoadSpec kSingle{WrOp::kRead, 64, 1, 10'000, 1};

TEST(Goodput, large_writes_use_the_link__without_loss) {
  const LinkResult r = run_over({}, kLarge);
  EXPECT_GT(r.bytes_per_second, 0.97 * kBytesPerSecond);
  EXPECT_EQ(r.sent_again + r.probes, 0u);
}

TEST(Goodput, large_writes_lose_little_more_than_is_lost) {
  const double without = run_over({}, kLarge).bytes_per_second;
  for (const auto& [loss, least] : {std::pair{0.001, 0.99}, {0.01, 0.95}, {0.05, 0.85}}) {
    const LinkResult r = run_over({.loss = loss}, kLarge);
    EXPECT_GE(r.bytes_per_second, least * without) << loss;
    EXPECT_EQ(r.timeouts, 0u) << loss;
  }
}

TEST(Goodput, another_order_within_64_packets_costs_little_and_sends_nothing_again) {
  const double in_order = run_over({}, kLarge).bytes_per_second;
  const LinkResult r = run_over({.reorder_packets = 64}, kLarge);
  EXPECT_GE(r.bytes_per_second, 0.95 * in_order);
  EXPECT_EQ(r.sent_again + r.probes, 0u);
  EXPECT_GE(run_over({.loss = 0.001, .reorder_packets = 64}, kLarge).bytes_per_second, 0.90 * in_order);
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
  EXPECT_LT(r.sent_again, 2 * 50'000 * 0.001);
  EXPECT_EQ(r.timeouts, 0u);
}

TEST(Goodput, a_single_read_is_done_within_four_round_trips__for_99_of_100_at_1_percent_loss) {
  const LinkResult r = run_over({.loss = 0.01}, kSingle);
  EXPECT_LE(r.latency_ns(0.99), 40'000u);
  EXPECT_EQ(r.timeouts, 0u);
}

}  // namespace
}  // namespace ub::sim
