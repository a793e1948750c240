// SPDX-License-Identifier: Apache-2.0
//
// Latencies by operation, by how it ended, and by when the clock began: at the request itself (operation latency) or at
// the time that the schedule had for it (intended latency). In nanoseconds, with three significant digits.
//
// Thread: one for each Latencies. A Recorder has a thread that measures and another one that takes what was measured.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "lib/base/histogram.h"
#include "tools/ycsb/operation.h"

namespace ub::ycsb {

// Buckets as HdrHistogram has them for three significant digits: values below 2048 ns are exact, and above them a
// percentile is off by less than 0.05 %.
using LatencyHistogram = LogLinearHistogram<10>;

enum class Clocked : uint8_t { kOperation, kIntended };

class Latencies {
 public:
  void record(Operation operation, Status status, Clocked clocked, uint64_t ns) {
    std::unique_ptr<LatencyHistogram>& histogram = histograms_[index(operation, status, clocked)];
    if (!histogram) histogram = std::make_unique<LatencyHistogram>();
    histogram->record(ns);
  }
  // Null: there is none of these.
  const LatencyHistogram* get(Operation operation, Status status, Clocked clocked) const {
    const LatencyHistogram* histogram = histograms_[index(operation, status, clocked)].get();
    return histogram != nullptr && histogram->count() > 0 ? histogram : nullptr;
  }
  // fn(name, histogram) for each that is not empty; the names are those of YCSB, as "READ" and "Intended-READ-FAILED".
  template <class Fn>
  void for_each(Fn fn) const {
    for (size_t i = 0; i < kCount; ++i) {
      if (histograms_[i] && histograms_[i]->count() > 0) fn(name(i), *histograms_[i]);
    }
  }
  void merge(const Latencies& other);
  void clear();

 private:
  static constexpr size_t kCount = kOperations * 2 * kStatuses;
  static size_t index(Operation operation, Status status, Clocked clocked) {
    return (static_cast<size_t>(operation) * 2 + static_cast<size_t>(clocked)) * kStatuses +
           static_cast<size_t>(status);
  }
  static std::string name(size_t index);

  std::array<std::unique_ptr<LatencyHistogram>, kCount> histograms_;
};

// Two Latencies, one of which is being written while the other one is read.
class Recorder {
 public:
  // ---- for the thread that measures ----
  Latencies& latencies() { return halves_[active_]; }
  // Now and then: the reader may have the half that was written until now.
  void let_read() {
    if (!wanted_.load(std::memory_order_acquire)) return;
    active_ ^= 1;
    wanted_.store(false, std::memory_order_release);
  }
  // It measures no more.
  void end() { ended_.store(true, std::memory_order_release); }

  // ---- for the reader ----
  // Adds what was measured since the last time; waits for `let_read` or `end`.
  void take(Latencies* sum);

 private:
  std::array<Latencies, 2> halves_;
  unsigned active_ = 0;
  std::atomic<bool> wanted_{false}, ended_{false};
};

}  // namespace ub::ycsb
