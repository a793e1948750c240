// SPDX-License-Identifier: Apache-2.0
// Many hosts: sums of the reference's cluster, step by step, and who is joined to whom.
#include <gtest/gtest.h>

#include <string>

#include "emu_hw/models/many_hosts.h"

namespace ub::emu {
namespace {

Point cluster_of(uint64_t nodes, const std::string& stack, Parameters p = {}) {
  p.nodes = nodes;
  p.operations = 20;
  p.fabric = FabricKind::kRule;
  return {stack, "uniform_read", p};
}

PointResult run(const Point& point) {
  PointResult result = run_cluster(point);
  EXPECT_EQ(result.invalid, "");
  return result;
}

TEST(Cluster, delays_are_not_cut_and_nothing_is_charged_for_misses_gates_and_flits) {
  const PointResult load = run(cluster_of(2, "ldst")), read = run(cluster_of(2, "urma"));
  EXPECT_EQ(Ledger::text_of(load.begin, load.ledger),
            "bus 30, nic.pipe 24.848, link 101.28, rule.contention 12.5, nic.pipe 24.848, bus 30, dram 30, "
            "nic.pipe 24.848, link 101.28, rule.contention 12.5, nic.pipe 24.848, bus 30");
  EXPECT_EQ(Ledger::text_of(read.begin, read.ledger),
            "cpu.post_lib 50, cpu.build 30, bus 30, nic.pipe 77.65, link 101.28, rule.contention 12.5, nic.pipe 77.65, "
            "bus 30, dram 30, nic.pipe 77.65, link 101.28, rule.contention 12.5, nic.pipe 77.65, bus 30, cpu.poll 5, "
            "cpu.poll_lib 30");
  EXPECT_DOUBLE_EQ(load.values.at("mean_ns"), 446.952);
  EXPECT_DOUBLE_EQ(load.values.at("max_ns"), 446.952);
}

TEST(Cluster, each_other_host_costs_the_same_on_both_wires) {
  for (const char* stack : {"ldst", "urma", "roce"}) {
    const double of_two = run(cluster_of(2, stack)).values.at("mean_ns");
    EXPECT_NEAR(run(cluster_of(3, stack)).values.at("mean_ns"), of_two + 25, 1e-6) << stack;
    Parameters dearer;
    dearer.contention = picoseconds(22'500);
    EXPECT_NEAR(run(cluster_of(3, stack, dearer)).values.at("mean_ns"), of_two - 25 + 4 * 22.5, 1e-6) << stack;
  }
}

TEST(Cluster, contexts_that_do_not_fit_are_fetched_at_both_ends) {
  const double fits = run(cluster_of(22, "roce")).values.at("mean_ns");
  EXPECT_NEAR(run(cluster_of(23, "roce")).values.at("mean_ns"), fits + 25 + 1000, 1e-6);
  Parameters small;
  small.ub_tp_cache = 8;
  for (const char* stack : {"ldst", "urma"}) {
    const double ub_fits = run(cluster_of(4, stack, small)).values.at("mean_ns");
    EXPECT_NEAR(run(cluster_of(5, stack, small)).values.at("mean_ns"), ub_fits + 25 + 120, 1e-6) << stack;
  }
}

TEST(Cluster, blue_flame_is_nothing_of_its_own) {
  Parameters fetched;
  fetched.inline_limit = 0;
  EXPECT_EQ(run(cluster_of(4, "roce")).values, run(cluster_of(4, "roce", fetched)).values);
}

TEST(Cluster, larger_payloads_take_time_on_the_wire_alone) {
  Parameters p;
  p.payload = 1024;
  const double small = run(cluster_of(3, "urma")).values.at("mean_ns");
  EXPECT_NEAR(run(cluster_of(3, "urma", p)).values.at("mean_ns"), small + (1024.0 - 64.0) * 8 / 400, 1e-6);
}

TEST(Cluster, two_runs_are_the_same) {
  const PointResult first = run(cluster_of(8, "urma")), again = run(cluster_of(8, "urma"));
  EXPECT_EQ(first.values, again.values);
  EXPECT_EQ(first.events, again.events);
}

TEST(Cluster, says_what_it_does_not_have) {
  EXPECT_THROW(run_cluster({"urma", "bulk_read", {}}), BadPoint);
  EXPECT_THROW(run_cluster({"pigeons", "uniform_read", {}}), BadPoint);
  EXPECT_THROW(run(cluster_of(3, "swap")), BadPoint);
}

}  // namespace
}  // namespace ub::emu
