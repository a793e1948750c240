// SPDX-License-Identifier: Apache-2.0
//
// From a mark of the network to the rate of who sent what it marked (UB Base Specification Rev 2.0, 6.6): ECN, CNP,
// DCQCN.
#include "lib/transport/cc/feedback.h"
#include "lib/impair/congestion_mark.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

UbOptions with_dcqcn() {
  UbOptions o;
  o.core.congestion_control = cc::Control::kDcqcn;
  o.core.line_bytes_per_second = 1'000'000'000;
  return o;
}

class MarksTest : public UbPair {
 protected:
  explicit MarksTest(const UbOptions& o = with_dcqcn()) : UbPair(o) {}
  void SetUp() override { connect(); }

  uint32_t rate(const UbNode& n) { return channel(n).flow.dcqcn.rate_kbytes_per_second; }
  // What lies in the host of this node goes through a congested hop; so many of its frames may be marked.
  size_t mark(UbNode& from, uint8_t code = wire::kEcnCe) {
    size_t marked = 0;
    for (Bytes& frame : from.host.frames) marked += mark_congestion(frame, code);
    return marked;
  }
  // A packet of a is marked, and what b says of it arrives.
  void congest(uint8_t code = wire::kEcnCe) {
    request(WrOp::kWrite, 100);
    drain(a);
    ASSERT_EQ(mark(a, code), 1u);
    deliver(a, b);
    drain(b);
    deliver(b, a);
  }
};

TEST_F(MarksTest, one_at_the_receiver_cuts_the_rate_of_the_sender) {
  congest();
  EXPECT_EQ(count(b, Counter::kTpTxCnp), 1u);
  EXPECT_EQ(count(a, Counter::kTpRxCnp), 1u);
  EXPECT_EQ(rate(a), 500'000u);
  EXPECT_EQ(rate(b), 0u) << "its own direction has no congestion";
  ChannelInfo shown;
  ASSERT_TRUE(a.core->channel_info(1, &shown));
  EXPECT_STREQ(shown.congestion_control, "dcqcn");
  EXPECT_EQ(shown.rate_kbytes_per_second, 500'000u);
  EXPECT_EQ(shown.counts[ChannelCount::kMarks], 1u);
  EXPECT_EQ(shown.lost(), 0u);
}

TEST_F(MarksTest, a_light_one_is_told_as_such) {
  cc::Mark heard;
  request(WrOp::kWrite, 100);
  drain(a);
  ASSERT_EQ(mark(a, wire::kEcnEct1), 1u);
  deliver(a, b);
  drain(b);
  for (const Bytes& frame : b.host.frames) {
    wire::NetHeader net;
    ASSERT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
    EXPECT_EQ(net.ecn(), parse(frame).data() ? wire::kEcnEct0 : wire::kEcnNotCapable);
    if (parse(frame).rtp.opcode != wire::TpOpcode::kCnp) continue;
    bool any = false;
    EXPECT_EQ(cc::read_notification({net.tph + wire::RtpHeader::kSize, net.end}, &heard, &any), wire::Drop::kNone);
    EXPECT_TRUE(any && !heard.severe);
    EXPECT_TRUE(parse(frame).sealed);
  }
  EXPECT_EQ(count(b, Counter::kTpTxCnp), 1u);
}

TEST_F(MarksTest, many_within_50_us_are_told_once) {
  request(WrOp::kWrite, 8 * 1024);
  drain(a);
  EXPECT_EQ(mark(a), 8u);
  deliver(a, b);
  drain(b);
  EXPECT_EQ(count(b, Counter::kTpTxCnp), 1u);
}

TEST_F(MarksTest, it_waits_for_room_and_is_not_lost) {
  request(WrOp::kWrite, 100);
  drain(a);
  mark(a);
  deliver(a, b);
  b.host.full = true;
  drain(b);
  EXPECT_EQ(count(b, Counter::kTpTxCnp), 0u);
  b.host.full = false;
  drain(b);
  EXPECT_EQ(count(b, Counter::kTpTxCnp), 1u);
}

TEST_F(MarksTest, what_is_slow_gets_everything_done) {
  congest();
  request(WrOp::kWrite, 64 * 1024);
  settle();
  EXPECT_EQ(a.poll().size(), 2u);
  EXPECT_TRUE(arrived(64 * 1024));
}

class NoMarksTest : public MarksTest {
 protected:
  NoMarksTest() : MarksTest(UbOptions{}) {}
};

TEST_F(NoMarksTest, who_agreed_on_nothing_sends_what_may_not_be_marked) {
  request(WrOp::kWrite, 2048);
  drain(a);
  EXPECT_EQ(mark(a), 0u);
}

// A hop that marks all the same.
TEST_F(NoMarksTest, and_tells_nobody_of_marks) {
  request(WrOp::kWrite, 2048);
  drain(a);
  for (Bytes& frame : a.host.frames) {
    const auto sum = static_cast<uint16_t>(load_be16(frame.data() + 24) - 3);  // of the header, in one's complement
    frame[wire::kEthSize + 1] |= std::byte{3};
    store_be16(frame.data() + 24, sum);
  }
  deliver(a, b);
  drain(b);
  EXPECT_EQ(count(b, Counter::kTpRxData), 2u);
  EXPECT_EQ(count(b, Counter::kTpTxCnp), 0u);
}

// docs/wire.md: both ends want the same, or there is no channel.
TEST(MarksSetup, ends_that_want_different_algorithms_have_no_channel) {
  UbNode a(1, with_dcqcn()), b(2, UbOptions{});
  const Instant now{1'000'000};
  a.import(now, b);
  while (a.core->poll_packets(now, 64) != 0) {
  }
  for (const auto& frame : a.host.frames) b.core->on_packet(now, b.link, frame);
  EXPECT_EQ(b.core->counters()[Counter::kTpChannelRejected], a.host.frames.size());
  EXPECT_GT(a.host.frames.size(), 0u);
}

}  // namespace
}  // namespace ub
