// SPDX-License-Identifier: Apache-2.0
// Programs that keep operations in flight: rates and latencies of the reference.
#include <gtest/gtest.h>

#include <string>

#include "emu_hw/workload/closed_loop.h"
#include "tests/unit/emu_hw/two_hosts.h"

namespace ub::emu {
namespace {

struct Looped {
  Looped(const char* stack_name, const char* workload_name, uint32_t in_flight, const Parameters& p = {})
      : hosts(p),
        stack(make_stack(stack_name, hosts.parameters, hosts.here, hosts.there)),
        workload(make_workload(workload_name, hosts.parameters, has_loads(stack_name))),
        loop(hosts.kernel, *stack, *workload, 1, in_flight) {
    Node::settle({&hosts.here.node, &hosts.there.node});
    stack->open();
    loop.start(p.operations);
    hosts.kernel.run();
  }
  double mops() const {
    const auto& samples = loop.samples();
    const Span span = samples.back().ended - samples.front().ended;
    return static_cast<double>(samples.size() - 1) * 1000 / span.ns();
  }
  double mean_ns() const {
    uint64_t sum = 0;
    for (const Sample& sample : loop.samples()) sum += sample.latency().ps;
    return static_cast<double>(sum) / 1000 / static_cast<double>(loop.samples().size());
  }
  TwoHosts hosts;
  std::unique_ptr<Stack> stack;
  std::unique_ptr<Workload> workload;
  ClosedLoop loop;
};

TEST(ClosedLoop, rates_of_the_serial_engine) {
  EXPECT_NEAR(Looped("ldst", "pointer_chase", 1).mops(), 1.99601, 1e-5);
  EXPECT_NEAR(Looped("ldst", "pointer_chase", 16).mops(), 2.0, 1e-9);
  EXPECT_NEAR(Looped("urma", "pointer_chase", 1).mops(), 1000.0 / 758, 1e-9);
  EXPECT_NEAR(Looped("urma", "pointer_chase", 4).mops(), 1000.0 / 757, 1e-9);
  EXPECT_NEAR(Looped("roce", "pointer_chase", 64).mops(), 1000.0 / 1736, 1e-9);
  Parameters fetched;
  fetched.inline_limit = 0;
  EXPECT_NEAR(Looped("roce", "pointer_chase", 1, fetched).mops(), 1000.0 / 2237, 1e-9);
}

TEST(ClosedLoop, waiting_for_the_engine_is_part_of_the_latency) {
  const Looped run("urma", "bulk_read", 4);
  EXPECT_EQ(run.loop.samples().front().latency().ps, 757'000u);
  EXPECT_EQ(run.loop.samples().back().latency().ps, (4 * 757 - 1) * 1000u);
}

TEST(ClosedLoop, hot_lines_are_hits) {
  Parameters p;
  p.locality = 80;
  p.operations = 5000;
  EXPECT_NEAR(Looped("ldst", "pointer_chase", 1, p).mean_ns(), 0.2 * 500 + 0.8, 25);
}

TEST(ClosedLoop, small_loads_of_a_line_miss_once) {
  Parameters p;
  p.payload = 8;
  EXPECT_NEAR(Looped("ldst", "bulk_read", 1, p).mean_ns(), 62.5, 1e-9);
}

}  // namespace
}  // namespace ub::emu
