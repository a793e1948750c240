// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tsc_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "lib/base/tick_scale.h"

namespace ub {

namespace {

#if defined(__x86_64__)
bool invariant_counter() {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}
#endif

}  // namespace

TscClock::TscClock() {
#if defined(__x86_64__)
  constexpr uint64_t kSpanNs = 3'000'000;
  if (invariant_counter()) scale_ = measure_tick_scale([] { return __rdtsc(); }, monotonic_ns, kSpanNs);
  if (scale_ != 0) {
    origin_ = __rdtsc();
    return;
  }
#endif
  origin_ = monotonic_ns();
}

}  // namespace ub
