// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/models/many_hosts.h"

#include <algorithm>

#include "emu_hw/models/measures.h"

namespace ub::emu {

ManyHosts::ManyHosts(const Parameters& p, Fidelity f, uint32_t count) : parameters_(p) {
  if (p.engine == Engine::kPipelined) throw BadPoint("engine = pipelined: is of two_node alone");
  if (p.loss == Loss::kLink) throw BadPoint("loss = link: only links of two_node lose frames; choose loss = rule");
  for (uint32_t number = 1; number <= count; ++number)
    hosts_.push_back(std::make_unique<EmulatedHost>(kernel, p, f, number));
}

void ManyHosts::put_between(Fabric& fabric) {
  for (const auto& each : hosts_) each->fabric = &fabric;
}

void ManyHosts::join(uint32_t a, uint32_t b) {
  if (!joined_.insert(std::minmax(a, b)).second) return;
  Node::join(host(a).node, host(b).node, link_config(parameters_));
}

void ManyHosts::add_program(uint32_t number, const std::string& stack, const std::vector<uint32_t>& peers,
                            std::unique_ptr<Workload> workload) {
  std::vector<EmulatedHost*> hosts;
  for (const uint32_t peer : peers) {
    join(number, peer);
    hosts.push_back(&host(peer));
  }
  Program program{number, make_stack(stack, parameters_, host(number), hosts), std::move(workload), nullptr};
  if (program.stack == nullptr) throw BadPoint("there is no stack or profile " + stack + " of many hosts");
  const auto in_flight = static_cast<uint32_t>(parameters_.in_flight);
  program.loop = std::make_unique<ClosedLoop>(kernel, *program.stack, *program.workload, number, in_flight);
  programs_.push_back(std::move(program));
}

void ManyHosts::open() {
  std::vector<Node*> nodes;
  for (const auto& each : hosts_) nodes.push_back(&each->node);
  Node::settle(nodes);
  for (const Program& program : programs_) program.stack->open();
}

PointResult ManyHosts::run() {
  open();
  PointResult result;
  try {
    for (const Program& program : programs_) program.loop->start(parameters_.operations);
    kernel.run();
    result.invalid = fault();
    if (result.invalid.empty()) result.values = measures_of(samples());
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

// In the order of their ends.
std::vector<Sample> ManyHosts::samples() const {
  std::vector<Sample> all;
  for (const Program& program : programs_)
    all.insert(all.end(), program.loop->samples().begin(), program.loop->samples().end());
  std::stable_sort(all.begin(), all.end(), [](const Sample& a, const Sample& b) { return a.ended < b.ended; });
  return all;
}

}  // namespace ub::emu
