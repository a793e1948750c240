// SPDX-License-Identifier: Apache-2.0
//
// On which of several paths it leaves what a channel sends beside its data (docs/paths-design.md): acknowledgements and
// what they report, notifications of congestion, and confirmations.
#include "lib/transport/tp/fused_ack.h"
#include "lib/transport/tp/transmitter.h"
#include "tests/unit/tp/several_paths.h"
#include "tests/unit/transport/test_host.h"

namespace ub::tp {
namespace {

// The peer's packets come over all of three paths.
struct Answering : SeveralPaths {
  explicit Answering(cc::Algorithm algorithm = cc::Algorithm::kNone,
                     wire::CcAlgorithm agreed = wire::CcAlgorithm::kNone)
      : SeveralPaths(3, algorithm) {
    Channel& c = ch();
    c.peer_tpn = 0x77;
    c.link = 1;
    c.icrc = true;
    c.feedback = agreed;
    c.feeds_back = cc::feedback_size(agreed) != 0;
    c.expected = c.delivered = Psn(500);
    c.highest_seen = Psn(499);
  }
  // A packet of so many bytes that has to be acknowledged now.
  void receive(uint8_t path, uint32_t bytes = 100, uint8_t ecn = wire::kEcnEct0) {
    hear(path);
    on_ecn(*s, channel, now, ch().expected, ecn, bytes);
    demand_ack(*s, channel, now);
  }

  // What has left, by its addresses.
  struct Left {
    wire::TpOpcode opcode;
    bool fake;
    uint16_t path;
    bool operator==(const Left&) const = default;
  };
  std::vector<Left> leave() {
    transmitter.send_acks(Acks::kNow, now);
    std::vector<Left> all;
    cetphs.clear();
    for (const TestHost::Bytes& frame : host.frames) {
      wire::NetHeader net;
      wire::RtpHeader rtp;
      EXPECT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
      EXPECT_EQ(wire::RtpHeader::read(net.tph, net.tp_size(), rtp), wire::Drop::kNone);
      EXPECT_TRUE(wire::icrc_matches(net)) << "it covers the addresses of the path";
      EXPECT_EQ(net.dst, peer_address());
      all.push_back({rtp.opcode, rtp.fake, static_cast<uint16_t>(net.src.port - wire::kUbUdpPort)});
      cetphs.emplace_back(net.tph + wire::RtpHeader::kSize, net.end);
    }
    host.frames.clear();
    return all;
  }

  TestHost host;
  Transmitter<TestHost> transmitter{*s, host};
  std::vector<std::vector<std::byte>> cetphs;  // behind the transport headers of what has left
};

using All = std::vector<Answering::Left>;
constexpr auto kAck = wire::TpOpcode::kAck, kAckCc = wire::TpOpcode::kAckCc, kCnp = wire::TpOpcode::kCnp;

TEST(AckOnPath, leaves_where_the_latest_packet_came_from) {
  Answering s;
  for (const uint8_t path : {2, 0, 1}) {
    s.receive(path);
    EXPECT_EQ(s.leave(), (All{{kAck, false, path}}));
  }
}

TEST(AckOnPath, leaves_on_one_that_lives) {
  Answering s;
  s.receive(2);
  suspect_path(*s.s, s.channel, 2, s.now);
  suspect_path(*s.s, s.channel, 0, s.now);
  EXPECT_EQ(s.leave(), (All{{kAck, false, 1}}));
}

TEST(AckOnPath, reports_of_one_after_the_other_what_came_over_that) {
  Answering s(cc::Algorithm::kLdcp, wire::CcAlgorithm::kLdcp);
  const uint32_t bytes[] = {1000, 2000, 3000};
  for (const uint8_t path : {0, 1, 2}) s.receive(path, bytes[path], wire::kEcnCe);
  for (const uint8_t path : {1, 2, 0}) {
    demand_ack(*s.s, s.channel, s.now);
    ASSERT_EQ(s.leave(), (All{{kAckCc, false, path}}));
    wire::CetphLdcp said;
    ASSERT_EQ(wire::CetphLdcp::read(s.cetphs[0].data(), s.cetphs[0].size(), said), wire::Drop::kNone);
    EXPECT_EQ(said, (wire::CetphLdcp{bytes[path] / 2, bytes[path] / 2}));
  }
}

TEST(AckOnPath, of_caqm_says_once_what_came_over_its_path) {
  Answering s(cc::Algorithm::kCaqm, wire::CcAlgorithm::kCaqm);
  for (const uint8_t path : {0, 1, 2}) {
    for (int n = 0; n <= path; ++n) s.receive(path, 100, wire::kEcnCe);
  }
  for (const bool again : {false, true}) {
    for (const uint8_t path : {1, 2, 0}) {
      if (again) s.receive(path);
      demand_ack(*s.s, s.channel, s.now);
      ASSERT_EQ(s.leave(), (All{{kAckCc, false, path}}));
      wire::CetphCaqm said;
      ASSERT_EQ(wire::CetphCaqm::read(s.cetphs[0].data(), s.cetphs[0].size(), said), wire::Drop::kNone);
      EXPECT_EQ(said.marks, again ? 0 : path + 1);
    }
  }
}

// The path that met congestion is told of it on itself, where the peer finds which it is.
TEST(NotificationOnPath, leaves_where_congestion_was_met_before_the_acknowledgement) {
  Answering s(cc::Algorithm::kDcqcn, wire::CcAlgorithm::kDcqcn);
  s.receive(2, 100, wire::kEcnCe);
  s.receive(1);
  EXPECT_EQ(s.leave(), (All{{kCnp, false, 2}, {kAck, false, 1}}));
}

TEST(ConfirmationOnPath, leaves_where_an_acknowledgement_would) {
  Answering s;
  s.ch().rol = true;
  wire::RtpHeader report;
  report.psn = Psn(98);
  report.rspst = wire::kRspError;
  for (const uint8_t path : {2, 1}) {
    s.hear(path);
    confirm(*s.s, s.channel, s.now, report);
    EXPECT_EQ(s.leave(), (All{{wire::TpOpcode::kData, true, path}}));
  }
  suspect_path(*s.s, s.channel, 1, s.now);
  confirm(*s.s, s.channel, s.now, report);
  EXPECT_EQ(s.leave(), (All{{wire::TpOpcode::kData, true, 0}}));
}

}  // namespace
}  // namespace ub::tp
