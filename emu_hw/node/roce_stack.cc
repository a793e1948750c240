// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/roce_stack.h"

namespace ub::emu {
namespace {

// A READ or an atomic brings data back.
bool reads_there(const Operation& op) {
  return op.verb == Verb::kRead || op.verb == Verb::kFetchAdd || op.verb == Verb::kCompareSwap;
}

}  // namespace

RoceStack::RoceStack(const Parameters& p, EmulatedHost& here, EmulatedHost& there)
    : parameters_(p),
      here_(here),
      there_(there),
      contexts_here_(here.site, roce_contexts(p)),
      contexts_there_(there.site, roce_contexts(p)),
      loss_(here.site, p.nic_cycles_roce, p.gbn_flight),
      requests_(here.node, there.node),
      connections_(here, there, requests_.jfc, p.remote_jetties) {}

bool RoceStack::is_fetched(const Operation& op) const {
  return op.bytes > parameters_.inline_limit;
}

Task RoceStack::run(Operation& op) {
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  co_await here_.cpu.post_lib(op);
  co_await contexts_here_.touch(op);
  co_await here_.cpu.build(op);
  co_await here_.pcie.ring_doorbell(op);
  if (is_fetched(op)) co_await here_.pcie.fetch_request(op);
  co_await here_.gate.pass_roce(op);
  requests_.post(connections_.here(op.receiver), op, 0, roce::make_rkey(requests_.remote.registered.token_id, 0));
  Task travel = there_and_back(op);
  co_await travel;
  requests_.complete(op);
  co_await here_.pcie.write_completion(op);
  co_await here_.cpu.poll_host(op);
  co_await here_.cpu.poll_lib(op);
}

// From the NIC of the initiator to the memory of the target, and back.
Task RoceStack::there_and_back(Operation& op) {
  const uint64_t cycles = parameters_.nic_cycles_roce;
  const Train request = here_.node.hand_over(connections_.here(op.receiver).id);
  requests_.expect_sent(op, request);
  co_await here_.nic.pipe(op, cycles, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
  co_await loss_.draw(op);
  co_await there_.nic.pipe(op, cycles, op.bytes_there());
  co_await contexts_there_.touch(op);
  if (reads_there(op)) {
    co_await there_.pcie.read(op);
  } else {
    co_await there_.pcie.write(op);
  }
  co_await there_.memory.access(op);
  Train answer = there_.node.deliver(request);
  if (op.verb == Verb::kSend) {
    connections_.receivers().take(op);
    co_await there_.cpu.dispatch(op);
    co_await there_.memory.cross_bus(op);
    co_await there_.nic.notify(op);
  }
  if (answer.empty()) {
    if (!there_.node.has_answer()) co_await there_.node.wait_for_answer(op);
    answer = there_.node.take_answer(op);
  }
  co_await there_.nic.pipe(op, cycles, op.bytes_back());
  co_await there_.link.wire(op, op.bytes_back());
  co_await here_.nic.pipe(op, cycles, op.bytes_back());
  if (op.verb == Verb::kRead) co_await here_.pcie.land(op);
  here_.node.finish(answer);
}

}  // namespace ub::emu
