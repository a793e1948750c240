// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tsc_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ub {

namespace {

#if defined(__x86_64__)
bool invariant_counter() {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

// Ticks and nanoseconds over a few milliseconds; good to some parts in a million, which timers do not notice.
uint64_t measure_scale() {
  constexpr uint64_t kSpanNs = 3'000'000;
  uint64_t ns0 = TscClock::monotonic_ns();
  uint64_t ticks0 = __rdtsc();
  uint64_t ns1;
  do {
    ns1 = TscClock::monotonic_ns();
  } while (ns1 - ns0 < kSpanNs);
  uint64_t ticks = __rdtsc() - ticks0;
  if (ticks == 0) return 0;
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{ns1 - ns0} << 32) / ticks);
}
#endif

}  // namespace

TscClock::TscClock() {
#if defined(__x86_64__)
  if (invariant_counter()) scale_ = measure_scale();
  if (scale_ != 0) {
    origin_ = __rdtsc();
    return;
  }
#endif
  origin_ = monotonic_ns();
}

}  // namespace ub
