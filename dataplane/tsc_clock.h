// SPDX-License-Identifier: Apache-2.0
//
// The Core's clock: nanoseconds since start, from the time-stamp counter where it is invariant (half the price
// of a clock_gettime), else from CLOCK_MONOTONIC.
#pragma once

#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "lib/base/time.h"

namespace ub {

class TscClock {
 public:
  TscClock();

  Instant now() const {
#if defined(__x86_64__)
    if (scale_ != 0) {
      __extension__ using Wide = unsigned __int128;
      return {1 + static_cast<uint64_t>((Wide{__rdtsc() - origin_} * scale_) >> 32)};
    }
#endif
    return {1 + monotonic_ns() - origin_};
  }

  static uint64_t monotonic_ns() { return ns_of(CLOCK_MONOTONIC); }
  static uint64_t wall_ns() { return ns_of(CLOCK_REALTIME); }  // since 1970

 private:
  static uint64_t ns_of(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  }
  uint64_t origin_ = 0;
  uint64_t scale_ = 0;  // ns per tick, 32.32; 0: no usable counter
};

}  // namespace ub
