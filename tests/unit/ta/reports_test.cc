// SPDX-License-Identifier: Apache-2.0
//
// With C-AQM and LDCP acknowledgements report what the network said of the packets that arrived (UB Base Specification
// Rev 2.0, 6.2.2, 6.6): from the code points of IP to the flow of who sent them.
#include "lib/impair/congestion_mark.h"
#include "lib/transport/cc/feedback.h"
#include "lib/transport/wire/response_status.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

UbOptions with(cc::Control control) {
  UbOptions o;
  o.core.congestion_control = control;
  return o;
}

// What frames that lie in a host say before they arrive.
struct Sum {
  uint32_t words = 0, marked_words = 0, granted_bytes = 0;
  uint8_t marks = 0;
  bool granted = false;
};

class ReportsTest : public UbPair {
 protected:
  static constexpr uint32_t kMtu = 1024;  // of UbOptions::link

  explicit ReportsTest(const UbOptions& o) : UbPair(o), control_(o.core.congestion_control) {}
  void SetUp() override { connect(); }

  struct Ack {
    wire::RtpHeader rtp;
    cc::Feedback report;
    std::vector<uint32_t> beyond;  // what it selects
    bool selective() const { return rtp.opcode == wire::TpOpcode::kSackCc; }
    bool nak() const { return rtp.rspst == wire::kRspError && rtp.rspinfo == wire::kErrPsn; }
  };
  wire::CcAlgorithm agreed() const {
    return control_ == cc::Control::kCaqm ? wire::CcAlgorithm::kCaqm : wire::CcAlgorithm::kLdcp;
  }
  // The acknowledgements among what lies in the host of this node. Each has a report and a seal, and may not be marked.
  std::vector<Ack> acks(const UbNode& from) const {
    std::vector<Ack> all;
    for (const Bytes& frame : from.host.frames) {
      if (parse(frame).data()) continue;
      all.push_back(ack(frame));
    }
    return all;
  }
  // The only one.
  Ack ack_of(UbNode& node) {
    drain(node);
    const std::vector<Ack> all = acks(node);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Ack{} : all[0];
  }
  Sum sum_of(const UbNode& from) const {
    Sum sum;
    for (const Bytes& frame : from.host.frames) {
      wire::NetHeader net;
      EXPECT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
      EXPECT_TRUE(parse(frame).data());
      const auto words = static_cast<uint32_t>((net.tp_size() + wire::kIcrcSize + 1) / 2);
      const bool marked = net.ecn() == wire::kEcnCe;
      sum.words += words;
      sum.marked_words += marked ? words : 0;
      sum.marks = static_cast<uint8_t>(sum.marks + marked);
      sum.granted |= net.ecn() == wire::kEcnEct1;
      sum.granted_bytes += net.ecn() == wire::kEcnEct1 ? kMtu : 0;
    }
    return sum;
  }
  // `before`: what had arrived when the acknowledgement before left.
  void expect(const cc::Feedback& report, const Sum& sum, const Sum& before = {}) const {
    EXPECT_EQ(report.received_words, before.words + sum.words);
    const bool caqm = control_ == cc::Control::kCaqm;
    EXPECT_EQ(report.marked_words, caqm ? 0 : before.marked_words + sum.marked_words);
    EXPECT_EQ(report.marked_packets, caqm ? sum.marks : 0);
    EXPECT_EQ(report.may_increase, caqm && sum.granted);
    EXPECT_EQ(report.granted_bytes, caqm ? sum.granted_bytes : 0);
  }
  // A hop rewrites these frames of a.
  void rewrite(std::initializer_list<size_t> which, uint8_t code) {
    for (const size_t i : which) ASSERT_TRUE(mark_congestion(a.host.frames.at(i), code));
  }
  void lose(size_t which) { a.host.frames.erase(a.host.frames.begin() + static_cast<ptrdiff_t>(which)); }
  // WRITEs of so many full packets; they lie in a's host.
  void write(uint32_t packets) {
    request(WrOp::kWrite, packets * kMtu);
    drain(a);
    ASSERT_EQ(a.host.frames.size(), packets);
  }
  const cc::Flow& flow() const { return channel(a).flow; }
  uint64_t marked(const UbNode& n) const { return count(n, Counter::kTpRxMarked); }

