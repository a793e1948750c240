// SPDX-License-Identifier: Apache-2.0
#include "tools/ycsb/latencies.h"

#include <chrono>
#include <thread>

namespace ub::ycsb {

void Latencies::merge(const Latencies& other) {
  for (size_t i = 0; i < kCount; ++i) {
    if (!other.histograms_[i] || other.histograms_[i]->count() == 0) continue;
    if (!histograms_[i]) histograms_[i] = std::make_unique<LatencyHistogram>();
    histograms_[i]->merge(*other.histograms_[i]);
  }
}

void Latencies::clear() {
  for (auto& histogram : histograms_) {
    if (histogram && histogram->count() > 0) histogram->clear();
  }
}

std::string Latencies::name(size_t index) {
  constexpr const char* kEndings[kStatuses] = {"", "-NOT_FOUND", "-FAILED"};
  const auto operation = static_cast<Operation>(index / kStatuses / 2);
  const bool intended = index / kStatuses % 2 == 1;
  return std::string(intended ? "Intended-" : "") + operation_name(operation) + kEndings[index % kStatuses];
}

void Recorder::take(Latencies* sum) {
  wanted_.store(true, std::memory_order_release);
  while (wanted_.load(std::memory_order_acquire) && !ended_.load(std::memory_order_acquire)) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (ended_.load(std::memory_order_acquire)) {
    for (Latencies& half : halves_) {
      sum->merge(half);
      half.clear();
    }
    return;
  }
  Latencies& half = halves_[active_ ^ 1];
  sum->merge(half);
  half.clear();
}

}  // namespace ub::ycsb
