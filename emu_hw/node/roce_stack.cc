// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/roce_stack.h"

namespace ub::emu {

RoceStack::RoceStack(const Parameters& p, EmulatedHost& here, const Peers& peers)
    : RequestStack(p, here, peers),
      parameters_(p),
      contexts_(roce_contexts(here.site)),
      loss_(here.site, p.nic_cycles_roce, p.gbn_flight),
      jitter_(here.site) {
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
  QueuePair<Node>& pair = connections_[op.peer].here(op.receiver);
  requests_.post(pair, op, roce_destination(*peers_[op.peer]));
  Task travel = there_and_back(op, pair.id, pass);
  co_await travel;
  co_await here_.pcie.write_completion(op);
  co_await jitter_.stretch(op, parameters_.pcie_dma_write);
  co_await here_.cpu.poll_host(op);
  co_await here_.cpu.poll_lib(op);
}

Task RoceStack::go_there(Operation& op, Train& train) {
  const uint64_t cycles = parameters_.nic_cycles_roce;
  EmulatedHost& target = there(op);
  co_await here_.nic.initiate(op);
  co_await here_.nic.pipe(op, cycles, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
  co_await jitter_.stretch_wire(op, op.bytes_there());
  co_await here_.cross_fabric(op, target, op.bytes_there(), train);
  co_await loss_.draw(op);
  co_await target.nic.pipe(op, cycles, op.bytes_there());
  co_await target.contexts(contexts_).touch(op);
  if (op.reads_there()) {
    co_await target.pcie.read(op);
    co_await jitter_.stretch(op, parameters_.pcie_dma_read);
  } else {
    co_await target.pcie.write(op);
    if (op.verb != Verb::kSend) co_await jitter_.stretch(op, parameters_.pcie_dma_write);
  }
  co_await target.memory.access(op);
}

Task RoceStack::tell_receiver(Operation& op) {
  EmulatedHost& target = there(op);
  target.service.receivers.take(op);
  co_await target.cpu.dispatch(op);
  co_await target.memory.cross_bus(op);
  co_await target.nic.notify(op);
}

Task RoceStack::go_back(Operation& op, Train& train) {
  const uint64_t cycles = parameters_.nic_cycles_roce;
  EmulatedHost& target = there(op);
  co_await target.nic.pipe(op, cycles, op.bytes_back());
  co_await target.link.wire(op, op.bytes_back());
  co_await jitter_.stretch_wire(op, op.bytes_back());
  co_await target.cross_fabric(op, here_, op.bytes_back(), train);
  co_await here_.nic.pipe(op, cycles, op.bytes_back());
  if (op.verb == Verb::kRead) {
    co_await here_.pcie.land(op);
    co_await jitter_.stretch(op, parameters_.pcie_dma_write);
  }
}

}  // namespace ub::emu
