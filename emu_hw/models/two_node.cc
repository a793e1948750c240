// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "emu_hw/models/measures.h"
#include "emu_hw/models/model.h"
#include "emu_hw/node/core_config.h"
#include "emu_hw/node/emulated_host.h"
#include "emu_hw/node/stack.h"
#include "emu_hw/node/work_requests.h"
#include "emu_hw/rules/lock.h"
#include "emu_hw/rules/runtime_cap.h"
#include "emu_hw/workload/closed_loop.h"

namespace ub::emu {
namespace {

// Why the point says nothing; "": it does. All operations ended, unless the run was cut.
std::string fault_of(const EmulatedHost& here, const EmulatedHost& there, uint64_t done, const Parameters& p) {
  if (here.site.kernel.is_done() && done != p.operations)
    return std::to_string(p.operations - done) + " operations are missing";
  if (done == 0) return "no operation ended before rule.runtime_cap; set runtime_cap = off";
  if (p.loss == Loss::kLink) return "";
  const uint64_t repeated = here.node.repeated_frames() + there.node.repeated_frames();
  return repeated == 0 ? "" : std::to_string(repeated) + " frames were repeated on a wire that loses none";
}

constexpr uint64_t kMostAttempts = 10'000'000;

void expect_possible(const Point& point) {
  const Parameters& p = point.parameters;
  if (point.workload == "lock" && LockRule(p).attempts(p.operations) > kMostAttempts)
    throw BadPoint("operations, active_connections: a lock takes operations * active_connections attempts; give " +
                   std::to_string(kMostAttempts) + " at most");
  if (const std::string why = refusal_of_core_config(p); !why.empty()) throw BadPoint(why);
  const bool has_requests_alone = point.stack == "urma" || point.stack == "roce";
  if (p.loss == Loss::kLink && !has_requests_alone)
    throw BadPoint("loss = link: " + point.stack + " does not repeat lost frames; choose urma or roce, or loss = rule");
  if (p.engine == Engine::kPipelined && point.stack == "swap")
    throw BadPoint("engine = pipelined: is of ldst, urma and roce, not of " + point.stack);
  if (p.engine == Engine::kPipelined && p.in_flight > WorkRequests::kDepth)
    throw BadPoint("engine = pipelined: a queue takes " + std::to_string(WorkRequests::kDepth) +
                   " requests; give in_flight up to that");
}

// Tasks go before the parts that they hold.
struct TaskEnd {
  Kernel& kernel;
  ~TaskEnd() { kernel.destroy_tasks(); }
};

}  // namespace

PointResult run_two_node(const Point& point) {
  const Parameters& p = point.parameters;
  expect_possible(point);
  Kernel kernel;
  EmulatedHost here(kernel, p, kTwoNode, 1), there(kernel, p, kTwoNode, 2);
  Node::join(here.node, there.node, link_config(p));
  const std::unique_ptr<Stack> stack = make_stack(point.stack, p, here, there);
  if (stack == nullptr)
    throw BadPoint("stacks: there is no stack or profile " + point.stack +
                   " of two_node; `ub_emu profiles` lists profiles, with their stacks");
  const std::unique_ptr<Workload> workload = make_workload(point.workload, p, has_loads(point.stack));
  if (workload == nullptr)
    throw BadPoint("workload: there is no \"" + point.workload + "\"; emu_hw/workload/workload.h lists all");
  Node::settle({&here.node, &there.node});
  stack->open();
  ClosedLoop loop(kernel, *stack, *workload, 1, static_cast<uint32_t>(p.in_flight));
  std::optional<PoissonArrivals> arrivals;
  if (p.offered_rate != 0) loop.issue_by(arrivals.emplace(p));
  const LockRule lock(p);
  const bool is_lock = point.workload == "lock";
  const uint64_t operations = is_lock ? lock.attempts(p.operations) : p.operations;
  const TaskEnd end{kernel};
  PointResult result;
  try {
    loop.start(operations);
    kernel.run(runtime_cap(p, operations));
    const std::vector<Sample> samples = is_lock ? lock.acquisitions(loop.samples()) : loop.samples();
    result.invalid = fault_of(here, there, samples.size(), p);
    if (result.invalid.empty()) result.values = measures_of(samples);
  } catch (const std::exception& error) {  // a deadlock, or an operation that the Core refused
    result.invalid = error.what();
  }
  result.events = kernel.events_run();
  if (loop.first_ledger()) {
    result.begin = loop.first_ledger()->start();
    result.ledger = loop.first_ledger()->lines();
  }
  return result;
}

}  // namespace ub::emu
