// SPDX-License-Identifier: Apache-2.0
// clock.h - the monotonic clock.
#pragma once

#include <time.h>

#include <cstdint>

namespace ub::urma {

inline int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace ub::urma