 private:
  Ack ack(const Bytes& frame) const {
    wire::NetHeader net;
    EXPECT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
    EXPECT_EQ(net.ecn(), wire::kEcnNotCapable);
    EXPECT_TRUE(wire::icrc_matches(net));
    Ack out;
    EXPECT_EQ(wire::RtpHeader::read(net.tph, net.tp_size(), out.rtp), wire::Drop::kNone);
    const std::span<const std::byte> rest(net.tph + wire::RtpHeader::kSize, net.end);
    const size_t report_bytes = cc::feedback_size(agreed());
    EXPECT_TRUE(out.selective() || out.rtp.opcode == wire::TpOpcode::kAckCc);
    EXPECT_EQ(cc::read_feedback(agreed(), rest, &out.report), wire::Drop::kNone);
    EXPECT_FALSE(out.report.at_last_hop) << "nobody knows that";
    if (!out.selective()) {
      EXPECT_EQ(rest.size(), report_bytes);
      return out;
    }
    wire::SackView sack;
    const auto behind = rest.subspan(report_bytes);
    EXPECT_EQ(wire::SackView::read(behind.data(), behind.size(), sack), wire::Drop::kNone);
    EXPECT_EQ(behind.size(), sack.size());
    EXPECT_TRUE(sack.test(0));
    for (uint32_t bit = 1; bit < sack.bit_count(); ++bit) {
      if (sack.test(bit)) out.beyond.push_back((out.rtp.psn + bit).value());
    }
    return out;
  }

  const cc::Control control_;
};

class Reports : public ReportsTest, public testing::WithParamInterface<cc::Control> {
 protected:
  explicit Reports(const UbOptions& o = with(GetParam())) : ReportsTest(o) {}
};

#define FOR_BOTH(Fixture)                                                                    \
  INSTANTIATE_TEST_SUITE_P(Both, Fixture, testing::Values(cc::Control::kCaqm, cc::Control::kLdcp), \
                           [](const auto& c) { return c.param == cc::Control::kCaqm ? "caqm" : "ldcp"; })
FOR_BOTH(Reports);

// ---- what an acknowledgement says ------------------------------------------------------------------------------

TEST_P(Reports, an_acknowledgement_says_what_arrived) {
  request(WrOp::kWrite, 2 * kMtu + 453);
  drain(a);
  const Sum sum = sum_of(a);
  EXPECT_EQ(sum.marks, 0u);
  deliver(a, b);
  const Ack ack = ack_of(b);
  EXPECT_FALSE(ack.selective());
  EXPECT_EQ(ack.rtp.psn, Psn(102));
  expect(ack.report, sum);
  EXPECT_EQ(count(b, Counter::kTpTxAck), 1u);
  EXPECT_EQ(count(b, Counter::kTpTxCnp), 0u);
}

TEST_P(Reports, the_next_one_has_the_total_and_only_new_marks) {
  write(4);
  rewrite({0, 2}, wire::kEcnCe);
  const Sum first = sum_of(a);
  EXPECT_EQ(first.marks, 2u);
  deliver(a, b);
  expect(ack_of(b).report, first);
  deliver(b, a);
  drain(a);
  a.host.frames.clear();  // a's acknowledgement of the answer
  write(3);
  rewrite({1}, wire::kEcnCe);
  const Sum second = sum_of(a);
  deliver(a, b);
  expect(ack_of(b).report, second, first);
}

