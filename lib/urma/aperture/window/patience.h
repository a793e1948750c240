// SPDX-License-Identifier: Apache-2.0
//
// How a thread waits for another one where no lock may be taken, as in the handler of a fault: it spins for a moment,
// then gives the CPU away, and at last sleeps for 20 us at a time. So it also ends when the other one has a lower
// priority on the same CPU. Safe in a signal handler.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

#include "lib/urma/spinlock.h"

namespace ub::aperture {

class Patience {
 public:
  // One step; the caller looks again after each.
  void wait() {
    ++steps_;
    if (steps_ <= kSpins) {
      urma::cpu_relax();
    } else if (steps_ <= kSpins + kYields) {
      ::sched_yield();
    } else {
      const timespec nap{0, 20'000};
      ::nanosleep(&nap, nullptr);
    }
  }

 private:
  static constexpr uint32_t kSpins = 64;
  static constexpr uint32_t kYields = 256;

  uint32_t steps_ = 0;
};

}  // namespace ub::aperture
