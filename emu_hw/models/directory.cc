// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/coherent/chase_program.h"
#include "emu_hw/coherent/shared_line_program.h"
#include "emu_hw/models/model.h"
#include "emu_hw/models/read_latency.h"

namespace ub::emu {
namespace {

double mean(double sum, uint64_t count) { return count == 0 ? 0 : sum / static_cast<double>(count); }

PointResult run_chase(const Parameters& p) {
  Kernel kernel;
  Home home(kernel, p);
  CoherentCore core(kernel, p, home, 0);
  ChaseProgram program(kernel, p, core);
  spawn(kernel, program.run());
  kernel.run();
  const double missed = CoherentTiming::cycles_of(core.missed());
  const uint64_t hits = program.accesses() - core.l1_misses();
  PointResult result;
  result.values = {
      {"mean_cycles", mean(missed + static_cast<double>(hits * p.core_l1_cycles), program.accesses())},
      {"miss_cycles", mean(missed, core.l1_misses())},
      {"l1_accesses", static_cast<double>(program.accesses())},
      {"l1_misses", static_cast<double>(core.l1_misses())},
      {"l2_misses", static_cast<double>(core.l2_misses())},
      {"hops", static_cast<double>(program.hops())},
  };
  result.events = kernel.events_run();
  return result;
}

PointResult run_shared_line(const Parameters& p) {
  if (p.shared_write_pause.ps == 0)
    throw BadPoint("shared_write_pause = 0: a core that may write would write for ever; give at least 0.001 ns");
  Kernel kernel;
  Home home(kernel, p);
  std::vector<std::unique_ptr<CoherentCore>> cores;
  for (uint32_t number = 0; number < p.nodes; ++number)
    cores.push_back(std::make_unique<CoherentCore>(kernel, p, home, number));
  SharedLineProgram program(kernel, p, cores);
  spawn(kernel, program.run());
  kernel.run(after({}, p.shared_line_run, "shared_line_run"));
  kernel.destroy_tasks();
  uint64_t misses = 0;
  Span missed;
  for (const auto& core : cores) {
    misses += core->l1_misses();
    missed += core->missed();
  }
  PointResult result;
  result.values = {{"miss_ns", mean(missed.ns(), misses)},
                   {"misses", static_cast<double>(misses)},
                   {"writes", static_cast<double>(program.writes())}};
  result.events = kernel.events_run();
  return result;
}

void expect_multiple(const char* name, uint64_t lines, uint64_t ways) {
  if (lines % ways == 0) return;
  throw BadPoint(std::string(name) + " = " + std::to_string(lines) + ": give a multiple of " + std::to_string(ways));
}

}  // namespace

PointResult run_directory(const Point& point) {
  const Parameters& p = point.parameters;
  if (point.stack == "ldst" || point.stack == "urma") {
    PointResult result;
    result.values = {{"miss_ns", read_latency_ns(point.stack, p)}};
    return result;
  }
  if (point.stack != "directory")
    throw BadPoint("there is no stack " + point.stack + " of directory; there are directory, ldst, urma");
  expect_multiple("core_l1_lines", p.core_l1_lines, CoherentCore::kWays);
  expect_multiple("core_l2_lines", p.core_l2_lines, CoherentCore::kWays);
  expect_multiple("l3_lines", p.l3_lines, Home::kWays);
  if (point.workload == "chase") return run_chase(p);
  if (point.workload == "shared_line") return run_shared_line(p);
  throw BadPoint("workload: there is no \"" + point.workload + "\" of directory; there are chase, shared_line");
}

}  // namespace ub::emu