TEST_P(Reports, what_finds_no_room_is_said_later) {
  write(3);
  rewrite({1}, wire::kEcnCe);
  const Sum sum = sum_of(a);
  deliver(a, b);
  b.host.full = true;
  drain(b);
  b.host.full = false;
  expect(ack_of(b).report, sum);
}

TEST_P(Reports, a_gap_is_reported_together_with_what_arrived) {
  write(4);
  rewrite({3}, wire::kEcnCe);
  lose(1);
  const Sum sum = sum_of(a);
  deliver(a, b);
  const Ack ack = ack_of(b);
  EXPECT_TRUE(ack.selective());
  EXPECT_EQ(ack.rtp.psn, Psn(100));
  EXPECT_EQ(ack.beyond, (std::vector<uint32_t>{102, 103}));
  expect(ack.report, sum);
  EXPECT_EQ(count(b, Counter::kTpTxSack), 1u);
  deliver(b, a);
  EXPECT_EQ(psns(sent_by(a)), (std::vector<uint32_t>{101})) << "a reads both";
  exchange();
  EXPECT_EQ(a.poll().size(), 1u);
  EXPECT_TRUE(arrived(4 * kMtu));
}

TEST_P(Reports, what_answers_carry_is_reported_as_well) {
  request(WrOp::kRead, 3 * kMtu);
  drain(a);
  deliver(a, b);
  drain(b);
  for (Bytes& frame : b.host.frames) {
    if (parse(frame).data()) mark_congestion(frame);
  }
  const auto acks_of_b = acks(b).size();
  b.host.frames.erase(std::remove_if(b.host.frames.begin(), b.host.frames.end(),
                                     [](const Bytes& frame) { return !parse(frame).data(); }),
                      b.host.frames.end());
  EXPECT_LE(acks_of_b, 1u);
  const Sum sum = sum_of(b);
  EXPECT_EQ(sum.marks, 3u);
  deliver(b, a);
  expect(ack_of(a).report, sum);
  EXPECT_EQ(marked(a), 3u);
}

// ---- code points -----------------------------------------------------------------------------------------------

TEST_P(Reports, data_leaves_with_the_code_point_of_its_flow) {
  const uint8_t code = flow().ecn;
  EXPECT_EQ(code, GetParam() == cc::Control::kCaqm ? wire::kEcnEct1 : wire::kEcnEct0);
  write(1);
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network(a.host.frames[0], net), wire::Drop::kNone);
  EXPECT_EQ(net.ecn(), code);
  EXPECT_TRUE(parse(a.host.frames[0]).sealed);
}

// UTP packets are of no flow.
TEST(ReportsSetup, records_leave_with_no_code_point) {
  UbNode a(1, with(cc::Control::kCaqm)), b(2, with(cc::Control::kCaqm));
  a.import(Instant{1'000'000}, b);
  while (a.core->poll_packets(Instant{1'000'000}, 64) != 0) {
  }
  EXPECT_FALSE(a.host.frames.empty());
  for (const auto& frame : a.host.frames) {
    wire::NetHeader net;
    ASSERT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
    EXPECT_EQ(net.ecn(), wire::kEcnNotCapable);
  }
}

// The ICRC does not cover what a hop may write.
TEST_P(Reports, hops_may_write_each_code_point) {
  write(4);
  rewrite({0}, wire::kEcnEct0);
  rewrite({1}, wire::kEcnEct1);
  rewrite({2, 3}, wire::kEcnCe);
  for (const Bytes& frame : a.host.frames) EXPECT_TRUE(parse(frame).sealed);
  const Sum sum = sum_of(a);
  deliver(a, b);
  EXPECT_EQ(count(b, Counter::kTpRxData), 4u);
  EXPECT_EQ(count(b, Counter::kRxDropBadIcrc), 0u);
  expect(ack_of(b).report, sum);
  EXPECT_EQ(marked(b), GetParam() == cc::Control::kCaqm ? 2u : 3u) << "01 is a wish there, and a light mark here";
}

// ---- what the sender makes of it -------------------------------------------------------------------------------

