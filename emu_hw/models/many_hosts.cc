// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/models/many_hosts.h"

#include <algorithm>

#include "emu_hw/models/measures.h"
#include "emu_hw/node/core_config.h"

namespace ub::emu {

ManyHosts::ManyHosts(const Parameters& p, Fidelity f, uint32_t count) : parameters_(p) {
  if (const std::string why = refusal_of_core_config(p); !why.empty()) throw BadPoint(why);
  if (p.engine == Engine::kPipelined) throw BadPoint("engine = pipelined: is of two_node alone");
  if (p.loss == Loss::kLink) throw BadPoint("loss = link: only links of two_node lose frames; choose loss = rule");
  for (uint32_t number = 1; number <= count; ++number)
    hosts_.push_back(std::make_unique<EmulatedHost>(kernel, p, f, number));
  if (p.fabric == FabricKind::kRule) put_between(*(rule_ = std::make_unique<ContentionRule>(kernel, p, f, count)));
  if (p.fabric != FabricKind::kSwitch) return;
  put_between(*(switch_ = std::make_unique<Switch>(kernel, p, f)));
  for (const auto& each : hosts_) each->link.send_one_after_the_other();
}

void ManyHosts::put_between(Fabric& fabric) {
  for (const auto& each : hosts_) each->fabric = &fabric;
}

void ManyHosts::join(uint32_t a, uint32_t b) {
  if (!joined_.insert(std::minmax(a, b)).second) return;
  Node::join(host(a).node, host(b).node, link_config(parameters_));
}

Stack& ManyHosts::add_stack(uint32_t number, const std::string& name, const std::vector<uint32_t>& peers) {
  std::vector<EmulatedHost*> hosts;
  for (const uint32_t peer : peers) {
    join(number, peer);
    hosts.push_back(&host(peer));
  }
  stacks_.push_back(make_stack(name, parameters_, host(number), hosts));
  if (stacks_.back() == nullptr)
    throw BadPoint("stacks: there is no stack or profile " + name +
                   " of many hosts; `ub_emu profiles` lists profiles, with their stacks");
  return *stacks_.back();
}

void ManyHosts::add_program(uint32_t number, Stack& stack, std::unique_ptr<Workload> workload) {
  if (workload == nullptr) throw BadPoint("there is no such workload; emu_hw/workload/workload.h lists all");
  const auto in_flight = static_cast<uint32_t>(parameters_.in_flight);
  add_program(number, std::make_unique<ClosedLoop>(kernel, stack, *workload, number, in_flight));
  workloads_.push_back(std::move(workload));
}

void ManyHosts::add_program(uint32_t number, std::unique_ptr<Loop> loop) {
  programs_.push_back({number, std::move(loop)});
}

void ManyHosts::open() {
  std::vector<Node*> nodes;
  for (const auto& each : hosts_) nodes.push_back(&each->node);
  Node::settle(nodes);
  for (const auto& stack : stacks_) stack->open();
}

PointResult ManyHosts::run() {
  open();
  PointResult result;
  try {
    for (const Program& program : programs_) program.loop->start(parameters_.operations);
    kernel.run();
    result.invalid = fault();
    if (result.invalid.empty()) result.values = values();
  } catch (const std::exception& error) {  // a deadlock, or an operation that the Core refused
    result.invalid = error.what();
  }
  result.events = kernel.events_run();
  if (const auto& ledger = programs_.front().loop->first_ledger()) {
    result.begin = ledger->start();
    result.ledger = ledger->lines();
  }
  return result;
}

// Why the point says nothing; "": it does.
std::string ManyHosts::fault() const {
  for (const Program& program : programs_) {
    const uint64_t missing = parameters_.operations - program.loop->samples().size();
    if (missing != 0) return std::to_string(missing) + " operations of node " + std::to_string(program.host) +
                             " are missing";
  }
  for (const auto& each : hosts_) {
    const uint64_t repeated = each->node.repeated_frames();
    if (repeated != 0) return std::to_string(repeated) + " frames were repeated on a wire that loses none";
  }
  return "";
}

std::map<std::string, double> ManyHosts::values() const {
  std::map<std::string, double> values = measures_of(samples());
  if (switch_ == nullptr) return values;
  values["queue_bytes"] = static_cast<double>(switch_->most_queued());
  values["marked"] = static_cast<double>(switch_->marked());
  return values;
}

// In the order of their ends.
std::vector<Sample> ManyHosts::samples() const {
  std::vector<Sample> all;
  for (const Program& program : programs_)
    all.insert(all.end(), program.loop->samples().begin(), program.loop->samples().end());
  std::stable_sort(all.begin(), all.end(), [](const Sample& a, const Sample& b) { return a.ended < b.ended; });
  return all;
}

}  // namespace ub::emu
