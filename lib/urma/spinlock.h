// SPDX-License-Identifier: Apache-2.0
// spinlock.h - the lock of one queue. It is held for tens of nanoseconds, so waiting spins; a holder that was
// descheduled on a busy machine is given the core after a while.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace ub::urma {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

class SpinLock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr uint32_t kSpinsBeforeYield = 128;

  [[gnu::noinline, gnu::cold]] void wait() {
    uint32_t spins = 0;
    while (taken_.load(std::memory_order_relaxed)) {
      if (++spins < kSpinsBeforeYield) {
        cpu_relax();
      } else {
        sched_yield();
      }
    }
  }

  std::atomic<bool> taken_{false};
};

// Takes the lock unless the queue was created with lock_free: then the caller serialises.
class MaybeLocked {
 public:
  MaybeLocked(SpinLock& lock, bool lock_free) : lock_(lock_free ? nullptr : &lock) {
    if (lock_ != nullptr) lock_->lock();
  }
  ~MaybeLocked() {
    if (lock_ != nullptr) lock_->unlock();
  }
  MaybeLocked(const MaybeLocked&) = delete;
  MaybeLocked& operator=(const MaybeLocked&) = delete;

 private:
  SpinLock* lock_;
};

}  // namespace ub::urma
