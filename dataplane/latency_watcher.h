// SPDX-License-Identifier: Apache-2.0
//
// Tells a LatencyWatch of turns and their frames.
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "dataplane/latency_watch.h"
#include "dataplane/watched_core.h"

namespace ub {

template <class Clock>
class LatencyWatcher final : public CoreWatcher {
 public:
  // Both outlive this; Clock::monotonic_ns() is the time.
  LatencyWatcher(LatencyWatch& latency, const Clock& clock) : latency_(latency), clock_(clock) {}

  void begin_turn() {
    received_ = false;
    latency_.begin_turn(clock_.monotonic_ns());
  }
  void end_turn() { latency_.end_turn(clock_.monotonic_ns()); }

  void before_frame(uint32_t, std::span<const std::byte> frame) override {
    if (!std::exchange(received_, true)) latency_.received(clock_.monotonic_ns());
    frame_ = frame;
  }
  void after_frame() override { latency_.handled(clock_.monotonic_ns(), frame_); }

 private:
  LatencyWatch& latency_;
  const Clock& clock_;
  std::span<const std::byte> frame_;
  bool received_ = false;  // the burst of this turn
};

}  // namespace ub
