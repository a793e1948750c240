// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/urma_stack.h"

namespace ub::emu {

UrmaStack::UrmaStack(const Parameters& p, EmulatedHost& here, const Peers& peers)
    : RequestStack(p, here, peers),
      cycles_(p.nic_cycles_urma),
      contexts_(ub_contexts(here.site)),
      loss_(here.site, p.nic_cycles_urma, 1),
      jitter_(here.site),
      fused_ack_(p),
      ring_(WorkRequests::kDepth, jetty_work_bytes(WorkRequests::kDepth)) {
  make_jetty(here.node, ring_, requests_.jfc, 0);
  for (EmulatedHost* peer : peers_) {
    std::vector<uint32_t>& targets = targets_.emplace_back();
    for (const uint32_t jetty : peer->service.jettys(p.remote_jetties))
      targets.push_back(here.node.add_target(peer->node, ObjectKind::kJetty, jetty));
  }
}

Task UrmaStack::run(Operation& op) {
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  co_await here_.cpu.post_lib(op);
  co_await here_.contexts(contexts_).touch(op);
  co_await here_.cpu.build(op);
  co_await here_.memory.cross_bus(op);
  co_await here_.attachment.hand_over(op);
  co_await here_.psn.allocate(op);
  co_await here_.gate.pass_ub(op);
  const Region& remote = peers_[op.peer]->service.memory;
  requests_.post(ring_, op, {targets_[op.peer][op.receiver], remote.registered.token_id, remote});
  Task travel = there_and_back(op, ring_.id, pass);
  co_await travel;
  co_await here_.attachment.complete(op);
  co_await here_.memory.cross_bus(op);
  co_await here_.cpu.poll_onchip(op);
  co_await here_.cpu.poll_lib(op);
}

Task UrmaStack::go_there(Operation& op, Train& train) {
  EmulatedHost& target = there(op);
  co_await here_.nic.initiate(op);
  co_await here_.nic.pipe(op, cycles_, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
  co_await jitter_.stretch_wire(op, op.bytes_there());
  co_await here_.cross_fabric(op, target, op.bytes_there(), train);
  co_await loss_.draw(op);
  co_await target.nic.pipe(op, cycles_, op.bytes_there());
  co_await target.contexts(contexts_).touch(op);
  co_await target.memory.cross_bus(op);
  if (op.verb != Verb::kSend) co_await jitter_.stretch(op, target.site.parameters.membus);
  co_await target.attachment.reach_memory(op);
  co_await target.memory.access(op);
}

Task UrmaStack::tell_receiver(Operation& op) {
  EmulatedHost& target = there(op);
  target.service.receivers.take(op);
  co_await target.nic.dispatch(op);
  co_await target.memory.cross_bus(op);
  co_await target.nic.notify(op);
}

Task UrmaStack::go_back(Operation& op, Train& train) {
  EmulatedHost& target = there(op);
  const uint32_t sent_back = fused_ack_.bytes_sent_back(op);
  co_await target.nic.pipe(op, cycles_, sent_back);
  co_await target.link.wire(op, sent_back);
  co_await jitter_.stretch_wire(op, sent_back);
  co_await target.cross_fabric(op, here_, sent_back, train);
  co_await here_.nic.pipe(op, cycles_, op.bytes_back());
}

}  // namespace ub::emu
