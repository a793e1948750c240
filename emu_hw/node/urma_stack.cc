// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/urma_stack.h"

namespace ub::emu {
namespace {

constexpr uint32_t kDepthOfReceivers = 1;

size_t work_bytes(uint32_t depth) { return Core<CoreHost>::send_queue_work_bytes(depth); }

uint32_t make_jetty(Node& node, SendRing& ring, const CompletionQueue& jfc, uint32_t jfr) {
  JettyConfig config;
  config.kind = jfr == 0 ? ObjectKind::kJfs : ObjectKind::kJetty;
  config.sq = ring.config(jfc);
  config.jfr = jfr;
  UB_ASSERT(node.core.create_jetty(config, &ring.id) == Status::kOk);
  return ring.id;
}

}  // namespace

UrmaStack::UrmaStack(const Parameters& p, EmulatedHost& here, EmulatedHost& there)
    : cycles_(p.nic_cycles_urma),
      here_(here),
      there_(there),
      contexts_here_(here.site, ub_contexts(p)),
      contexts_there_(there.site, ub_contexts(p)),
      loss_(here.site, p.nic_cycles_urma, 1),
      requests_(here.node, there.node),
      ring_(WorkRequests::kDepth, work_bytes(WorkRequests::kDepth)),
      receivers_(there.node) {
  make_jetty(here.node, ring_, requests_.jfc, 0);
  for (uint64_t i = 0; i < p.remote_jetties; ++i) {
    rings_there_.push_back(std::make_unique<SendRing>(kDepthOfReceivers, work_bytes(kDepthOfReceivers)));
    const uint32_t jetty = make_jetty(there.node, *rings_there_.back(), receivers_.jfc, receivers_.jfr.id);
    targets_.push_back(here.node.add_target(there.node, ObjectKind::kJetty, jetty));
  }
}

Task UrmaStack::run(Operation& op) {
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  co_await here_.cpu.post_lib(op);
  co_await contexts_here_.touch(op);
  co_await here_.cpu.build(op);
  co_await here_.memory.cross_bus(op);
  co_await here_.psn.allocate(op);
  co_await here_.gate.pass_ub(op);
  requests_.post(ring_, op, targets_[op.receiver], requests_.remote.registered.token_id);
  Task travel = there_and_back(op);
  co_await travel;
  requests_.complete(op);
  co_await here_.memory.cross_bus(op);
  co_await here_.cpu.poll_onchip(op);
  co_await here_.cpu.poll_lib(op);
}

// From the NIC of the initiator to the memory of the target, and back.
Task UrmaStack::there_and_back(Operation& op) {
  const Train request = here_.node.hand_over(ring_.id);
  requests_.expect_sent(op, request);
  co_await here_.nic.pipe(op, cycles_, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
  co_await loss_.draw(op);
  co_await there_.nic.pipe(op, cycles_, op.bytes_there());
  co_await contexts_there_.touch(op);
  co_await there_.memory.cross_bus(op);
  co_await there_.memory.access(op);
  Train answer = there_.node.deliver(request);
  if (op.verb == Verb::kSend) {
    receivers_.take(op);
    co_await there_.memory.cross_bus(op);
    co_await there_.nic.notify(op);
  }
  if (answer.empty()) {
    if (!there_.node.has_answer()) co_await there_.node.wait_for_answer(op);
    answer = there_.node.take_answer(op);
  }
  co_await there_.nic.pipe(op, cycles_, op.bytes_back());
  co_await there_.link.wire(op, op.bytes_back());
  co_await here_.nic.pipe(op, cycles_, op.bytes_back());
  here_.node.finish(answer);
}

}  // namespace ub::emu
