// SPDX-License-Identifier: Apache-2.0
// Two nodes and a bridge that moves one flit at a time in each direction.
#include <gtest/gtest.h>

#include "tests/unit/emu_hw/point_of.h"

namespace ub::emu {
namespace {

double elapsed(const Settings& set) { return value("goodput", "elapsed_ns", "bridge", set); }

TEST(Goodput, is_that_of_a_serial_wire) {
  EXPECT_EQ(elapsed({{"operations", "1"}}), 3 * 100 + 2 * 100);
  EXPECT_EQ(elapsed({{"operations", "4"}}), 4 * 300 + 2 * 100);
  EXPECT_EQ(value("goodput", "mops", "bridge", {{"operations", "4"}}), 8.0 * 1000 / 1400);
}

TEST(Goodput, waits_for_the_slower_direction) {
  EXPECT_EQ(elapsed({{"operations", "4"}, {"bridge_flits_back", "5"}}), 300 + 4 * 500);
  EXPECT_EQ(elapsed({{"operations", "4"}, {"bridge_flits_there", "7"}}), 4 * 700 + 200);
}

TEST(Goodput, of_a_link_without_delay_is_the_time_between_looks) {
  EXPECT_EQ(elapsed({{"link_delay", "0"}}), 10);
  EXPECT_EQ(elapsed({{"link_delay", "0"}, {"bridge_poll", "30"}}), 30);
  EXPECT_EQ(elapsed({{"operations", "1"}, {"bridge_poll", "30"}}), 510);
}

TEST(Goodput, says_what_it_cannot_do) {
  EXPECT_EQ(refusal_of("goodput", "urma"), "there is no stack urma of goodput; there is bridge");
  EXPECT_EQ(refusal_of("goodput", "bridge", {{"bridge_poll", "0"}}),
            "bridge_poll = 0: a rate needs some time; give at least 0.001 ns");
}

}  // namespace
}  // namespace ub::emu
