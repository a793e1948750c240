// SPDX-License-Identifier: Apache-2.0
//
// Two instances whose channel has several paths (docs/paths-design.md): what leaves on which, and what comes of a path
// that is cut.
#include <map>
#include <set>

#include "lib/transport/seal_and_commit.h"
#include "lib/transport/tp/paths.h"
#include "tests/unit/transport/ub_pair.h"

namespace ub {
namespace {

constexpr uint16_t kFirstPort = 30001;

// a has further source ports. Frames take 20 us, however many.
class PathsTest : public UbPair {
 protected:
  static UbOptions on_lossy_wire(cc::Control control = cc::Control::kNone) {
    UbOptions o;
    o.link.lossless = false;
    o.core.most_paths = 4;
    o.core.congestion_control = control;
    return o;
  }
  explicit PathsTest(const UbOptions& o = on_lossy_wire()) : UbPair(o) {
    filter = [this](UbNode& from, Bytes& frame) {
      if (std::exchange(latest_, &from) != &from) now += microseconds(20);
      wire::NetHeader net;
      EXPECT_EQ(wire::parse_network(frame, net), wire::Drop::kNone);
      const uint16_t port = &from == &a ? net.src.port : net.dst.port;
      if (cut.count(port) != 0) return false;
      wire::RtpHeader rtp;
      if (wire::RtpHeader::read(net.tph, net.tp_size(), rtp) != wire::Drop::kNone) return true;
      ++(rtp.is_data() ? data : acks)[&from][port];
      return true;
    };
  }
  void connect_by(uint32_t further_ports) {
    for (uint32_t n = 0; n < further_ports; ++n) {
      ASSERT_EQ(a.core->add_path({{}, {a.at.ip, static_cast<uint16_t>(kFirstPort + n)}, {}}), Status::kOk);
    }
    connect();
    settle();
    ASSERT_EQ(paths_of(b).size(), further_ports + 1);
    for (const PathInfo& p : paths_of(a)) EXPECT_TRUE(p.live);
    for (const PathInfo& p : paths_of(b)) EXPECT_TRUE(p.live);
    forget();
  }
  std::vector<PathInfo> paths_of(const UbNode& node) const {
    std::vector<PathInfo> all(8);
    all.resize(node.core->path_info(1, all));
    return all;
  }
  void forget() {
    data.clear();
    acks.clear();
  }
  void write(uint32_t length) {
    request(WrOp::kWrite, length);
    settle();
    const std::vector<Cqe> completions = a.poll();
    ASSERT_EQ(completions.size(), 1u);
    EXPECT_EQ(completions[0].status, CrStatus::kSuccess);
    EXPECT_TRUE(arrived(length));
  }

  // What has left before is late.
  void leave_later(uint32_t length) {
    now += milliseconds(1);
    request(WrOp::kWrite, length);
    settle();
  }

  std::set<uint16_t> cut;  // ports of a: what comes from there or goes there is lost
  std::map<const UbNode*, std::map<uint16_t, uint32_t>> data, acks;  // that arrived, by who sent it and the port of a

