// SPDX-License-Identifier: Apache-2.0
//
// Swift in a closed loop: flows that share a bottleneck which marks nothing. The bounds are what was measured, with a
// margin.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/cc/bottleneck.h"

namespace ub::cc::bottleneck {
namespace {

constexpr uint32_t kSmall = 512;  ///< bytes of a small packet

Setting with_flows(size_t flows) {
  Setting s;
  s.algorithm = Algorithm::kSwift;
  s.senders = staggered(flows);
  return s;
}
/// On the same path its window is four times as large.
Setting faster(Setting s) {
  s.bits_per_second *= 4;
  return s;
}
Setting with_delayed_acks(Setting s) {
  s.packets_per_ack = 8;
  return s;
}

struct Bounds {
  size_t flows;
  double least_utilisation, most_queue, least_jain;
};
void expect(const Setting& s, const Bounds& b) {
  const Result r = run(s);
  SCOPED_TRACE(std::to_string(b.flows) + " flows: " + r.text());
  EXPECT_GE(r.utilisation, b.least_utilisation);
  EXPECT_LE(r.mean_queue, b.most_queue);
  EXPECT_GE(r.jain, b.least_jain);
}

// A target between 25 and 50 us leaves room for 10 to 29 packets beyond a round trip of 11 us. 64 flows keep one packet
// each under way, which is more.
TEST(SwiftLoop, fills_the_line_within_the_target_and_shares_it) {
  for (const Bounds& b :
       {Bounds{1, 0.98, 17, 1}, {2, 0.98, 19, 0.98}, {4, 0.98, 21, 0.98}, {16, 0.97, 26, 0.97}, {64, 0.97, 45, 0.98}}) {
    expect(with_flows(b.flows), b);
  }
}

TEST(SwiftLoop, fills_a_faster_line_within_the_target) {
  for (const Bounds& b : {Bounds{1, 0.98, 55, 1},
                          {2, 0.98, 60, 0.98},
                          {4, 0.98, 65, 0.98},
                          {16, 0.98, 85, 0.98},
                          {64, 0.98, 100, 0.98}}) {
    expect(faster(with_flows(b.flows)), b);
  }
}

// Here each packet is measured, with the delay of its acknowledgement, so the queue is shorter by that.
TEST(SwiftLoop, delayed_acknowledgements_cost_queue_and_not_throughput) {
  for (const Bounds& b : {Bounds{1, 0.98, 13, 1}, {2, 0.98, 16, 0.97}, {4, 0.98, 18, 0.97}, {16, 0.97, 23, 0.97}}) {
    expect(with_delayed_acks(with_flows(b.flows)), b);
  }
}

TEST(SwiftLoop, smaller_steps_and_longer_targets_of_small_windows_share_better_among_many) {
  Setting s = with_flows(64);
  s.constants.swift.increase_percent = 25;
  s.constants.swift.most_scaling = microseconds(75);
  expect(s, {64, 0.97, 70, 0.97});
}

TEST(SwiftLoop, who_comes_late_gets_its_part) {
  Setting s = with_flows(4);
  s.senders[3].begin = Instant{} + milliseconds(5);
  const Result r = run(s);
  EXPECT_GE(r.jain, 0.97) << r.text();
  EXPECT_GE(r.shares[3], 0.22) << r.text();
}

TEST(SwiftLoop, who_stays_takes_what_others_leave) {
  Setting s = with_flows(4);
  for (size_t i = 1; i < 4; ++i) s.senders[i].end = Instant{} + milliseconds(5);
  const Result r = run(s);
  EXPECT_GE(r.utilisation, 0.97) << r.text();
}

TEST(SwiftLoop, small_packets_fill_the_line_too) {
  Setting s = with_flows(16);
  for (Sender& sender : s.senders) sender.bytes = kSmall;
  expect(s, {16, 0.98, 19, 0.97});
}

// The window counts packets, so the part of a flow goes with the size of its packets: here 512 of 512 + 3 * 4158 bytes.
TEST(SwiftLoop, a_flow_of_small_packets_among_large_ones_gets_as_many_packets_through) {
  Setting s = with_flows(4);
  s.senders[0].bytes = kSmall;
  const Result r = run(s);
  const double fair = static_cast<double>(kSmall) / (kSmall + 3 * s.packet_bytes);
  EXPECT_GE(r.shares[0], 0.8 * fair) << r.text();
  EXPECT_LE(r.shares[0], 2 * fair) << r.text();
}

TEST(SwiftLoop, an_application_that_sends_little_earns_no_large_window) {
  for (const int us : {20, 4, 2}) {
    Setting s = with_flows(1);
    s.senders[0].packet_interval = microseconds(us);
    EXPECT_LE(run(s).windows[0], 20u) << us;
  }
}

// The base target is for the network, and somebody has to set it.
TEST(SwiftLoop, fills_a_long_path_only_if_the_target_is_longer) {
  Setting s = with_flows(4);
  s.round_trip = microseconds(60);
  EXPECT_LE(run(s).utilisation, 0.2) << "an empty path seems to be full";
  s.constants.swift.base_target = microseconds(80);
  EXPECT_GE(run(s).utilisation, 0.97);
}

}  // namespace
}  // namespace ub::cc::bottleneck
