// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/experiment/run_point.h"

#include <cmath>
#include <cstdio>

#include "emu_hw/node/emulated_host.h"
#include "emu_hw/node/stack.h"
#include "emu_hw/workload/closed_loop.h"

namespace ub::emu {
namespace {

struct Options {
  Parameters parameters;
  WorkloadOptions workload;
  uint32_t in_flight = 1;
  uint64_t operations = 0;
};

struct Limits {
  double least, most;
  bool is_whole;
};

double checked(const std::string& name, double value, const Limits& limits) {
  const bool fits = value >= limits.least && value <= limits.most && (!limits.is_whole || value == std::floor(value));
  if (fits) return value;
  char text[160];
  std::snprintf(text, sizeof text, "%s = %g: give a %snumber from %g to %g", name.c_str(), value,
                limits.is_whole ? "whole " : "", limits.least, limits.most);
  throw BadExperiment(text);
}

void apply(Options& o, const std::string& name, double value) {
  const auto whole = [&](double least, double most) { return checked(name, value, {least, most, true}); };
  if (name == "payload") {
    o.workload.payload = static_cast<uint32_t>(whole(1, 65536));
  } else if (name == "locality") {
    o.workload.locality = checked(name, value, {0, 100, false});
  } else if (name == "strict") {
    o.workload.strict = static_cast<uint32_t>(whole(0, 100));
  } else if (name == "zipf_keys") {
    o.workload.zipf_keys = static_cast<uint64_t>(whole(1, 1 << 24));
  } else if (name == "zipf_alpha") {
    o.workload.zipf_alpha = checked(name, value, {0, 10, false});
  } else if (name == "operations") {
    o.operations = static_cast<uint64_t>(whole(1, 200'000));
  } else if (name == "in_flight") {
    o.in_flight = static_cast<uint32_t>(whole(1, 1 << 20));
  } else if (std::string wrong = set_parameter(o.parameters, name, value); !wrong.empty()) {
    throw BadExperiment(wrong);
  }
}

double measured(Measure measure, const std::vector<Sample>& samples) {
  if (measure == Measure::kMops)
    return static_cast<double>(samples.size() - 1) * 1000 / (samples.back().ended - samples.front().ended).ns();
  uint64_t sum = 0;
  for (const Sample& sample : samples) sum += sample.latency().ps;
  return static_cast<double>(sum) / 1000 / static_cast<double>(samples.size());
}

// Why the point says nothing; "": it does.
std::string judge(Measure measure, const EmulatedHost& here, const EmulatedHost& there, uint64_t done,
                  uint64_t wanted) {
  if (measure == Measure::kMops && wanted < 2) return "a rate needs two operations";
  if (done != wanted) return std::to_string(wanted - done) + " operations are missing";
  for (const EmulatedHost* host : {&here, &there}) {
    const Counters& counters = host->node.core.counters();
    const uint64_t repeated = counters[Counter::kTpTxRetransmitFast] + counters[Counter::kTpTxRetransmitTimeout] +
                              counters[Counter::kRoceTxRetransmit];
    if (repeated != 0) return std::to_string(repeated) + " frames were repeated on a wire that loses none";
  }
  return "";
}

// Tasks go before the parts that they hold.
struct TaskEnd {
  Kernel& kernel;
  ~TaskEnd() { kernel.destroy_tasks(); }
};

PointResult run_once(const Experiment& e, const std::string& stack_name, const Options& o) {
  Kernel kernel;
  EmulatedHost here(kernel, o.parameters, kTwoNode, 1), there(kernel, o.parameters, kTwoNode, 2);
  LinkConfig link;
  link.mtu = 4096;
  link.lossless = true;
  link.bypass = true;
  Node::join(here.node, there.node, link);
  const std::unique_ptr<Stack> stack = make_stack(stack_name, o.parameters, here, there);
  if (stack == nullptr)
    throw BadExperiment(e.path + ": stacks: there is no " + stack_name + "; ldst, urma, bf, dma, iswap, fswap");
  const std::unique_ptr<Workload> workload = make_workload(e.workload, o.parameters, o.workload);
  if (workload == nullptr)
    throw BadExperiment(e.path + ": workload: there is no " + e.workload + "; emu_hw/workload/workload.h lists all");
  Node::settle({&here.node, &there.node});
  stack->open();
  ClosedLoop loop(kernel, *stack, *workload, 1, o.in_flight);
  const TaskEnd end{kernel};
  PointResult result;
  try {
    loop.start(o.operations);
    kernel.run();
    result.invalid = judge(e.measure, here, there, loop.samples().size(), o.operations);
    if (result.invalid.empty()) result.value = measured(e.measure, loop.samples());
  } catch (const std::exception& error) {  // a deadlock, or an operation that the Core refused
    result.invalid = error.what();
  }
  result.events = kernel.events_run();
  result.ledger = loop.first_ledger();
  return result;
}

Options options_of(const Experiment& e, const std::string& stack, double value,
                   const std::map<std::string, double>& overrides) {
  Options o;
  o.operations = e.operations;
  o.workload.loads = has_loads(stack);
  try {
    for (const auto& [name, each] : e.set) apply(o, name, each);
    apply(o, e.sweep, value);
  } catch (const BadExperiment& error) {
    throw BadExperiment(e.path + ": " + error.what());
  }
  for (const auto& [name, each] : overrides) {
    if (name == e.sweep) throw BadExperiment("--set " + name + ": this is what " + e.id + " sweeps; edit its `values`");
    apply(o, name, each);
  }
  return o;
}

}  // namespace

PointResult run_point(const Experiment& e, const std::string& stack, double value,
                      const std::map<std::string, double>& overrides) {
  const Options o = options_of(e, stack, value, overrides);
  PointResult all;
  for (uint64_t repeat = 0; repeat < e.repeats; ++repeat) {
    Options of_repeat = o;
    of_repeat.parameters.seed += repeat;
    of_repeat.workload.seed = of_repeat.parameters.seed;
    const PointResult once = run_once(e, stack, of_repeat);
    all.value += once.value / static_cast<double>(e.repeats);
    all.events += once.events;
    if (all.invalid.empty()) all.invalid = once.invalid;
    if (all.ledger.empty()) all.ledger = once.ledger;
  }
  return all;
}

}  // namespace ub::emu
