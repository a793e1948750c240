// SPDX-License-Identifier: Apache-2.0
// wait.h - waiting for a descriptor, with the back end told that this thread does not drive meanwhile.
// Thread: any.
#pragma once

#include <cstdint>

#include "lib/urma/clock.h"

namespace ub::urma {

enum class WaitFor : uint8_t {
  kCompletion,  // frames bring it: this thread may drive the NIC meanwhile
  kOther,       // what the library's own thread or another program brings
};

// Until the fd is readable or the time (ms, negative: no limit) is over; signals do not shorten it. False: broken fd.
// errno stays as it is, unless poll() itself fails.
bool wait_readable(int fd, int time_out, WaitFor what);

// Waits until take() got something, and returns how much; 0: the time is over; -1: the fd is broken or the object
// behind it is no longer alive(). Another waiter may take what wakes us: we look again.
template <class Take, class Alive>
int wait_and_take(int fd, int time_out, WaitFor what, Take take, Alive alive) {
  constexpr int64_t kNsPerMs = 1'000'000;
  const int64_t end = time_out < 0 ? 0 : now_ns() + time_out * kNsPerMs;
  for (;;) {
    uint32_t count = take();
    if (count != 0) return static_cast<int>(count);
    int64_t left = time_out < 0 ? -kNsPerMs : end - now_ns();
    if (time_out >= 0 && left <= 0) return 0;
    // Rounded up, or the last millisecond would be spent spinning.
    int left_ms = static_cast<int>(time_out < 0 ? -1 : (left + kNsPerMs - 1) / kNsPerMs);
    if (!wait_readable(fd, left_ms, what) || !alive()) return -1;
  }
}

}  // namespace ub::urma
