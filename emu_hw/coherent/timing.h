// SPDX-License-Identifier: Apache-2.0
//
// Clock and links of a coherent fabric. Caches count cycles of 2 GHz; each message between two caches, or between the
// home and memory, takes a link.
#pragma once

#include "emu_hw/kernel/clock_domain.h"
#include "emu_hw/kernel/task.h"
#include "emu_hw/profiles/parameters.h"

namespace ub::emu {

struct CoherentTiming {
  Kernel& kernel;
  const Parameters& p;

  static constexpr ClockDomain kClock{{2'000'000'000, 1}};
  static double cycles_of(Span span) { return span.ns() * 2; }

  Delay link() const { return delay(kernel, p.link_delay, "coherent.link"); }
  Delay cycles(uint64_t count) const { return delay(kernel, kClock.cycles(count), "coherent.cycles"); }
  Delay memory() const { return delay(kernel, p.remote_dram, "coherent.dram"); }
};

}  // namespace ub::emu
