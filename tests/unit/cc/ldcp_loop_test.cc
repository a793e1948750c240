// SPDX-License-Identifier: Apache-2.0
//
// LDCP in a closed loop: flows that share a bottleneck whose queue marks what finds more than 8 packets. The bounds are
// what was measured, with a margin.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/cc/bottleneck.h"

namespace ub::cc::bottleneck {
namespace {

constexpr uint32_t kThreshold = 8;  ///< packets
constexpr uint32_t kSmall = 512;    ///< bytes of a small packet

Setting with_flows(size_t flows) {
  Setting s;
  s.algorithm = Algorithm::kLdcp;
  s.senders = staggered(flows);
  s.hop = marks_above(kThreshold * s.packet_bytes);
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

// Flows that cannot have less than one packet each hold a queue of as many.
TEST(LdcpLoop, fills_the_line_with_a_short_queue_and_shares_it) {
  for (const Bounds& b :
       {Bounds{1, 0.97, 10, 1}, {2, 0.97, 11, 0.93}, {4, 0.97, 11, 0.97}, {16, 0.95, 18, 0.97}, {64, 0.97, 50, 0.97}}) {
    expect(with_flows(b.flows), b);
  }
}

TEST(LdcpLoop, fills_a_faster_line_with_the_same_queue) {
  for (const Bounds& b : {Bounds{1, 0.97, 10, 1}, {2, 0.95, 10, 0.93}, {4, 0.95, 10, 0.97}, {16, 0.9, 15, 0.97}}) {
    expect(faster(with_flows(b.flows)), b);
  }
}

TEST(LdcpLoop, delayed_acknowledgements_change_little) {
  for (const Bounds& b : {Bounds{1, 0.97, 10, 1}, {2, 0.95, 11, 0.85}, {4, 0.95, 11, 0.97}, {16, 0.95, 17, 0.97}}) {
    expect(with_delayed_acks(with_flows(b.flows)), b);
  }
}

TEST(LdcpLoop, who_comes_late_gets_its_part) {
  Setting s = with_flows(4);
  s.senders[3].begin = Instant{} + milliseconds(5);
  const Result r = run(s);
  EXPECT_GE(r.jain, 0.95) << r.text();
  EXPECT_GE(r.shares[3], 0.2) << r.text();
}

TEST(LdcpLoop, who_stays_takes_what_others_leave) {
  Setting s = with_flows(4);
  for (size_t i = 1; i < 4; ++i) s.senders[i].end = Instant{} + milliseconds(5);
  const Result r = run(s);
  EXPECT_GE(r.utilisation, 0.97) << r.text();
}

TEST(LdcpLoop, small_packets_fill_the_line_too) {
  Setting s = with_flows(16);
  for (Sender& sender : s.senders) sender.bytes = kSmall;
  expect(s, {16, 0.97, 10, 0.97});
}

// The window counts packets, so the part of a flow goes with the size of its packets: here 512 of 512 + 3 * 4158 bytes.
TEST(LdcpLoop, a_flow_of_small_packets_among_large_ones_gets_as_many_packets_through) {
  Setting s = with_flows(4);
  s.senders[0].bytes = kSmall;
  const Result r = run(s);
  const double fair = static_cast<double>(kSmall) / (kSmall + 3 * s.packet_bytes);
  EXPECT_GE(r.shares[0], fair / 3) << r.text();
  EXPECT_LE(r.shares[0], 3 * fair) << r.text();
}

TEST(LdcpLoop, an_application_that_sends_little_earns_no_large_window) {
  for (const int us : {20, 4, 2}) {
    Setting s = with_flows(1);
    s.senders[0].packet_interval = microseconds(us);
    const Result r = run(s);
    EXPECT_LE(r.windows[0], 20u) << us;
    EXPECT_EQ(r.marked, 0u) << us;
  }
}

}  // namespace
}  // namespace ub::cc::bottleneck
