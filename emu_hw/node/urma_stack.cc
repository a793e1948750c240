// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/urma_stack.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace ub::emu {
namespace {

// One-sided requests name an instance and memory; which queue of the target they name does not matter.
constexpr uint32_t kAnyId = 1;

WrOp opcode_of(Verb verb) {
  switch (verb) {
    case Verb::kRead: return WrOp::kRead;
    case Verb::kWrite: return WrOp::kWrite;
    case Verb::kFetchAdd: return WrOp::kFetchAdd;
    case Verb::kCompareSwap: return WrOp::kCompareSwap;
    default: throw std::invalid_argument(std::string(name_of(verb)) + " is no one-sided work request");
  }
}

}  // namespace

UrmaStack::UrmaStack(const Parameters& parameters, EmulatedHost& here, EmulatedHost& there)
    : cycles_(parameters.nic_cycles_urma),
      here_(here),
      there_(there),
      jfc_(here.node, 2 * kDepth),
      ring_(kDepth, Core<CoreHost>::send_queue_work_bytes(kDepth)),
      local_(here.node, kRegionBytes),
      remote_(there.node, kRegionBytes) {
  JettyConfig config;
  config.kind = ObjectKind::kJfs;
  config.sq = ring_.config(jfc_);
  UB_ASSERT(here_.node.core.create_jetty(config, &ring_.id) == Status::kOk);
  target_ = here_.node.add_target(there_.node, ObjectKind::kJetty, kAnyId);
}

Task UrmaStack::run(Operation& op) {
  LumpedNic::Pass pass = co_await here_.nic.enter(op);
  co_await here_.cpu.post_lib(op);
  co_await here_.cpu.build(op);
  co_await here_.memory.cross_bus(op);
  post(op);
  Task travel = there_and_back(op);
  co_await travel;
  if (!is_complete(op)) throw std::logic_error(op.name() + " is answered, and yet not complete");
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
    op.ledger.charge("core.answer", there_.node.kernel().now());
    answer = there_.node.take_answer();
  }
  co_await there_.nic.pipe(op, cycles_, op.bytes_back());
  co_await there_.link.wire(op, op.bytes_back());
  co_await here_.nic.pipe(op, cycles_, op.bytes_back());
  here_.node.deliver(answer);
}

void UrmaStack::post(const Operation& op) {
  Wqe element{};
  element.op = opcode_of(op.verb);
  element.flags = kWrSignaled;
  element.target = target_;
  element.user_ctx = op.number;
  element.length = op.bytes;
  element.immediate = 1;
  element.token_id = remote_.registered.token_id;
  element.remote_address = remote_.address();
  element.sge = local_.sge(0, op.bytes);
  ring_.post(element);
}

// The oldest completion must be that of the operation.
bool UrmaStack::is_complete(const Operation& op) {
  const Cqe* completion = jfc_.front();
  if (completion == nullptr || completion->user_ctx != op.number) return false;
  if (completion->status != CrStatus::kSuccess)
    throw std::runtime_error(op.name() + " failed, status " + std::to_string(static_cast<int>(completion->status)));
  jfc_.pop();
  here_.node.completions_read(jfc_.id);
  return true;
}

}  // namespace ub::emu
