// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/urma_stack.h"

namespace ub::emu {

UrmaStack::UrmaStack(const Parameters& p, EmulatedHost& here, const Peers& peers)
    : cycles_(p.nic_cycles_urma),
      here_(here),
      peers_(peers.hosts),
      contexts_(ub_contexts(here.site)),
      loss_(here.site, p.nic_cycles_urma, 1),
      jitter_(here.site),
      fused_ack_(p),
      requests_(here.node),
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
  Task travel = there_and_back(op);
  co_await travel;
  requests_.complete(op);
  co_await here_.attachment.complete(op);
  co_await here_.memory.cross_bus(op);
  co_await here_.cpu.poll_onchip(op);
  co_await here_.cpu.poll_lib(op);
}

// From the NIC of the initiator to the memory of the target, and back.
Task UrmaStack::there_and_back(Operation& op) {
  EmulatedHost& there = *peers_[op.peer];
  Train request = here_.node.hand_over(ring_.id);
  requests_.expect_sent(op, request);
  co_await here_.nic.pipe(op, cycles_, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
  co_await jitter_.stretch_wire(op, op.bytes_there());
  co_await here_.cross_fabric(op, there, op.bytes_there(), request);
  co_await loss_.draw(op);
  co_await there.nic.pipe(op, cycles_, op.bytes_there());
  co_await there.contexts(contexts_).touch(op);
  co_await there.memory.cross_bus(op);
  if (op.verb != Verb::kSend) co_await jitter_.stretch(op, there.site.parameters.membus);
  co_await there.attachment.reach_memory(op);
  co_await there.memory.access(op);
  Train answer = there.node.deliver(request);
  if (op.verb == Verb::kSend) {
    there.service.receivers.take(op);
    co_await there.nic.dispatch(op);
    co_await there.memory.cross_bus(op);
    co_await there.nic.notify(op);
  }
  if (answer.empty()) {
    if (!there.node.has_answer()) co_await there.node.wait_for_answer(op);
    answer = there.node.take_answer(op);
  }
  const uint32_t sent_back = fused_ack_.bytes_sent_back(op);
  co_await there.nic.pipe(op, cycles_, sent_back);
  co_await there.link.wire(op, sent_back);
  co_await jitter_.stretch_wire(op, sent_back);
  co_await there.cross_fabric(op, here_, sent_back, answer);
  co_await here_.nic.pipe(op, cycles_, op.bytes_back());
  here_.node.finish(answer);
}

}  // namespace ub::emu
