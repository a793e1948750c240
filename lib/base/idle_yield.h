// SPDX-License-Identifier: Apache-2.0
//
// When should a thread that polls and finds nothing give its core away? If another thread waits for the core, at once
// and every time. If none does, rarely, because the system call delays the next look. The thread finds out which of the
// two is the case by the time that a yield takes.
//
// Thread: one, or several that do not mind a lost update.
#pragma once

#include <atomic>
#include <cstdint>

namespace ub {

class IdleYield {
 public:
  // The thread calls this once for each look that found nothing. `now_ns` reads a clock, `yield` gives the core away.
  template <class Clock, class Yield>
  void idle(Clock&& now_ns, Yield&& yield) {
    uint32_t looks = looks_.load(std::memory_order_relaxed) + 1;
    if (looks < pause_.load(std::memory_order_relaxed)) return looks_.store(looks, std::memory_order_relaxed);
    looks_.store(0, std::memory_order_relaxed);
    int64_t before = now_ns();
    yield();
    bool wanted = now_ns() - before > kSwitchNs;
    uint32_t pause = pause_.load(std::memory_order_relaxed);
    pause_.store(wanted ? 1 : (pause < kMostLooks ? pause * 2 : kMostLooks), std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kSwitchNs = 2000;  // if a yield takes longer than this, it let somebody else run
  static constexpr uint32_t kMostLooks = 64;  // most looks without a yield

  std::atomic<uint32_t> looks_{0};
  std::atomic<uint32_t> pause_{1};
};

}  // namespace ub
