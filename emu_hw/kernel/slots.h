// SPDX-License-Identifier: Apache-2.0
//
// So many places of one thing with a name: who finds none free waits, in the order of coming. A place is left at the
// end of the scope that has it, and goes to the next one who waits, so nobody gets in between.
//
//   Slots::Place place = co_await slots.enter(op);
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "emu_hw/kernel/wait_list.h"

namespace ub::emu {

class Slots {
 public:
  Slots(Kernel& kernel, std::string name, uint64_t places)
      : kernel_(kernel), waiting_(kernel, std::move(name)), free_(places) {}

  class [[nodiscard]] Place {
   public:
    explicit Place(Slots& slots) : slots_(&slots) {}
    Place(Place&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place() { leave(); }
    // Before the end of the scope.
    void leave() {
      if (slots_ != nullptr) std::exchange(slots_, nullptr)->leave();
    }

   private:
    Slots* slots_;
  };

  class [[nodiscard]] Entry {
   public:
    Entry(Slots& slots, const Named& who) : slots_(slots), who_(who), waiter_(slots.waiting_, who) {}
    bool await_ready() noexcept {
      if (slots_.free_ == 0) return false;
      --slots_.free_;
      return true;
    }
    void await_suspend(std::coroutine_handle<> handle) noexcept { waiter_.await_suspend(handle); }
    Place await_resume() {
      slots_.waiting_.set_holder(&who_);
      return Place(slots_);
    }

   private:
    Slots& slots_;
    const Named& who_;
    WaitList::Waiter waiter_;
  };
  Entry enter(const Named& who) { return {*this, who}; }

 private:
  void leave() {
    if (kernel_.is_ending()) return;
    waiting_.set_holder(nullptr);
    if (waiting_.empty()) {
      ++free_;
    } else {
      waiting_.let_in_next();
    }
  }

  Kernel& kernel_;
  WaitList waiting_;
  uint64_t free_;
};

}  // namespace ub::emu
