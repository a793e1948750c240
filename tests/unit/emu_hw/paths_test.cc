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
    {"local_dram", {"cache.miss"}},
    {"pcie_mmio_write", {"pcie.doorbell"}},
    {"pcie_dma_read", {"pcie.fetch", "pcie.read"}},
    {"pcie_dma_write", {"pcie.write", "pcie.land", "pcie.completion"}},
};
const std::pair<const char*, Verb> kOperations[] = {
    {"ldst", Verb::kLoad}, {"ldst", Verb::kStore}, {"urma", Verb::kRead}, {"urma", Verb::kWrite}, {"urma", Verb::kSend},
    {"bf", Verb::kRead},   {"bf", Verb::kWrite},   {"dma", Verb::kRead},  {"dma", Verb::kWrite},  {"dma", Verb::kSend},
    {"dma", Verb::kFetchAdd},
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
  const Outcome dma = run("dma", Verb::kRead, {});
  EXPECT_EQ(load.lines.at("bus"), 3);
  EXPECT_FALSE(load.lines.contains("cpu.post_lib"));
  EXPECT_EQ(read.lines.at("bus"), 3);
  EXPECT_FALSE(read.lines.contains("pcie.fetch"));
  EXPECT_EQ(dma.lines.at("pcie.fetch") + dma.lines.at("pcie.read") + dma.lines.at("pcie.land"), 3);
  EXPECT_FALSE(dma.lines.contains("bus"));
  for (const Outcome* each : {&load, &read, &dma}) EXPECT_EQ(each->lines.at("link"), 2);
}

}  // namespace
}  // namespace ub::emu
