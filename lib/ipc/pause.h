// SPDX-License-Identifier: Apache-2.0
//
// A pause for a thread that waits for somebody else and has nothing to be woken by.
#pragma once

#include <time.h>

#include "lib/base/time.h"

namespace ub::ipc {

// The least that lets somebody else have this CPU. A shorter pause is over before the kernel has set its timer (5 us in
// a virtual machine), and so costs as much as one of this length, without that.
constexpr Duration kShortestPause = microseconds(20);

// A signal ends the pause early. errno may change.
inline void pause_for(Duration d) {
  const timespec t{static_cast<time_t>(d.ns / 1'000'000'000), static_cast<long>(d.ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

}  // namespace ub::ipc
