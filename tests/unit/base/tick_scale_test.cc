// SPDX-License-Identifier: Apache-2.0
// A scale measured by a thread that loses its CPU: whenever that is, the scale is right.
#include "lib/base/tick_scale.h"

#include <gtest/gtest.h>

namespace ub {
namespace {

constexpr uint64_t kSpanNs = 3'000, kTicksPerNs = 3;

// A machine on which each reading of a clock takes 20 ns, and which stands still once, for `pause_ns`, before the
// reading number `pause_at`.
struct Machine {
  uint64_t ns = 1'000'000'000, readings = 0, pause_at = 0, pause_ns = 0;

  uint64_t read() {
    if (readings++ == pause_at) ns += pause_ns;
    return ns += 20;
  }
  uint64_t measure() {
    return measure_tick_scale([this] { return read() * kTicksPerNs; }, [this] { return read(); }, kSpanNs);
  }
};

TEST(TickScale, is_right_whenever_the_thread_is_stopped) {
  Machine undisturbed;
  undisturbed.pause_at = UINT64_MAX;
  const uint64_t expected = (uint64_t{1} << 32) / kTicksPerNs;
  EXPECT_NEAR(static_cast<double>(undisturbed.measure()), static_cast<double>(expected), expected * 0.01);
  for (uint64_t at = 0; at < undisturbed.readings; ++at) {
    for (uint64_t pause : {1'000, 100'000, 10'000'000}) {
      Machine machine;
      machine.pause_at = at;
      machine.pause_ns = pause;
      EXPECT_NEAR(static_cast<double>(machine.measure()), static_cast<double>(expected), expected * 0.01)
          << "stopped for " << pause << " ns before reading " << at;
    }
  }
}

TEST(TickScale, ticks_that_stand_still_give_none) {
  Machine machine;
  machine.pause_at = UINT64_MAX;
  EXPECT_EQ(measure_tick_scale([] { return uint64_t{7}; }, [&] { return machine.read(); }, kSpanNs), 0u);
}

}  // namespace
}  // namespace ub
