// SPDX-License-Identifier: Apache-2.0
//
// Who only listens: everything is noted, nothing is limited.
#include "lib/transport/cc/listener.h"

#include <gtest/gtest.h>

namespace ub::cc {
namespace {

struct Listening : Listener {
  Listening() { begin(v, {}, Psn(0)); }
  void sample(int64_t ns) { round_trip(v, {}, {}, nanoseconds(ns)); }
  Verdict v;
};

TEST(Listener, keeps_the_least_round_trip) {
  Listening l;
  EXPECT_EQ(l.least_round_trip_ns, 0u);
  l.sample(700);
  l.sample(500);
  l.sample(900);
  EXPECT_EQ(l.round_trips, 3u);
  EXPECT_EQ(l.least_round_trip_ns, 500u);
}

TEST(Listener, a_round_trip_that_does_not_fit_is_the_longest_that_does) {
  Listening l;
  l.sample(seconds(5).ns);
  EXPECT_EQ(l.least_round_trip_ns, UINT32_MAX);
  l.sample(0);
  EXPECT_EQ(l.least_round_trip_ns, 1u) << "0: none was measured";
}

TEST(Listener, counts_what_goes_wrong) {
  Listening l;
  l.marked(l.v, {}, {}, {});
  l.fed_back(l.v, {}, {}, {.marked_packets = 4});
  EXPECT_EQ(l.marks, 5u);
  l.lost(l.v, {}, {}, {});
  l.lost(l.v, {}, {}, {});
  EXPECT_EQ(l.losses, 2u);
  l.timed_out(l.v, {}, {}, Psn(0));
  EXPECT_EQ(l.timeouts, 1u);
  l.begin(l.v, {}, Psn(0));
  EXPECT_EQ(l.marks + l.losses + l.timeouts + l.round_trips, 0u);
}

TEST(Listener, counts_stay_at_their_end) {
  Listening l;
  l.marks = UINT16_MAX - 1;
  l.fed_back(l.v, {}, {}, {.marked_packets = 4});
  EXPECT_EQ(l.marks, UINT16_MAX);
}

TEST(Listener, limits_nothing) {
  Listening l;
  l.marked(l.v, {}, {}, {});
  l.lost(l.v, {}, {}, {});
  l.timed_out(l.v, {}, {}, Psn(0));
  EXPECT_EQ(l.v.window_packets, kNoWindow);
  EXPECT_EQ(l.v.next_packet, Instant{});
  EXPECT_TRUE(l.v.timer_at.is_never());
  EXPECT_EQ(l.v.ecn, 0);
}

}  // namespace
}  // namespace ub::cc
