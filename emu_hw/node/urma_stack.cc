// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/urma_stack.h"

namespace ub::emu {
namespace {

// One-sided requests name an instance and memory; which queue of the target they name does not matter.
constexpr uint32_t kAnyId = 1;

}  // namespace

UrmaStack::UrmaStack(const Parameters& parameters, EmulatedHost& here, EmulatedHost& there)
    : cycles_(parameters.nic_cycles_urma),
      here_(here),
      there_(there),
      requests_(here.node, there.node),
      ring_(OneSided::kDepth, Core<CoreHost>::send_queue_work_bytes(OneSided::kDepth)) {
  JettyConfig config;
  config.kind = ObjectKind::kJfs;
  config.sq = ring_.config(requests_.jfc);
  UB_ASSERT(here.node.core.create_jetty(config, &ring_.id) == Status::kOk);
  target_ = here.node.add_target(there.node, ObjectKind::kJetty, kAnyId);
}

Task UrmaStack::run(Operation& op) {
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  co_await here_.cpu.post_lib(op);
  co_await here_.cpu.build(op);
  co_await here_.memory.cross_bus(op);
  requests_.post(ring_, op, target_, requests_.remote.registered.token_id);
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
  co_await here_.nic.pipe(op, cycles_, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
  co_await there_.nic.pipe(op, cycles_, op.bytes_there());
  co_await there_.memory.cross_bus(op);
  co_await there_.memory.access(op);
  Train answer = there_.node.deliver(request);
  if (answer.empty()) {
    co_await there_.node.wait_for_answer(op);
    answer = there_.node.take_answer(op);
  }
  co_await there_.nic.pipe(op, cycles_, op.bytes_back());
  co_await there_.link.wire(op, op.bytes_back());
  co_await here_.nic.pipe(op, cycles_, op.bytes_back());
  here_.node.deliver(answer);
}

}  // namespace ub::emu
