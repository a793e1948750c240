// SPDX-License-Identifier: Apache-2.0
//
// Two nodes that are joined by a bridge. In each direction it moves one flit at a time, which takes the whole delay of
// the link. The target answers a WRITE once all its flits are there. Each flit of the answer counts as a completion.
#include "emu_hw/kernel/task.h"
#include "emu_hw/kernel/wait_list.h"
#include "emu_hw/models/model.h"

namespace ub::emu {
namespace {

class Bridge {
 public:
  Bridge(Kernel& kernel, const Parameters& p) : kernel_(kernel), p_(p), answers_(kernel, "the answer of a WRITE") {}

  Task move_there() {
    for (uint64_t write = 0; write < p_.operations; ++write) {
      for (uint64_t flit = 0; flit < p_.bridge_flits_there; ++flit)
        co_await delay(kernel_, p_.link_delay, "bridge.there");
      ++arrived_;
      if (!answers_.empty()) answers_.let_in_next();
    }
  }
  Task move_back() {
    for (uint64_t write = 0; write < p_.operations; ++write) {
      if (arrived_ == write) co_await answers_.wait(name_);
      for (uint64_t flit = 0; flit < p_.bridge_flits_back; ++flit) {
        co_await delay(kernel_, p_.link_delay, "bridge.back");
        ++completions_;
      }
    }
  }
  // The program. It waits before it looks for the first time.
  Task watch() {
    do co_await delay(kernel_, p_.bridge_poll, "bridge.poll");
    while (completions_ < p_.operations * p_.bridge_flits_back);
    elapsed_ = kernel_.now() - Time{};
  }

  uint64_t completions() const { return completions_; }
  Span elapsed() const { return elapsed_; }

 private:
  struct Back final : Named {
    std::string name() const override { return "the way back"; }
  };

  Kernel& kernel_;
  const Parameters& p_;
  Back name_;
  WaitList answers_;
  uint64_t arrived_ = 0, completions_ = 0;
  Span elapsed_;
};

}  // namespace

PointResult run_goodput(const Point& point) {
  const Parameters& p = point.parameters;
  if (point.stack != "bridge") throw BadPoint("there is no stack " + point.stack + " of goodput; there is bridge");
  if (p.bridge_poll.ps == 0) throw BadPoint("bridge_poll = 0: a rate needs some time; give at least 0.001 ns");
  Kernel kernel;
  Bridge bridge(kernel, p);
  spawn(kernel, bridge.move_there());
  spawn(kernel, bridge.move_back());
  spawn(kernel, bridge.watch());
  kernel.run();
  PointResult result;
  result.values = {{"elapsed_ns", bridge.elapsed().ns()},
                   {"mops", static_cast<double>(bridge.completions()) * 1000 / bridge.elapsed().ns()}};
  result.events = kernel.events_run();
  return result;
}

}  // namespace ub::emu
