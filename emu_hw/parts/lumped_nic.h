// SPDX-License-Identifier: Apache-2.0
//
// A NIC as the lumped fidelities see it: packets take some cycles through it, and its engine works on one operation of
// its host at a time, from the first step to the last, or until its frames leave. Others wait in the order in which
// they came.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "emu_hw/kernel/slots.h"
#include "emu_hw/parts/part.h"

namespace ub::emu {

class LumpedNic : public Part {
 public:
  explicit LumpedNic(const Site& site)
      : Part(site), engine_(kernel_, "the engine of node " + std::to_string(site.host), 1) {}

  // While it lives, the engine is this operation's.
  using Pass = Slots::Place;

  // Pass pass = co_await nic.enter(op);
  class [[nodiscard]] Entry {
   public:
    Entry(LumpedNic& nic, Operation& op) : nic_(nic), op_(op), entry_(nic.engine_.enter(op)) {}
    bool await_ready() noexcept { return entry_.await_ready(); }
    void await_suspend(std::coroutine_handle<> handle) noexcept { entry_.await_suspend(handle); }
    Pass await_resume() {
      op_.ledger.charge({"nic.queue", nic_.host_}, nic_.kernel_.now());
      return entry_.await_resume();
    }

   private:
    LumpedNic& nic_;
    Operation& op_;
    Slots::Entry entry_;
  };
  Entry enter(Operation& op) { return {*this, op}; }

  // Requests of its host follow each other into the NIC by nic_initiation at least.
  Charge initiate(Operation& op) {
    const Time at = std::max(kernel_.now(), next_initiation_);
    next_initiation_ = after(at, parameters_.nic_cycle * parameters_.nic_initiation, "nic.initiation");
    return Part::take(op, "nic.initiation", at - kernel_.now());
  }

  // One way through the NIC.
  Charge pipe(Operation& op, uint64_t cycles, uint32_t bytes) const {
    return Part::take(op, "nic.pipe", parameters_.nic_cycle * (cycles + more_flits(bytes)));
  }

  // It finds out which of several endpoints a message of UB is for.
  Charge dispatch(Operation& op) const {
    const bool are_several = parameters_.remote_jetties > 1;
    return Part::take(op, "nic.dispatch", are_several ? parameters_.ub_jetty_group_dispatch : Span{});
  }

  // It tells a receiver of a message.
  Charge notify(Operation& op) const {
    return Part::take(op, "nic.notify", parameters_.nic_cycle * parameters_.notify_cycles);
  }

 private:
  uint64_t more_flits(uint32_t bytes) const {
    if (!fidelity_.charges_more_flits || bytes <= parameters_.flit) return 0;
    return (bytes + parameters_.flit - 1) / parameters_.flit - 1;
  }

  Slots engine_;
  Time next_initiation_;
};

}  // namespace ub::emu
