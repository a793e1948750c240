// SPDX-License-Identifier: Apache-2.0
//
// The one T that a process has. A child of fork begins without one: threads that it has not may hold the locks of its
// parent's, which is left as it is for ever. Nothing here locks, so nobody waits for such a thread. A T is never
// destroyed, because threads may use it while destructors run.
//
// Use: as a variable of static storage. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "lib/ipc/fd.h"

namespace ub::ipc {

template <class T>
class OfProcess {
 public:
  // Makes it if there is none. Throws std::bad_alloc.
  T& get() {
    Made* made = made_.load(std::memory_order_acquire);
    while (made == nullptr || made->process != fork_generation()) {
      auto* mine = new Made{fork_generation(), made, {}};
      if (made_.compare_exchange_strong(made, mine, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return mine->value;
      }
      delete mine;  // another thread was faster
    }
    return made->value;
  }

  // Null: there is none. Safe in a signal handler.
  T* find() const {
    Made* made = made_.load(std::memory_order_acquire);
    return made != nullptr && made->process == fork_generation() ? &made->value : nullptr;
  }

 private:
  struct Made {
    const uint32_t process;
    const Made* const of_parent;  // or null; so that nobody takes it for lost
    T value;
  };

  std::atomic<Made*> made_{nullptr};
};

}  // namespace ub::ipc
