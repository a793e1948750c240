// SPDX-License-Identifier: Apache-2.0
//
// Tells other processes that this one has died, before anybody can learn it in another way: a page with a robust mutex
// that one thread holds for as long as it lives. When the thread ends, however it does, the kernel marks the mutex, and
// does so before waitpid() tells of the process. It costs nothing meanwhile, and looking is one load.
//
// Thread: begin() by the thread that holds it, which must end before the LifeSign does; reader() by any afterwards.
#pragma once

#include <linux/futex.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/ipc/fd.h"
#include "lib/ipc/memfd.h"

namespace ub::ipc {

struct LifePage {
  static constexpr size_t kBytes = 4096;

  pthread_mutex_t held;

  // The word of a robust mutex that the kernel marks is its first one (robust-futex-ABI of the kernel; nptl).
  bool is_dead() const {
    const auto* word = reinterpret_cast<const std::atomic<uint32_t>*>(&held);
    return (word->load(std::memory_order_acquire) & FUTEX_OWNER_DIED) != 0;
  }
};
static_assert(offsetof(pthread_mutex_t, __data.__lock) == 0 && sizeof(LifePage) <= LifePage::kBytes);

class LifeSign {
 public:
  // False and `*error`: no memory, no descriptors, or no /proc.
  bool begin(std::string* error);
  // Opens the page for reading alone, for others; negative: it has not begun.
  int reader() const { return reader_.get(); }

 private:
  Mapping page_;
  Fd reader_;
};

}  // namespace ub::ipc
