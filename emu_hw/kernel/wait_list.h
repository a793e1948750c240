// SPDX-License-Identifier: Apache-2.0
//
// Those who wait for one thing with a name, served in the order in which they came. Whoever lets the next one in does
// so by an event, so nobody runs inside of another.
//
//   co_await list.wait(op);      // in a task
//   list.let_in_next();          // by whoever has the thing
//
// Thread: that of the kernel.
#pragma once

#include <coroutine>
#include <cstddef>
#include <string>

#include "emu_hw/kernel/kernel.h"

namespace ub::emu {

// Who can wait: an operation, a workload.
class Named {
 public:
  virtual std::string name() const = 0;

 protected:
  ~Named() = default;
};

class WaitList {
 public:
  // `name` says what is waited for.
  WaitList(Kernel& kernel, std::string name);
  ~WaitList();
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;

  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }

  class [[nodiscard]] Waiter {
   public:
    Waiter(WaitList& list, const Named& who) : list_(list), who_(who) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) noexcept {
      handle_ = handle;
      list_.append(this);
    }
    void await_resume() const noexcept {}

   private:
    friend WaitList;

    WaitList& list_;
    const Named& who_;
    std::coroutine_handle<> handle_;
    Waiter* next_ = nullptr;
  };

  Waiter wait(const Named& who) { return {*this, who}; }

  // The first one goes on, next in line of what happens now. The list must not be empty. Who is it?
  const Named& let_in_next();
  void let_in_all() {
    while (!empty()) let_in_next();
  }

  // For the message of a deadlock: who has it; null: nobody. It must live as long as it is named here.
  void set_holder(const Named* holder) { holder_ = holder; }
  // A line for each who waits.
  std::string describe() const;

 private:
  void append(Waiter* waiter);

  Kernel& kernel_;
  const std::string name_;
  const Named* holder_ = nullptr;
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ub::emu