class LdcpReports : public ReportsTest {
 protected:
  LdcpReports() : ReportsTest(with(cc::Control::kLdcp)) {}
};

TEST_F(LdcpReports, its_flow_hears_both_totals) {
  write(4);
  rewrite({1, 2}, wire::kEcnCe);
  const Sum sum = sum_of(a);
  deliver(a, b);
  drain(b);
  const uint16_t before = flow().window_packets;
  deliver(b, a);
  EXPECT_EQ(flow().ldcp.received_words, sum.words);
  EXPECT_EQ(flow().ldcp.marked_words, sum.marked_words);
  EXPECT_LT(flow().window_packets, before);
  EXPECT_EQ(channel(b).flow.ldcp.marked_words, 0u) << "b's own direction has no congestion";
  EXPECT_EQ(count(a, Counter::kTpMarks), 1u);
}

class CaqmReports : public ReportsTest {
 protected:
  CaqmReports() : ReportsTest(with(cc::Control::kCaqm)) {}
  uint32_t window() const { return flow().caqm.window_bytes; }
  // The window after the first packets, which hops answered with this.
  uint32_t window_after(uint8_t code) {
    write(4);
    rewrite({0, 1, 2, 3}, code);
    deliver(a, b);
    drain(b);
    deliver(b, a);
    return window();
  }
};

TEST_F(CaqmReports, what_hops_let_pass_enlarges_the_window) {
  const uint32_t before = window();
  EXPECT_EQ(window_after(wire::kEcnEct1), before + 4 * kMtu);
}

TEST_F(CaqmReports, what_hops_refuse_leaves_the_window_as_it_is) {
  const uint32_t before = window();
  EXPECT_EQ(window_after(wire::kEcnEct0), before);
}

TEST_F(CaqmReports, what_hops_mark_makes_the_window_smaller) {
  const uint32_t before = window();
  EXPECT_LT(window_after(wire::kEcnCe), before);
}

// ---- ROL: 6.8.2 ------------------------------------------------------------------------------------------------

UbOptions in_rol(cc::Control control) {
  UbOptions o = with(control);
  o.core.rol = o.rol = true;
  return o;
}

class RolReports : public Reports {
 protected:
  RolReports() : Reports(in_rol(GetParam())) {}
};
FOR_BOTH(RolReports);

TEST_P(RolReports, an_acknowledgement_that_is_an_answer_has_one) {
  ASSERT_TRUE(channel(b).rol);
  write(3);
  rewrite({1}, wire::kEcnCe);
  const Sum sum = sum_of(a);
  deliver(a, b);
  const Ack ack = ack_of(b);
  EXPECT_EQ(ack.rtp.rspst, wire::kRspFused);
  EXPECT_EQ(ack.rtp.rspinfo, wire::kFusedOk);
  expect(ack.report, sum);
  deliver(b, a);
  EXPECT_EQ(a.poll().size(), 1u);
  if (GetParam() == cc::Control::kLdcp) {
    EXPECT_EQ(flow().ldcp.marked_words, sum.marked_words);
  }
}

TEST_P(RolReports, so_has_one_that_selects) {
  write(3);
  lose(1);
  const Sum sum = sum_of(a);
  deliver(a, b);
  const Ack ack = ack_of(b);
  EXPECT_EQ(ack.beyond, (std::vector<uint32_t>{102}));
  expect(ack.report, sum);
  exchange();
  EXPECT_EQ(a.poll().size(), 1u);
}

// ---- Go-Back-N: 6.4.1 ------------------------------------------------------------------------------------------

UbOptions going_back(cc::Control control) {
  UbOptions o = with(control);
  o.core.go_back_n = true;
  return o;
}

class GoBackReports : public Reports {
 protected:
  GoBackReports() : Reports(going_back(GetParam())) {}
};
FOR_BOTH(GoBackReports);

