// SPDX-License-Identifier: Apache-2.0
//
// How far apart are two CPUs right now? The round trip of one cache line between two pinned threads.
//
// On virtual machines the host moves virtual CPUs between near cores (about 110 ns) and far ones (about 370
// ns) every few seconds, and nothing else shows it. Everything that crosses cores scales with it. So a
// benchmark probes before and after, prints both, and is compared only with runs of the same mode.
//
// Also here: the cheapest clock (`Ticks`), since the probe needs one and so does whoever uses the probe.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tools/common/affinity.h"

namespace ub::tools {

inline uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The CPU's own counter: x86-64 TSC (invariant), AArch64 virtual counter.
struct Ticks {
  static uint64_t now() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    asm volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return monotonic_ns();
#endif
  }
  // Measured once per process against the monotonic clock, in 20 ms.
  static double ns_per_tick() {
    static const double ratio = [] {
      const uint64_t ns_start = monotonic_ns();
      const uint64_t start = now();
      while (monotonic_ns() - ns_start < 20'000'000) {
      }
      const uint64_t ns_end = monotonic_ns();
      return static_cast<double>(ns_end - ns_start) / static_cast<double>(now() - start);
    }();
    return ratio;
  }
};

struct C2cProbe {
  static constexpr double kFarNs = 200;  // between the two modes that were seen

  bool valid = false;    // false: fewer than two CPUs, or one of them could not be used
  double min_ns = 0;     // best window
  double median_ns = 0;  // median over the windows: the mode is taken from it

  const char* mode() const { return !valid ? "unknown" : median_ns < kFarNs ? "near" : "far"; }
};

namespace internal {

struct alignas(128) PingLine {
  std::atomic<uint64_t> value{0};
};

}  // namespace internal

// Takes `windows` x `round_trips` round trips, about 10 ms by default; ends after `limit_ns` in any case.
// Runs on two threads of its own: the caller's affinity stays as it is.
inline C2cProbe probe_c2c(int cpu_a, int cpu_b, unsigned windows = 31, unsigned round_trips = 2000,
                          uint64_t limit_ns = 200'000'000) {
  internal::PingLine line;  // even: a's turn to move it on; odd: b's
  internal::PingLine ready;
  constexpr uint64_t kStop = ~uint64_t{0};
  std::vector<double> window_ns;
  const double ns_per_tick = Ticks::ns_per_tick();
  const uint64_t deadline = monotonic_ns() + limit_ns;

  std::thread echo([&] {
    if (!pin_to_cpu(cpu_b)) {
      ready.value.store(2);
      return;
    }
    ready.value.store(1);
    uint64_t expected = 1;
    for (;;) {
      const uint64_t seen = line.value.load(std::memory_order_acquire);
      if (seen == kStop) return;
      if (seen != expected) continue;
      line.value.store(expected + 1, std::memory_order_release);
      expected += 2;
    }
  });
  std::thread probe([&] {
    if (cpu_a != cpu_b && pin_to_cpu(cpu_a)) {
      while (ready.value.load() == 0) std::this_thread::yield();
      uint64_t turn = 0;
      for (unsigned window = 0; ready.value.load() == 1 && window < windows; ++window) {
        const uint64_t start = Ticks::now();
        for (unsigned i = 0; i < round_trips; ++i, turn += 2) {
          line.value.store(turn + 1, std::memory_order_release);
          while (line.value.load(std::memory_order_acquire) != turn + 2) {
          }
        }
        window_ns.push_back(static_cast<double>(Ticks::now() - start) * ns_per_tick / round_trips);
        if (monotonic_ns() > deadline) break;
      }
    }
    line.value.store(kStop, std::memory_order_release);
  });
  probe.join();
  echo.join();

  C2cProbe result;
  if (window_ns.empty()) return result;
  std::sort(window_ns.begin(), window_ns.end());
  result.valid = true;
  result.min_ns = window_ns.front();
  result.median_ns = window_ns[window_ns.size() / 2];
  return result;
}

// Between the first two CPUs that the caller may use.
inline C2cProbe probe_c2c() {
  const std::vector<int> cpus = allowed_cpus();
  return cpus.size() < 2 ? C2cProbe() : probe_c2c(cpus[0], cpus[1]);
}

}  // namespace ub::tools
