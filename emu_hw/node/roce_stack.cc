// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/roce_stack.h"

namespace ub::emu {
namespace {

constexpr uint32_t kReads = 16;
constexpr uint8_t kMtu4096 = 5;

// A READ or an atomic brings data back.
bool reads_there(const Operation& op) {
  return op.verb == Verb::kRead || op.verb == Verb::kFetchAdd || op.verb == Verb::kCompareSwap;
}

}  // namespace

RoceStack::RoceStack(const Parameters& p, RequestWay way, EmulatedHost& here, EmulatedHost& there)
    : parameters_(p),
      way_(way),
      here_(here),
      there_(there),
      contexts_here_(here.node.kernel(), here.fidelity, roce_contexts(p)),
      contexts_there_(there.node.kernel(), there.fidelity, roce_contexts(p)),
      requests_(here.node, there.node),
      receivers_here_(here.node),
      receivers_there_(there.node) {
  const auto make = [](Node& node, CompletionQueue& jfc, const Receivers& receivers) {
    return std::make_unique<QueuePair<Node>>(node, jfc, receivers.jfr, WorkRequests::kDepth);
  };
  const auto connect = [](QueuePair<Node>& from, const QueuePair<Node>& to) {
    from.connect(from.node.now(), from.node.link_to(to.node), to.node, to.id, kReads, kMtu4096);
  };
  for (uint64_t i = 0; i < p.remote_jetties; ++i) {
    here_pairs_.push_back(make(here.node, requests_.jfc, receivers_here_));
    there_pairs_.push_back(make(there.node, receivers_there_.jfc, receivers_there_));
    connect(*here_pairs_.back(), *there_pairs_.back());
    connect(*there_pairs_.back(), *here_pairs_.back());
  }
}

bool RoceStack::is_fetched(const Operation& op) const {
  return way_ == RequestWay::kDma || op.bytes > parameters_.inline_limit;
}

Task RoceStack::run(Operation& op) {
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  co_await here_.cpu.post_lib(op);
  co_await contexts_here_.touch(op);
  co_await here_.cpu.build(op);
  co_await here_.pcie.ring_doorbell(op);
  if (is_fetched(op)) co_await here_.pcie.fetch_request(op);
  co_await here_.gate.pass_roce(op);
  requests_.post(*here_pairs_[op.receiver], op, 0, roce::make_rkey(requests_.remote.registered.token_id, 0));
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
  const Train request = here_.node.hand_over(here_pairs_[op.receiver]->id);
  co_await here_.nic.pipe(op, cycles, op.bytes_there());
  co_await here_.link.wire(op, op.bytes_there());
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
    receivers_there_.take(op);
    co_await there_.cpu.dispatch(op);
    co_await there_.memory.cross_bus(op);
    co_await there_.nic.notify(op);
  }
  if (answer.empty()) {
    co_await there_.node.wait_for_answer(op);
    answer = there_.node.take_answer(op);
  }
  co_await there_.nic.pipe(op, cycles, op.bytes_back());
  co_await there_.link.wire(op, op.bytes_back());
  co_await here_.nic.pipe(op, cycles, op.bytes_back());
  if (op.verb == Verb::kRead) co_await here_.pcie.land(op);
  here_.node.deliver(answer);
}

}  // namespace ub::emu