TEST_P(GoBackReports, an_acknowledgement_has_one) {
  ASSERT_TRUE(channel(b).go_back_n);
  write(3);
  rewrite({2}, wire::kEcnCe);
  const Sum sum = sum_of(a);
  deliver(a, b);
  const Ack ack = ack_of(b);
  EXPECT_FALSE(ack.nak());
  expect(ack.report, sum);
}

// What was discarded is not received, but the network marked it.
TEST_P(GoBackReports, so_has_one_that_reports_a_gap) {
  write(4);
  rewrite({3}, wire::kEcnCe);
  const Bytes first = a.host.frames[0];
  wire::NetHeader net;
  ASSERT_EQ(wire::parse_network(first, net), wire::Drop::kNone);
  const auto words = static_cast<uint32_t>((net.tp_size() + wire::kIcrcSize + 1) / 2);
  lose(1);
  const Sum sum = sum_of(a);
  deliver(a, b);
  const Ack ack = ack_of(b);
  EXPECT_TRUE(ack.nak());
  EXPECT_EQ(ack.rtp.psn, Psn(101));
  EXPECT_EQ(ack.report.received_words, words);
  EXPECT_EQ(ack.report.marked_words, 0u);
  EXPECT_EQ(ack.report.marked_packets, GetParam() == cc::Control::kCaqm ? sum.marks : 0);
  EXPECT_EQ(count(b, Counter::kTpTxNak), 1u);
  deliver(b, a);
  if (GetParam() == cc::Control::kLdcp) {
    EXPECT_EQ(flow().ldcp.received_words, words);
  }
  EXPECT_EQ(psns(sent_by(a)), (std::vector<uint32_t>{101, 102, 103}));
  exchange();
  EXPECT_EQ(a.poll().size(), 1u);
}

// ---- on wires that lose ----------------------------------------------------------------------------------------

UbOptions losing(cc::Control control) {
  UbOptions o = with(control);
  o.link.lossless = false;
  o.core.max_queues = 64;
  return o;
}

class LossyReports : public Reports {
 protected:
  LossyReports() : Reports(losing(GetParam())) {}
};
FOR_BOTH(LossyReports);

TEST_P(LossyReports, whatever_the_network_says_everything_gets_done) {
  uint32_t frames = 0;
  filter = [&frames](UbNode&, Bytes& frame) {
    ++frames;
    if (frames % 3 == 0) mark_congestion(frame);
    if (frames % 5 == 0) mark_congestion(frame, wire::kEcnEct0);
    return frames % 7 != 0;
  };
  for (int i = 0; i < 4; ++i) request(WrOp::kWrite, 64 * kMtu);
  settle();
  EXPECT_EQ(a.poll().size(), 4u);
  EXPECT_TRUE(arrived(64 * kMtu));
  EXPECT_GT(marked(b), 0u);
  EXPECT_GT(count(b, Counter::kTpTxSack), 0u);
  EXPECT_EQ(count(a, Counter::kRxDropBadTpOpcode), 0u);
}

// ---- without an algorithm that reports -------------------------------------------------------------------------

class SwiftReports : public UbPair {
 protected:
  SwiftReports() : UbPair(with(cc::Control::kSwift)) {}
  void SetUp() override { connect(); }
};

TEST_F(SwiftReports, swift_marks_nothing_and_is_told_nothing) {
  ASSERT_EQ(channel(a).flow.algorithm, cc::Algorithm::kSwift);
  request(WrOp::kWrite, 3000);
  drain(a);
  for (Bytes& frame : a.host.frames) EXPECT_FALSE(mark_congestion(frame));
  deliver(a, b);
  for (const SeenPacket& p : sent_by(b)) {
    EXPECT_FALSE(p.rtp.has_cetph());
    if (!p.data()) {
      EXPECT_EQ(p.transport_bytes, 0u);
    }
  }
  exchange();
  EXPECT_EQ(a.poll().size(), 1u);
}

}  // namespace
}  // namespace ub
