// SPDX-License-Identifier: Apache-2.0
// Nothing is hard-wired: when a cost is raised, exactly the operations that pass through its component become slower,
// by as much as they pass through it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "emu_hw/node/stack.h"
#include "tests/unit/emu_hw/two_hosts.h"

namespace ub::emu {
namespace {

struct Outcome {
  uint64_t ns = 0;
  std::map<std::string, int> lines;  // of the ledger, by part
};

Task carry_out(Kernel& kernel, Stack& stack, Operation& op) {
  kernel.begin_operation();
  Task task = stack.run(op);
  co_await task;
  EXPECT_EQ(op.ledger.end(), kernel.now());
  kernel.end_operation();
}

// By a profile: one of RoCE fetches its requests, the other one does not.
Outcome run(const std::string& profile, Verb verb, Parameters p) {
  if (profile == "dma") p.inline_limit = 0;
  TwoHosts hosts(p);
  const std::string name = profile == "dma" || profile == "bf" ? "roce" : profile;
  const auto stack = make_stack(name, hosts.parameters, hosts.here, hosts.there);
  Node::settle({&hosts.here.node, &hosts.there.node});
  stack->open();
  Operation op(1, 1, verb, verb == Verb::kFetchAdd ? 8 : 64, hosts.kernel.now());
  spawn(hosts.kernel, carry_out(hosts.kernel, *stack, op));
  hosts.kernel.run();
  EXPECT_EQ(hosts.kernel.open_operations(), 0u);
  Outcome outcome;
  outcome.ns = (op.ledger.end() - op.ledger.start()).ps / 1000;
  for (const Ledger::Line& line : op.ledger.lines()) ++outcome.lines[std::string(line.name.part)];
  return outcome;
}

struct Cost {
  const char* parameter;
  std::vector<const char*> parts;
};
const Cost kCosts[] = {
    {"membus", {"bus"}},
    {"remote_dram", {"dram"}},
    {"link_delay", {"link"}},
    {"verb_post_lib", {"cpu.post_lib"}},
    {"verb_poll_lib", {"cpu.poll_lib"}},
    {"wqe_construct", {"cpu.build"}},
    {"local_dram", {"cache.miss", "dram.local"}},
    {"kernel_pf", {"cpu.fault"}},
    {"roce_so_overhead", {"order.gate"}},
    {"pcie_mmio_write", {"pcie.doorbell"}},
    {"pcie_dma_read", {"pcie.fetch", "pcie.read"}},
    {"pcie_dma_write", {"pcie.write", "pcie.land", "pcie.completion"}},
};
const std::pair<const char*, Verb> kOperations[] = {
    {"ldst", Verb::kLoad}, {"ldst", Verb::kStore}, {"urma", Verb::kRead}, {"urma", Verb::kWrite}, {"urma", Verb::kSend},
    {"bf", Verb::kRead},   {"bf", Verb::kWrite},   {"dma", Verb::kRead},  {"dma", Verb::kWrite},  {"dma", Verb::kSend},
    {"dma", Verb::kFetchAdd}, {"swap", Verb::kLoad},
};

TEST(Paths, a_cost_is_paid_as_often_as_its_component_is_passed) {
  for (const auto& [stack, verb] : kOperations) {
    const Outcome before = run(stack, verb, {});
    for (const Cost& cost : kCosts) {
      Parameters dearer;
      const auto& all = all_parameters();
      const auto info = std::find_if(all.begin(), all.end(), [&](const ParameterInfo& each) {
        return each.name == std::string_view(cost.parameter);
      });
      ASSERT_NE(info, all.end()) << cost.parameter;
      ASSERT_EQ(set_parameter(dearer, cost.parameter, text_of(std::stod(info->default_text) + 10)), "");
      int passes = 0;
      for (const char* part : cost.parts) passes += before.lines.contains(part) ? before.lines.at(part) : 0;
      EXPECT_EQ(run(stack, verb, dearer).ns, before.ns + 10 * static_cast<uint64_t>(passes))
          << stack << " " << name_of(verb) << ", " << cost.parameter;
    }
  }
}

// What each of them must pass at least, so that the test above does not compare nothing with nothing.
TEST(Paths, components_of_each_way) {
  const Outcome load = run("ldst", Verb::kLoad, {}), read = run("urma", Verb::kRead, {});
  const Outcome dma = run("dma", Verb::kRead, {}), fault = run("swap", Verb::kLoad, {});
  EXPECT_EQ(fault.lines.at("cpu.fault") + fault.lines.at("dram.local"), 2);
  EXPECT_EQ(dma.lines.at("order.gate"), 1);
  EXPECT_FALSE(read.lines.contains("order.gate"));
  EXPECT_EQ(load.lines.at("bus"), 3);
  EXPECT_FALSE(load.lines.contains("cpu.post_lib"));
  EXPECT_EQ(read.lines.at("bus"), 3);
  EXPECT_FALSE(read.lines.contains("pcie.fetch"));
  EXPECT_EQ(dma.lines.at("pcie.fetch") + dma.lines.at("pcie.read") + dma.lines.at("pcie.land"), 3);
  EXPECT_FALSE(dma.lines.contains("bus"));
  for (const Outcome* each : {&load, &read, &dma}) EXPECT_EQ(each->lines.at("link"), 2);
}

// By how much an operation takes longer if a cost is 10 ns more.
uint64_t rise(const char* stack, Verb verb, const Parameters& p, Span Parameters::*cost) {
  Parameters dearer = p;
  dearer.*cost += whole_nanoseconds(10);
  return run(stack, verb, dearer).ns - run(stack, verb, p).ns;
}

TEST(Paths, a_completion_is_found_where_the_nic_puts_it) {
  EXPECT_EQ(rise("urma", Verb::kRead, {}, &Parameters::cqe_poll_onchip), 10u);
  EXPECT_EQ(rise("urma", Verb::kRead, {}, &Parameters::cqe_poll_host), 0u);
  EXPECT_EQ(rise("dma", Verb::kRead, {}, &Parameters::cqe_poll_onchip), 0u);
  EXPECT_EQ(rise("dma", Verb::kRead, {}, &Parameters::cqe_poll_host), 10u);
  EXPECT_EQ(rise("ldst", Verb::kLoad, {}, &Parameters::cqe_poll_onchip), 0u);
}

TEST(Paths, a_nic_behind_pcie_crosses_it_as_often_as_roce_does) {
  Parameters p;
  p.attach = Attach::kPcie;
  for (const auto& [stack, read] : {std::pair{"urma", Verb::kRead}, {"ldst", Verb::kLoad}}) {
    EXPECT_EQ(run(stack, read, p).ns, run(stack, read, {}).ns + 150 + 500 + 500 + 250 + 250) << stack;
    EXPECT_EQ(rise(stack, read, p, &Parameters::pcie_mmio_write), 10u) << stack;
    EXPECT_EQ(rise(stack, read, p, &Parameters::pcie_dma_read), 20u) << stack;
    EXPECT_EQ(rise(stack, read, p, &Parameters::pcie_dma_write), 20u) << stack;
    EXPECT_EQ(rise(stack, read, p, &Parameters::membus), 30u) << stack;
  }
  EXPECT_EQ(run("urma", Verb::kWrite, p).ns, run("urma", Verb::kWrite, {}).ns + 150 + 500 + 250 + 250);
  EXPECT_EQ(run("urma", Verb::kFetchAdd, p).ns, run("urma", Verb::kFetchAdd, {}).ns + 150 + 500 + 500 + 250);
  EXPECT_EQ(run("dma", Verb::kRead, p).ns, run("dma", Verb::kRead, {}).ns);
}

TEST(Paths, order_for_all_costs_ub_what_it_costs_roce) {
  Parameters p;
  p.ub_order = UbOrder::kAlways;
  EXPECT_EQ(run("urma", Verb::kRead, p).ns, 757u + 50);
  EXPECT_EQ(run("ldst", Verb::kLoad, p).ns, 500u + 50);
  EXPECT_EQ(rise("ldst", Verb::kLoad, p, &Parameters::roce_so_overhead), 10u);
  EXPECT_EQ(rise("ldst", Verb::kLoad, p, &Parameters::ub_so_gating), 0u);
}

TEST(Paths, contexts_of_pairs_are_fetched_across_pcie) {
  for (const auto& [connections, more] : {std::pair{22u, 0u}, {23u, 1000u}}) {
    Parameters p;
    p.ub_state = UbState::kPairs;
    p.active_connections = connections;
    EXPECT_EQ(run("urma", Verb::kRead, p).ns, 757 + more);
    EXPECT_EQ(run("ldst", Verb::kLoad, p).ns, 500 + more);
  }
}

TEST(Paths, a_message_to_one_of_several_is_dispatched) {
  Parameters p;
  EXPECT_EQ(rise("urma", Verb::kSend, p, &Parameters::ub_jetty_group_dispatch), 0u);
  p.remote_jetties = 2;
  EXPECT_EQ(rise("urma", Verb::kSend, p, &Parameters::ub_jetty_group_dispatch), 10u);
  EXPECT_EQ(rise("urma", Verb::kWrite, p, &Parameters::ub_jetty_group_dispatch), 0u);
  EXPECT_EQ(rise("dma", Verb::kSend, p, &Parameters::ub_jetty_group_dispatch), 0u);
  EXPECT_EQ(rise("dma", Verb::kSend, p, &Parameters::roce_target_dispatch), 10u);
}

}  // namespace
}  // namespace ub::emu
