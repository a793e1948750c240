// SPDX-License-Identifier: Apache-2.0
//
// Operations as coroutines: the way of an operation is read from top to bottom.
//
//   Task Node::read(Operation& op) {
//     co_await cpu.build(op);          // another task, or an awaiter
//     co_await delay(kernel, span, "bus");
//   }
//   spawn(kernel, node.read(op));      // runs from the next turn on; nobody awaits it
//
// gcc 12 makes mistakes with some temporaries in co_await expressions. So what is awaited is a named object, or has
// no destructor; no lambda is a coroutine; and parameters are values, or references to what outlives the task.
//
// Thread: that of the kernel. A task that was not awaited or spawned does nothing. Errors pass to whoever awaits, or
// end the run.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "emu_hw/kernel/frame_pool.h"
#include "emu_hw/kernel/kernel.h"

namespace ub::emu {

class [[nodiscard]] Task {
 public:
  class promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept;
  void await_resume() const;

 private:
  friend void spawn(Kernel&, Task);

  explicit Task(Handle handle) : handle_(handle) {}

  Handle handle_;
};

class Task::promise_type : private SpawnedTask {
 public:
  Task get_return_object() { return Task(Handle::from_promise(*this)); }
  std::suspend_always initial_suspend() const noexcept { return {}; }

  // Whoever awaits goes on at once; a spawned task ends itself.
  struct End {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle handle) const noexcept {
      promise_type& promise = handle.promise();
      if (promise.awaiting_) return promise.awaiting_;
      if (promise.error_) promise.kernel_->fail(promise.error_);
      promise.kernel_->remove_task(&promise);
      handle.destroy();
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  End final_suspend() const noexcept { return {}; }

  void return_void() const noexcept {}
  void unhandled_exception() { error_ = std::current_exception(); }

  static void* operator new(size_t bytes) { return FramePool::allocate(bytes); }
  static void operator delete(void* at, size_t bytes) { FramePool::release(at, bytes); }

 private:
  friend Task;
  friend void spawn(Kernel&, Task);

  std::coroutine_handle<> awaiting_;
  Kernel* kernel_ = nullptr;  // of a task that was spawned
  std::exception_ptr error_;
};

inline std::coroutine_handle<> Task::await_suspend(std::coroutine_handle<> awaiting) noexcept {
  handle_.promise().awaiting_ = awaiting;
  return handle_;
}

inline void Task::await_resume() const {
  if (handle_.promise().error_) std::rethrow_exception(handle_.promise().error_);
}

inline Event* event_of(std::coroutine_handle<> handle) { return static_cast<Event*>(handle.address()); }

inline void spawn(Kernel& kernel, Task task) {
  Task::promise_type& promise = task.handle_.promise();
  promise.kernel_ = &kernel;
  promise.destroy = [](SpawnedTask* spawned) {
    Task::Handle::from_promise(*static_cast<Task::promise_type*>(spawned)).destroy();
  };
  kernel.add_task(&promise);
  kernel.push_now(event_of(std::exchange(task.handle_, {})));
}

// Goes on so much later; at once if that is nothing.
class [[nodiscard]] Delay {
 public:
  Delay(Kernel& kernel, Span span, const char* who) : kernel_(kernel), span_(span), who_(who) {}
  bool await_ready() const noexcept { return span_.ps == 0; }
  void await_suspend(std::coroutine_handle<> handle) const { kernel_.push_after(span_, event_of(handle), who_); }
  void await_resume() const noexcept {}

 private:
  Kernel& kernel_;
  const Span span_;
  const char* const who_;
};

inline Delay delay(Kernel& kernel, Span span, const char* who) { return {kernel, span, who}; }

}  // namespace ub::emu
