// SPDX-License-Identifier: Apache-2.0
//
// Cached windows under threads that fault, flush, invalidate, own and fail at random, with caches of 8 pages: every
// byte is what its thread wrote last. Windows of different kinds follow each other for 3 s, or the number of seconds
// given; a second number is the first seed.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/unit/aperture/window/stress.h"

using ub::aperture::WritePolicy;
using ub::aperture::test::Stress;
using ub::aperture::test::StressOptions;

namespace {

StressOptions options_of(uint64_t seed) {
  StressOptions options;
  options.seed = seed;
  options.threads = 3 + static_cast<uint32_t>(seed % 4 == 3) * 9;  // now and then more threads than slots
  options.windows = 1 + seed % 2;
  options.paths = 1 + static_cast<uint32_t>(seed / 2 % 4);
  options.pages = 9 + seed % 30;
  options.policy = seed % 3 == 0 ? WritePolicy::kWriteBack : WritePolicy::kWriteThrough;
  options.failures = seed % 5 == 4;
  options.operations = 6000 / options.threads;
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 3);
  uint64_t seed = argc > 2 ? static_cast<uint64_t>(std::atoll(argv[2])) : 1;
  uint64_t evicted = 0, written_back = 0, waits = 0;
  for (; std::chrono::steady_clock::now() < end; ++seed) {
    Stress stress(options_of(seed));
    if (const std::string why = stress.run(); !why.empty()) {
      std::fprintf(stderr, "window_stress: seed %llu: %s\n", static_cast<unsigned long long>(seed), why.c_str());
      return 1;
    }
    const auto counters = stress.counters(0);
    evicted += counters.evicted_pages;
    written_back += counters.written_back_pages;
    waits += counters.page_waits + counters.path_waits + counters.slot_waits;
  }
  std::printf("up to seed %llu: %llu pages evicted, %llu written back, %llu waits\n",
              static_cast<unsigned long long>(seed), static_cast<unsigned long long>(evicted),
              static_cast<unsigned long long>(written_back), static_cast<unsigned long long>(waits));
  return 0;
}
