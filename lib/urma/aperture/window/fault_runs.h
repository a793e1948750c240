// SPDX-License-Identifier: Apache-2.0
//
// Finds faults in a row: programs that go through a window page by page. The places where the last eight runs would go
// on are remembered, so that threads can go through different parts at the same time. A fault that continues no run
// begins one in the place of the oldest. Thread: any; safe in a signal handler.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace ub::aperture {

class FaultRuns {
 public:
  struct Run {
    bool goes_on;  // false: this fault is its first
    uint32_t place;
  };
  Run find(uint64_t page) {
    for (uint32_t place = 0; place < next_.size(); ++place) {
      if (page != 0 && next_[place].load(std::memory_order_relaxed) == page) return {true, place};
    }
    return {false, turn_.fetch_add(1, std::memory_order_relaxed) % static_cast<uint32_t>(next_.size())};
  }
  // The run goes on if the next fault that is found is at this page.
  void expect(Run run, uint64_t page) { next_[run.place].store(page, std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, 8> next_{};  // 0: none, because no run goes on at the first page
  std::atomic<uint32_t> turn_{0};
};

}  // namespace ub::aperture