 private:
  const UbNode* latest_ = nullptr;  // who sent the latest frame
};

TEST_F(PathsTest, data_takes_each_of_them) {
  connect_by(2);
  write(96 * 1024);
  ASSERT_EQ(data[&a].size(), 3u);
  for (const auto& [port, packets] : data[&a]) EXPECT_GT(packets, 10u) << port;
  uint64_t left = 0;
  for (const PathInfo& p : paths_of(a)) left += p.tx_packets;
  EXPECT_EQ(left, channel(a).tx_packets);
}

TEST_F(PathsTest, the_peer_uses_them_the_other_way_round) {
  connect_by(1);
  request(WrOp::kRead, 64 * 1024);
  settle();
  EXPECT_EQ(a.poll().size(), 1u);
  ASSERT_EQ(data[&b].size(), 2u);
  for (const auto& [port, packets] : data[&b]) EXPECT_GT(packets, 10u) << port;
  EXPECT_EQ(paths_of(b)[1].remote, (wire::Endpoint{a.at.ip, kFirstPort}));
  EXPECT_EQ(paths_of(b)[1].local, b.at);
}

TEST_F(PathsTest, of_addresses_that_are_mapped_are_learned_by_the_peer) {
  const wire::Endpoint ours{wire::IpAddress::from_v4(0x0B000001), wire::kUbUdpPort};
  const wire::IpAddress theirs = wire::IpAddress::from_v4(0x0B000002);
  ASSERT_EQ(a.core->add_path({b.at.ip, ours, theirs}), Status::kOk);
  connect();
  settle();
  ASSERT_EQ(paths_of(b).size(), 2u);
  EXPECT_EQ(paths_of(b)[1].local, (wire::Endpoint{theirs, b.at.port}));
  EXPECT_EQ(paths_of(b)[1].remote, ours);
  write(64 * 1024);
  EXPECT_GT(paths_of(b)[1].rx_packets, 10u);
}

class CutPathTest : public PathsTest {
 protected:
  // Some of a's packets have arrived when this port is cut; later it works again.
  void cut_for_some_time(uint16_t port, size_t path) {
    connect_by(1);
    write(24 * 1024);
    request(WrOp::kWrite, 24 * 1024);
    drain(a);
    for (int n = 0; n < 10; ++n) {
      b.core->on_packet(now, b.link, a.host.frames.front());
      a.host.frames.pop_front();
    }
    drain(b);
    deliver(b, a);
    cut = {port};
    leave_later(24 * 1024);
    EXPECT_EQ(a.poll().size(), 2u);
    EXPECT_TRUE(arrived(24 * 1024));
    EXPECT_FALSE(paths_of(a)[path].live);
    EXPECT_TRUE(paths_of(a)[1 - path].live);
    EXPECT_EQ(paths_of(a)[path].deaths, 1u);
    EXPECT_EQ(paths_of(a)[path].in_flight, 0u);
    forget();
    write(16 * 1024);
    EXPECT_EQ(data[&a].count(port), 0u);
    EXPECT_EQ(acks[&b].count(port), 0u);
    cut.clear();
    settle();
    EXPECT_TRUE(paths_of(a)[path].live);
    EXPECT_EQ(count(a, Counter::kTpTimeout), 0u);
  }
};

TEST_F(CutPathTest, is_done_without_until_it_works_again) { cut_for_some_time(kFirstPort, 1); }
TEST_F(CutPathTest, of_the_set_up_is_done_without_too) { cut_for_some_time(wire::kUbUdpPort, 0); }

// Nothing was ever acknowledged on it: its round trip is that of the set-up.
TEST_F(PathsTest, of_the_set_up_is_found_to_be_cut_before_any_data_came) {
  connect_by(1);
  cut = {wire::kUbUdpPort};
  request(WrOp::kWrite, 24 * 1024);
  drain(a);
  leave_later(24 * 1024);
  EXPECT_EQ(a.poll().size(), 2u);
  EXPECT_FALSE(paths_of(a)[0].live);
  EXPECT_GT(paths_of(a)[0].lost, 10u);
}

TEST_F(PathsTest, are_all_the_same_to_who_closes_a_channel) {
  connect_by(1);
  cut = {wire::kUbUdpPort};
  request(WrOp::kWrite, 24 * 1024);
  drain(a);
  leave_later(24 * 1024);
  ASSERT_FALSE(paths_of(a)[0].live);
  a.core->close(now);
  settle();
  EXPECT_EQ(count(b, Counter::kTpChannelClosed), 1u);
  EXPECT_EQ(state(b).path_blocks.in_use(), 0u);
}

// ---- addresses of packets --------------------------------------------------------------------------------------

class AddressesTest : public PathsTest {
 protected:
  AddressesTest() { connect_by(1); }
  // A packet of a's, as if it came from there, reaches b.
  void come_from(const wire::Endpoint& source, bool intact = true) {
    request(WrOp::kWrite, 8);
    drain(a);
    ASSERT_EQ(a.host.frames.size(), 1u);
    Bytes frame = std::move(a.host.frames.front());
    a.host.frames.clear();
    wire::NetTemplate headers;
    headers.init({}, {}, source, b.at, 0);
    headers.write(frame.data(), frame.size() - headers.size, wire::kEcnNotCapable);
    std::byte* end = frame.data() + frame.size() - wire::kIcrcSize;
    const std::byte* l3 = frame.data() + wire::kEthSize;
    wire::icrc_store(end, UbIcrc{wire::NetForm::kIpv4}(l3, static_cast<size_t>(end - l3)));
    if (!intact) *(end - 1) ^= std::byte{1};
    b.core->on_packet(now, b.link, frame);
  }
  uint8_t heard_from() const { return state(b).path_blocks[channel(b).paths].heard_from; }
};

TEST_F(AddressesTest, of_a_path_are_those_of_its_channel) {
  come_from({a.at.ip, kFirstPort});
  EXPECT_EQ(count(b, Counter::kRxDropWrongPeer), 0u);
  EXPECT_EQ(heard_from(), 1);
  come_from(a.at);
  EXPECT_EQ(heard_from(), 0);
}

TEST_F(AddressesTest, of_another_host_are_not) {
  const Psn expected = channel(b).expected;
  come_from({wire::IpAddress::from_v4(0x0A000009), kFirstPort});
  EXPECT_EQ(count(b, Counter::kRxDropWrongPeer), 1u);
  EXPECT_EQ(channel(b).expected, expected);
}

TEST_F(AddressesTest, of_a_further_port_are_those_of_the_host_and_of_no_path) {
  const uint8_t before = heard_from();
  const Psn expected = channel(b).expected;
  come_from({a.at.ip, 9});
  EXPECT_EQ(channel(b).expected, expected + 1);
  EXPECT_EQ(heard_from(), before);
}

TEST_F(AddressesTest, of_a_packet_that_was_damaged_tell_nothing) {
  come_from(a.at);
  come_from({a.at.ip, kFirstPort}, false);
  EXPECT_EQ(count(b, Counter::kRxDropBadIcrc), 1u);
  EXPECT_EQ(heard_from(), 0);
}

// ---- what acknowledgements report ------------------------------------------------------------------------------

class ReportsTest : public PathsTest {
 protected:
  ReportsTest() : PathsTest(on_lossy_wire(cc::Control::kLdcp)) {}
};

TEST_F(ReportsTest, are_by_path_and_on_it) {
  connect_by(1);
  for (int n = 0; n < 4; ++n) write(24 * 1024);
  uint32_t words = 0;
  for (uint32_t i = 0; i < 2; ++i) {
    const tp::Path& theirs = tp::path_at(state(b), channel(b), i);
    const tp::Path& ours = tp::path_at(state(a), channel(a), i);
    EXPECT_GT(theirs.heard.received_words, 5'000u);
    EXPECT_GT(ours.flow.ldcp.received_words, 1'000u);
    EXPECT_LE(ours.flow.ldcp.received_words, theirs.heard.received_words);
    words += theirs.heard.received_words;
  }
  EXPECT_GE(words, 96u * 1024 / wire::kAckSeqUnitBytes);
  EXPECT_EQ(acks[&b].size(), 2u);
}

// ---- what the Core is told and tells ---------------------------------------------------------------------------

TEST_F(PathsTest, are_listed_as_far_as_there_is_room) {
  connect_by(2);
  std::vector<PathInfo> one(1);
  EXPECT_EQ(a.core->path_info(1, one), 3u);
  EXPECT_EQ(one[0].local, a.at);
  EXPECT_EQ(a.core->path_info(0, one), 0u);
  EXPECT_EQ(a.core->path_info(2, one), 0u);
}

TEST_F(PathsTest, of_a_channel_without_others_are_none) {
  connect();
  std::vector<PathInfo> one(1);
  EXPECT_EQ(a.core->path_info(1, one), 0u);
}

TEST_F(PathsTest, are_256_at_most) {
  for (uint32_t n = 0; n < kMaxExtraPaths; ++n) ASSERT_EQ(a.core->add_path({}), Status::kOk);
  EXPECT_EQ(a.core->add_path({}), Status::kNoMemory);
}

}  // namespace
}  // namespace ub
