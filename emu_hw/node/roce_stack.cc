// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/roce_stack.h"

namespace ub::emu {

RoceStack::RoceStack(const Parameters& p, EmulatedHost& here, const Peers& peers)
    : parameters_(p),
      here_(here),
      peers_(peers.hosts),
      contexts_(roce_contexts(here.site)),
      loss_(here.site, p.nic_cycles_roce, p.gbn_flight),
      jitter_(here.site),
      requests_(here.node) {
  for (EmulatedHost* peer : peers_) connections_.emplace_back(here, *peer, requests_.jfc, p.remote_jetties);
}

bool RoceStack::is_fetched(const Operation& op) const {
  return !here_.site.fidelity.has_blue_flame || op.bytes > parameters_.inline_limit;
}

Task RoceStack::run(Operation& op) {
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  co_await here_.cpu.post_lib(op);
  co_await here_.contexts(contexts_).touch(op);
  co_await here_.cpu.build(op);
  co_await here_.pcie.ring_doorbell(op);
  if (is_fetched(op)) {
    co_await here_.pcie.fetch_request(op);
    co_await jitter_.stretch(op, parameters_.pcie_dma_read);
  }
  co_await here_.gate.pass_roce(op);
  requests_.post(connections_[op.peer].here(op.receiver), op, roce_destination(*peers_[op.peer]));
  Task travel = there_and_back(op);
  co_await travel;
  requests_.complete(op);
  co_await here_.pcie.write_completion(op);
  co_await jitter_.stretch(op, parameters_.pcie_dma_write);
  co_await here_.cpu.poll_host(op);
  co_await here_.cpu.poll_lib(op);
}

// From the NIC of the initiator to the memory of the target, and back.
Task RoceStack::there_and_back(Operation& op) {
  const uint64_t cycles = parameters_.nic_cycles_roce;
  EmulatedHost& there = *peers_[op.peer];
  Train request = here_.node.hand_over(connections_[op.peer].here(op.receiver).id);
  requests_.expect_sent(op, request);
  co_await here_.nic.pipe(op, cycles, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
  co_await jitter_.stretch_wire(op, op.bytes_there());
  co_await here_.cross_fabric(op, there, op.bytes_there(), request);
  co_await loss_.draw(op);
  co_await there.nic.pipe(op, cycles, op.bytes_there());
  co_await there.contexts(contexts_).touch(op);
  if (op.reads_there()) {
    co_await there.pcie.read(op);
    co_await jitter_.stretch(op, parameters_.pcie_dma_read);
  } else {
    co_await there.pcie.write(op);
    if (op.verb != Verb::kSend) co_await jitter_.stretch(op, parameters_.pcie_dma_write);
  }
  co_await there.memory.access(op);
  Train answer = there.node.deliver(request);
  if (op.verb == Verb::kSend) {
    there.service.receivers.take(op);
    co_await there.cpu.dispatch(op);
    co_await there.memory.cross_bus(op);
    co_await there.nic.notify(op);
  }
  if (answer.empty()) {
    if (!there.node.has_answer()) co_await there.node.wait_for_answer(op);
    answer = there.node.take_answer(op);
  }
  co_await there.nic.pipe(op, cycles, op.bytes_back());
  co_await there.link.wire(op, op.bytes_back());
  co_await jitter_.stretch_wire(op, op.bytes_back());
  co_await there.cross_fabric(op, here_, op.bytes_back(), answer);
  co_await here_.nic.pipe(op, cycles, op.bytes_back());
  if (op.verb == Verb::kRead) {
    co_await here_.pcie.land(op);
    co_await jitter_.stretch(op, parameters_.pcie_dma_write);
  }
  here_.node.finish(answer);
}

}  // namespace ub::emu
