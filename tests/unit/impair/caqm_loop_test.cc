// SPDX-License-Identifier: Apache-2.0
//
// C-AQM in a closed loop (bottleneck.h): its senders behind a hop that grants, refuses and marks (impair/caqm_hop.h),
// packet by packet or with hints, and behind one that only marks. In a round trip of 10 us there are 7.5 packets at 25
// Gb/s, 30 at 100, 120 at 400. The hop aims at a queue of less than ten more. The least window is one packet, so many
// flows make the queue longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/impair/caqm_hop.h"
#include "tests/unit/cc/bottleneck.h"

namespace ub::cc {
namespace {

using bottleneck::Result;
using bottleneck::Sender;
using bottleneck::Setting;

constexpr uint32_t kPacket = 4096 + 62;

bottleneck::Hop grants(uint64_t seed, uint64_t bits_per_second = Setting{}.bits_per_second) {
  const impair::CaqmTarget target{.target_bytes = impair::kUsualCaqmPackets * kPacket};
  const auto hop = std::make_shared<impair::CaqmHop>(bits_per_second, target, seed);
  return [hop](uint64_t queued, bottleneck::Says& says) {
    wire::Cci cci = cci_of(says.ecn);
    cci.hint = says.hint;
    hop->pass(queued, cci);
    says = {congestion_code(cci), cci.hint};
  };
}

Setting with(size_t flows, bottleneck::Hop hop) {
  Setting s;
  s.algorithm = Algorithm::kCaqm;
  s.senders = bottleneck::staggered(flows);
  s.hop = std::move(hop);
  return s;
}

/// Of all windows of one packet, those that are not on the way are in the queue.
double most_queued(size_t flows) { return std::max<double>(21, static_cast<double>(flows)); }

class CaqmForms : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(CaqmLoop, CaqmForms, testing::Bool(),
                         [](const auto& test) { return test.param ? "with_hints" : "by_two_bits"; });

void few_flows_or_many_fill_and_share(uint64_t bits_per_second, Duration length, bool has_hints,
                                      double least_jain = 0.95) {
  for (const uint32_t packets_per_ack : {1u, 8u}) {
    for (const size_t flows : {1, 2, 4, 16, 64}) {
      for (const uint64_t seed : {1, 2, 3}) {
        Setting s = with(flows, grants(seed, bits_per_second));
        s.bits_per_second = bits_per_second;
        s.has_hints = has_hints;
        s.packets_per_ack = packets_per_ack;
        s.length = length;
        const Result r = bottleneck::run(s);
        SCOPED_TRACE(testing::Message() << flows << " flows, " << packets_per_ack << " packets each ack, " << r.text());
        EXPECT_GE(r.utilisation, 0.95);
        EXPECT_GE(r.jain, least_jain);
        EXPECT_LE(r.mean_queue, most_queued(flows));
        EXPECT_GE(*std::min_element(r.windows.begin(), r.windows.end()), 1u);
      }
    }
  }
}

TEST_P(CaqmForms, few_flows_or_many_fill_and_share_25_gigabits) {
  few_flows_or_many_fill_and_share(25'000'000'000, milliseconds(20), GetParam());
}
TEST_P(CaqmForms, few_flows_or_many_fill_and_share_100_gigabits) {
  few_flows_or_many_fill_and_share(100'000'000'000, milliseconds(20), GetParam());
}
// Large windows meet few marks: what four flows get in 6 ms differs by the seed, in both forms alike.
TEST_P(CaqmForms, few_flows_or_many_fill_and_share_400_gigabits) {
  few_flows_or_many_fill_and_share(400'000'000'000, milliseconds(12), GetParam(), 0.9);
}

TEST(CaqmLoop, the_same_seed_gives_the_same_result) {
  const Result a = bottleneck::run(with(16, grants(1))), b = bottleneck::run(with(16, grants(1)));
  EXPECT_EQ(a.shares, b.shares);
  EXPECT_EQ(a.text(), b.text());
}

TEST(CaqmLoop, the_hop_grants_refuses_and_marks) {
  const Result r = bottleneck::run(with(16, grants(1)));
  EXPECT_GT(r.granted, 0u);
  EXPECT_GT(r.asked, r.granted);
  EXPECT_GT(r.marked, 0u);
}

// Each packet asks for its small share, so that a wish can be granted in part.
TEST(CaqmLoop, with_hints_wishes_are_many_and_small) {
  Setting s = with(16, grants(1));
  const Result packets = bottleneck::run(s);
  s.has_hints = true;
  const Result hints = bottleneck::run(s);
  EXPECT_GT(hints.asked, 3 * packets.asked);
  EXPECT_LT(hints.asked_units / hints.asked, kPacket / 32 / 2);
  EXPECT_GT(hints.granted_units, 0u);
  EXPECT_GT(hints.asked_units, hints.granted_units);
  EXPECT_GT(hints.marked, 0u);
}

TEST(CaqmLoop, small_packets_fill_the_line_too) {
  for (const size_t flows : {1, 4, 16}) {
    Setting s = with(flows, grants(1));
    for (Sender& sender : s.senders) sender.bytes = 256;
    const Result r = bottleneck::run(s);
    SCOPED_TRACE(testing::Message() << flows << " flows, " << r.text());
    EXPECT_GE(r.utilisation, 0.95);
    EXPECT_GE(r.jain, 0.95);
    EXPECT_LE(r.mean_queue, 15);
  }
}

// Four flows: a fair share is a quarter of the bytes, whatever the size of the packets.
TEST(CaqmLoop, a_flow_of_small_packets_beside_long_ones_is_not_starved) {
  for (const uint32_t bytes : {256u, 1024u}) {
    Setting s = with(4, grants(1));
    s.senders[0].bytes = bytes;
    const Result r = bottleneck::run(s);
    SCOPED_TRACE(testing::Message() << bytes << " bytes, " << r.text());
    EXPECT_GE(r.shares[0], 0.12);
    EXPECT_LE(r.shares[0], 0.5);
  }
}

TEST(CaqmLoop, a_flow_that_comes_late_gets_its_share) {
  for (const size_t flows : {2, 4, 16}) {
    Setting s = with(flows, grants(1));
    s.senders.back().begin = Instant{} + s.length / 2;
    const Result r = bottleneck::run(s);
    SCOPED_TRACE(testing::Message() << flows << " flows, " << r.text());
    EXPECT_GE(r.shares.back() * static_cast<double>(flows), 0.7);
  }
}

TEST(CaqmLoop, what_a_flow_leaves_behind_is_used) {
  Setting s = with(4, grants(1));
  s.line_bits_per_second = s.bits_per_second;
  for (size_t i = 1; i < 4; ++i) s.senders[i].end = Instant{} + s.length / 2;
  const Result r = bottleneck::run(s);
  SCOPED_TRACE(r.text());
  EXPECT_GE(r.utilisation, 0.95);
  EXPECT_GE(r.shares[0], 0.95);
}

// One packet in 20 us, in a round trip of 10: there is never more than one in flight.
TEST(CaqmLoop, a_flow_that_sends_little_has_a_small_window) {
  Setting s = with(1, grants(1));
  s.senders[0].packet_interval = microseconds(20);
  s.constants.caqm.initial_packets = 1;
  const Result r = bottleneck::run(s);
  EXPECT_LE(r.windows[0], 4);
  EXPECT_EQ(r.marked, 0u);
}

// Its own line is the narrowest place, and no hop sees that.
TEST(CaqmLoop, a_flow_that_its_own_line_holds_back_has_no_unbounded_window) {
  Setting s = with(1, grants(1));
  s.line_bits_per_second = s.bits_per_second / 4;
  const Result r = bottleneck::run(s);
  EXPECT_GE(r.utilisation, 0.245);
  EXPECT_LE(r.windows[0], 20);
}

// ---- a hop that knows nothing of C-AQM ----------------------------------------------------------------------------

TEST(CaqmLoop, behind_an_ordinary_router_it_is_stable_and_fair) {
  for (const uint32_t packets_per_ack : {1u, 8u}) {
    for (const size_t flows : {1, 2, 4, 16, 64}) {
      Setting s = with(flows, bottleneck::marks_above(10 * kPacket));
      s.packets_per_ack = packets_per_ack;
      const Result r = bottleneck::run(s);
      SCOPED_TRACE(testing::Message() << flows << " flows, " << packets_per_ack << " packets each ack, " << r.text());
      EXPECT_GE(r.utilisation, 0.95);
      EXPECT_GE(r.jain, 0.95);
      EXPECT_LE(r.mean_queue, std::max<double>(12, static_cast<double>(flows)));
    }
  }
}

}  // namespace
}  // namespace ub::cc
