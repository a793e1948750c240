// SPDX-License-Identifier: Apache-2.0
//
// Who sends on a link, or a channel of memory: packets leave one after the other, and those that come meanwhile wait.
// The queue is that of the fabric in a box (lib/impair/line.h), which counts picoseconds here.
#pragma once

#include <cstdint>

#include "emu_hw/kernel/virtual_time.h"
#include "lib/impair/line.h"

namespace ub::emu {

class Transmitter {
 public:
  explicit Transmitter(uint64_t gigabits_per_second) : rate_(gigabits_per_second * 1'000'000) {}

  // What has not left yet; what is leaving counts as a whole.
  uint64_t queued_bytes(Time now) { return line_.queued_bytes({now.ps}); }
  // A packet comes: when its last bit has left.
  Time send(Time now, uint32_t bytes) { return {line_.send({now.ps}, bytes, rate_).ns}; }

 private:
  const uint64_t rate_;  // bits in 10^9 ps
  impair::Line line_;
};

}  // namespace ub::emu
