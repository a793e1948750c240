// SPDX-License-Identifier: Apache-2.0
// Many hosts that reach one other: locks that they take from each other, and queues in front of it.
#include <gtest/gtest.h>

#include <string>

#include "emu_hw/models/many_hosts.h"

namespace ub::emu {
namespace {

PointResult run(uint64_t initiators, const std::string& stack, const std::string& workload, Parameters p = {}) {
  p.initiators = initiators;
  p.operations = 20;
  PointResult result = run_incast({stack, workload, p});
  EXPECT_EQ(result.invalid, "");
  return result;
}

double mean(uint64_t initiators, const std::string& stack, const std::string& workload, const Parameters& p = {}) {
  return run(initiators, stack, workload, p).values.at("mean_ns");
}

TEST(Incast, hosts_that_share_nothing_do_not_disturb_each_other) {
  for (const char* stack : {"ldst", "urma", "roce"}) {
    for (const char* workload : {"bulk_read", "bulk_write", "send", "fetch_add"})
      EXPECT_EQ(run(1, stack, workload).values.at("max_ns"), run(5, stack, workload).values.at("max_ns"))
          << stack << " " << workload;
  }
  EXPECT_EQ(mean(3, "urma", "bulk_read"), 757);
  EXPECT_EQ(mean(3, "roce", "bulk_write"), 1227);
}

TEST(Incast, a_lock_of_one_is_a_compare_and_swap) {
  EXPECT_EQ(mean(1, "urma", "lock"), 750);
  EXPECT_EQ(mean(1, "roce", "lock"), 1477);
}

// Whoever has the lock gives it back by another operation, so of those who want it one gets it in each round trip and
// the nanosecond between two operations. The first one gets it at once.
TEST(Incast, a_lock_of_many_is_waited_for) {
  const PointResult two = run(2, "urma", "lock");
  EXPECT_EQ(two.values.at("max_ns"), 750 + 751);
  EXPECT_NEAR(mean(8, "urma", "lock"), 8 * 751, 0.04 * 8 * 751);
}

// Hosts that drew the same hot lines would find the same ones in their caches.
TEST(Incast, each_program_draws_for_itself) {
  Parameters p;
  p.locality = 100;
  EXPECT_NE(mean(4, "ldst", "pointer_chase", p), mean(1, "ldst", "pointer_chase", p));
}

// All of them come to one port at a time, and all but the first one wait, each 1.28 ns longer than the one before.
TEST(Incast, packets_wait_in_front_of_the_host_that_all_reach) {
  Parameters p;
  p.fabric = FabricKind::kSwitch;
  const PointResult alone = run(1, "urma", "bulk_write", p), many = run(100, "urma", "bulk_write", p);
  EXPECT_EQ(alone.values.at("max_ns"), 750);
  EXPECT_EQ(alone.values.at("queue_bytes"), 64);
  EXPECT_GE(many.values.at("max_ns"), 750 + 126);
  EXPECT_EQ(many.values.at("queue_bytes"), 99 * 64);
}

// The answers leave by one link, and are all that takes long.
TEST(Incast, a_host_that_all_read_is_limited_by_its_link) {
  Parameters p;
  p.fabric = FabricKind::kSwitch;
  p.payload = 65536;
  EXPECT_NEAR(run(16, "urma", "bulk_read", p).values.at("mops"), 1000 / (65536 * 8 / 400.0), 0.02);
}

// Channels that do not wait long enough repeat the frames of long operations: the target does for those that it is
// read by, and the others for what they write.
TEST(Incast, a_frame_that_any_host_repeats_spoils_the_result) {
  Parameters p;
  p.initiators = 2;
  p.operations = 20;
  p.payload = 65536;
  p.rto_round_trips = 1;
  for (const char* workload : {"bulk_read", "bulk_write"}) {
    p.rto_min = whole_nanoseconds(20'000);
    EXPECT_EQ(run_incast({"urma", workload, p}).invalid, "") << workload;
    p.rto_min = whole_nanoseconds(2'000);
    const PointResult result = run_incast({"urma", workload, p});
    EXPECT_NE(result.invalid.find("frames were repeated on a wire that loses none"), std::string::npos) << workload;
    EXPECT_TRUE(result.values.empty()) << workload;
  }
}

TEST(Incast, says_what_it_does_not_have) {
  EXPECT_THROW(run_incast({"urma", "juggling", {}}), BadPoint);
  EXPECT_THROW(run_incast({"pigeons", "lock", {}}), BadPoint);
}

}  // namespace
}  // namespace ub::emu
