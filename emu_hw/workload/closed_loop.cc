// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/workload/closed_loop.h"

#include <stdexcept>

namespace ub::emu {
namespace {

constexpr Span kPoll = whole_nanoseconds(1);  // between two looks whether there is room

}  // namespace

ClosedLoop::ClosedLoop(Kernel& kernel, Stack& stack, Workload& workload, uint32_t node, uint32_t in_flight)
    : kernel_(kernel),
      stack_(stack),
      workload_(workload),
      node_(node),
      most_(in_flight),
      program_(node),
      room_(kernel, "room for an operation in flight") {}

void ClosedLoop::start(uint64_t operations) { spawn(kernel_, issue(operations)); }

Task ClosedLoop::issue(uint64_t operations) {
  co_await delay(kernel_, kPoll, "the first issue");
  for (uint64_t number = 0; number < operations; ++number) {
    if (arrivals_ != nullptr) co_await delay(kernel_, arrivals_->gap(), "the next arrival");
    if (in_flight_ == most_) {
      co_await room_.wait(program_);
      co_await delay(kernel_, kPoll, "the next issue");
    }
    ++in_flight_;
    kernel_.begin_operation();
    spawn(kernel_, carry_out(number));
  }
}

Task ClosedLoop::carry_out(uint64_t number) {
  const Step step = workload_.next(number);
  Operation op(number, node_, step.verb, step.bytes, kernel_.now());
  op.place = step.place;
  op.is_strict = step.is_strict;
  op.receiver = step.receiver;
  op.peer = step.peer;
  Task task = stack_.run(op);
  co_await task;
  if (op.ledger.end() != kernel_.now()) throw std::logic_error(op.name() + ": its ledger is not its latency");
  samples_.push_back({op.ledger.start(), kernel_.now()});
  record(op.ledger);
  kernel_.end_operation();
  --in_flight_;
  if (!room_.empty()) room_.let_in_next();
}

}  // namespace ub::emu
