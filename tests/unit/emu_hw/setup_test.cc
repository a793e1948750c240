// SPDX-License-Identifier: Apache-2.0
// Setting up connections: by workers, and as a closed form.
#include <gtest/gtest.h>

#include "tests/unit/emu_hw/point_of.h"

namespace ub::emu {
namespace {

double by_workers(const std::string& stack, const Settings& set) { return value("setup", "setup_ns", stack, set); }
double by_formula(const std::string& stack, const Settings& set) {
  return value("setup_formula", "setup_ns", stack, set);
}

constexpr double kLook = 100;  // everything is seen one look later, since all ends lie on looks

TEST(Setup, of_one_pair_takes_its_longest_task) {
  EXPECT_EQ(by_workers("ub", {}), 505'000 + kLook);  // jetty and channel at a time
  EXPECT_EQ(by_workers("roce", {}), 520'000 + kLook);
}

TEST(Setup, one_task_more_than_workers_takes_one_round_more) {
  const Settings eight = {{"cpus", "4"}, {"active_connections", "1"}, {"remote_hosts", "8"}};
  const Settings nine = {{"cpus", "4"}, {"active_connections", "1"}, {"remote_hosts", "9"}};
  EXPECT_EQ(by_workers("roce", eight), 2 * 520'000 + kLook);
  EXPECT_EQ(by_workers("roce", nine), 3 * 520'000 + kLook);
}

// Jettys come first: worker 0 has the jetty and the channels 4 and 8 of 9, worker 1 channels 1, 5 and 9.
TEST(Setup, tasks_are_dealt_in_turn) {
  EXPECT_EQ(by_workers("ub", {{"cpus", "4"}, {"remote_hosts", "7"}}), 2 * 505'000 + kLook);
  EXPECT_EQ(by_workers("ub", {{"cpus", "4"}, {"remote_hosts", "8"}}), 505'000 * 2 + 5'000 + kLook);
  EXPECT_EQ(by_workers("ub", {{"cpus", "4"}, {"remote_hosts", "9"}}), 505'000 * 3 + kLook);
}

TEST(Setup, is_seen_by_the_first_look_behind_its_end) {
  EXPECT_EQ(by_workers("ub", {{"oob_rtt", "500001"}}), 505'100);
  EXPECT_EQ(by_workers("ub", {{"oob_rtt", "500099.999"}}), 505'100);
  EXPECT_EQ(by_workers("ub", {{"oob_rtt", "500100"}}), 505'200);
  EXPECT_EQ(by_workers("ub", {{"setup_poll", "7"}}), 505'001);
}

TEST(Setup, by_one_worker_is_the_closed_form) {
  const Settings set = {{"cpus", "1"}, {"active_connections", "3"}, {"remote_hosts", "5"}};
  for (const char* stack : {"ub", "roce"}) EXPECT_EQ(by_workers(stack, set), by_formula(stack, set) + kLook);
  EXPECT_EQ(by_formula("roce", set), 15 * 520'000);
  EXPECT_EQ(by_formula("ub", set), 3 * 5'000 + 5 * 505'000);
}

TEST(Setup, says_what_it_cannot_do) {
  EXPECT_EQ(refusal_of("setup", "dma"), "there is no stack dma that is set up; there are ub, roce");
  EXPECT_EQ(refusal_of("setup", "ub", {{"setup_poll", "0"}}),
            "setup_poll = 0: whoever never waits sees nothing; give at least 0.001 ns");
  EXPECT_EQ(refusal_of("setup", "roce", {{"active_connections", "100000"}}),
            "active_connections, remote_hosts: 10000000000 objects are too many to set up each; give numbers that make "
            "up to 10000000, or choose the model setup_formula");
}

}  // namespace
}  // namespace ub::emu
