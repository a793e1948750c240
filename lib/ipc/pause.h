// SPDX-License-Identifier: Apache-2.0
//
// A pause for a thread that waits for somebody else and has nothing to be woken by.
#pragma once

#include <time.h>

#include "lib/base/time.h"

namespace ub::ipc {

// The shortest pause in which somebody else gets this CPU. In a virtual machine the kernel takes more than 5 us to set
// its timer; a pause that is over by then does not sleep at all, and takes 20 us nevertheless.
constexpr Duration kShortestPause = microseconds(20);

// A signal ends the pause early. errno may change.
inline void pause_for(Duration d) {
  const timespec t{static_cast<time_t>(d.ns / 1'000'000'000), static_cast<long>(d.ns % 1'000'000'000)};
  nanosleep(&t, nullptr);
}

}  // namespace ub::ipc
