// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/node/work_requests.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace ub::emu {
namespace {

constexpr uint8_t kStrongOrder = 2;

WrOp opcode_of(Verb verb) {
  switch (verb) {
    case Verb::kRead:
      return WrOp::kRead;
    case Verb::kWrite:
      return WrOp::kWrite;
    case Verb::kSend:
      return WrOp::kSend;
    case Verb::kFetchAdd:
      return WrOp::kFetchAdd;
    case Verb::kCompareSwap:
      return WrOp::kCompareSwap;
    default:
      throw std::invalid_argument(std::string(name_of(verb)) + " is no work request");
  }
}

}  // namespace

WorkRequests::WorkRequests(Node& here) : jfc(here, 2 * kDepth), local(here, kMostBytes), here_(here) {}

void WorkRequests::post(SendRing& ring, const Operation& op, const Destination& to) const {
  Wqe element{};
  element.op = opcode_of(op.verb);
  element.flags = kWrSignaled;
  element.target = to.target;
  element.user_ctx = op.number;
  element.length = op.bytes;
  element.immediate = op.operand;
  if (op.verb != Verb::kSend) {
    element.token_id = to.key;
    element.remote_address = to.memory.address() + op.place;
  }
  if (op.is_strict) element.place_order = kStrongOrder;
  element.sge = local.sge(0, op.bytes);
  ring.post(element, op.compare);
}

void WorkRequests::expect_sent(Operation& op, const Train& request) {
  if (!request.empty()) return;
  if (jfc.front() != nullptr) complete(op);
  throw std::logic_error(op.name() + ": the Core sends nothing for it");
}

bool WorkRequests::is_complete(const Operation& op) {
  const Cqe* completion = jfc.front();
  return completion != nullptr && completion->user_ctx == op.number;
}

void WorkRequests::complete(Operation& op) {
  if (!is_complete(op)) throw std::logic_error(op.name() + " is answered, and yet not complete");
  const Cqe* completion = jfc.front();
  if (completion->status != CrStatus::kSuccess)
    throw std::runtime_error(op.name() + " failed, status " + std::to_string(static_cast<int>(completion->status)));
  if (is_atomic(op.verb)) std::memcpy(&op.found, local.data(), sizeof op.found);
  jfc.pop();
  here_.completions_read(jfc.id);
}

}  // namespace ub::emu
