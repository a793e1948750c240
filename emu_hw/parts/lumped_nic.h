// SPDX-License-Identifier: Apache-2.0
//
// A NIC as the lumped fidelities see it: packets take some cycles through it, and its engine works on one operation of
// its host at a time, from the first step to the last. Others wait in the order in which they came.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "emu_hw/parts/part.h"

namespace ub::emu {

class LumpedNic : public Part {
 public:
  explicit LumpedNic(const Site& site)
      : Part(site), engine_(kernel_, "the engine of node " + std::to_string(site.host)) {}

  // While it lives, the engine is this operation's.
  class [[nodiscard]] Pass {
   public:
    explicit Pass(LumpedNic& nic) : nic_(&nic) {}
    Pass(Pass&& other) noexcept : nic_(std::exchange(other.nic_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (nic_ != nullptr) nic_->leave();
    }

   private:
    LumpedNic* nic_;
  };

  // Pass pass = co_await nic.enter(op);
  class [[nodiscard]] Entry {
   public:
    Entry(LumpedNic& nic, Operation& op) : nic_(nic), op_(op), waiter_(nic.engine_, op) {}
    bool await_ready() const noexcept { return nic_.holder_ == nullptr; }
    void await_suspend(std::coroutine_handle<> handle) noexcept { waiter_.await_suspend(handle); }
    Pass await_resume() {
      nic_.take(op_);
      return Pass(nic_);
    }

   private:
    LumpedNic& nic_;
    Operation& op_;
    WaitList::Waiter waiter_;
  };
  Entry enter(Operation& op) { return {*this, op}; }

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
  void take(Operation& op) {
    op.ledger.charge({"nic.queue", host_}, kernel_.now());
    holder_ = &op;
    engine_.set_holder(holder_);
  }
  // The engine stays taken until the next one, who is let in by an event, has it: nobody gets in between.
  void leave() {
    if (kernel_.is_ending()) return;
    if (!engine_.empty()) {
      engine_.let_in_next();
      return;
    }
    holder_ = nullptr;
    engine_.set_holder(nullptr);
  }

  WaitList engine_;
  const Operation* holder_ = nullptr;
};

}  // namespace ub::emu
