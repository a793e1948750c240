// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include "lib/base/time.h"

namespace ub::ipc {

// Puts this thread to sleep; a signal ends it early. errno may change.
inline void sleep_for(Duration d) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  const timespec time{d.ns / kNsPerSecond, static_cast<long>(d.ns % kNsPerSecond)};
  nanosleep(&time, nullptr);
}

}  // namespace ub::ipc
