// SPDX-License-Identifier: Apache-2.0
#include "emu_hw/workload/lock_loop.h"

#include <stdexcept>
#include <string>

namespace ub::emu {
namespace {

constexpr Span kPause = whole_nanoseconds(1);  // between two operations

}  // namespace

void LockLoop::start(uint64_t acquisitions) { spawn(kernel_, take_and_give_back(acquisitions)); }

Task LockLoop::take_and_give_back(uint64_t acquisitions) {
  for (uint64_t i = 0; i < acquisitions; ++i) {
    const Time begin = after(kernel_.now(), kPause, "an attempt");
    do {
      Task attempt = swap(kFree, node_);
      co_await attempt;
    } while (found_ != kFree);
    samples_.push_back({begin, kernel_.now()});
    Task release = swap(node_, kFree);
    co_await release;
    if (found_ != node_) throw std::logic_error("node " + std::to_string(node_) + " had the lock, and it was taken");
  }
}

Task LockLoop::swap(uint64_t compare, uint64_t value) {
  co_await delay(kernel_, kPause, "the next operation");
  Operation op(number_++, node_, Verb::kCompareSwap, 8, kernel_.now());
  op.compare = compare;
  op.operand = value;
  kernel_.begin_operation();
  Task task = stack_.run(op);
  co_await task;
  if (op.ledger.end() != kernel_.now()) throw std::logic_error(op.name() + ": its ledger is not its latency");
  record(op.ledger);
  found_ = op.found;
  kernel_.end_operation();
}

}  // namespace ub::emu
