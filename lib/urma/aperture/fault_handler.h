// SPDX-License-Identifier: Apache-2.0
//
// The program's handler of a window's faults, and its context. It may be replaced while other threads ask who it is.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/urma/include/ub/umdk/urma/softub_aperture.h"

namespace ub::aperture {

class FaultHandler {
 public:
  struct Value {
    softub_fault_handler_t call = nullptr;  // null: nobody is asked
    void* context = nullptr;
  };

  // Any thread, not from signal handlers. Throws std::bad_alloc.
  void set(Value value) {
    std::lock_guard guard(changes_);
    values_.push_back(std::make_unique<const Value>(value));
    now_.store(values_.back().get(), std::memory_order_release);
  }
  // Any thread, also in a signal handler.
  Value get() const {
    const Value* now = now_.load(std::memory_order_acquire);
    return now != nullptr ? *now : Value{};
  }

 private:
  std::mutex changes_;
  std::vector<std::unique_ptr<const Value>> values_;  // all that there were: somebody may be reading a former one
  std::atomic<const Value*> now_{nullptr};
};

}  // namespace ub::aperture
