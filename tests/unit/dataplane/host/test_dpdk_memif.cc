// SPDX-License-Identifier: Apache-2.0
//
// The DPDK port over memif: CTP, and loads and stores, which must come soon or never.
#include <unistd.h>

#include <chrono>

#include "lib/transport/wire/bypass_packet.h"
#include "tests/unit/dataplane/host/dpdk_port_test.h"

namespace ub {
namespace {

// Two ends in this process.
struct MemifTest : DpdkPortTest {
  static constexpr MacAddress kServerMac{2, 0, 0, 0, 0, 0x51};
  std::string at;
  std::unique_ptr<PluginPort> client;

  void open_server() {
    // Each server has a socket of its own: the driver does not close the listener of one that is gone.
    static int servers = 0;
    at = ",bsize=8192,socket=softub-test-" + std::to_string(getpid()) + "-" + std::to_string(++servers);
    options.device = "net_memif0,role=server,mac=02:00:00:00:00:51" + at;
    options.neighbours = {{kPeer, {2, 0, 0, 0, 0, 0x52}}};
    ASSERT_TRUE(try_open()) << error;
    port->set_link(7);
  }
  void open_client() {
    PluginPortOptions other = options;
    other.device = "net_memif1,role=client,mac=02:00:00:00:00:52" + at;
    other.addresses = {{kPeer, 24}};
    other.neighbours = {{kOwn, kServerMac}};
    client.reset(softub_open_port(kPluginPortVersion, other, &error));
    ASSERT_NE(client, nullptr) << error;
    client->set_link(8);
    ASSERT_TRUE(test::eventually([&] { return port->has_link() && client->has_link(); }));
  }
  void open_both() {
    ASSERT_NO_FATAL_FAILURE(open_server());
    ASSERT_NO_FATAL_FAILURE(open_client());
  }
  // The shortest frame of TP bypass there is: an answer.
  static std::vector<std::byte> bypass_frame(const IpAddress& from, const IpAddress& to) {
    wire::BypassPacket p;
    p.is_response = true;
    p.opcode = wire::TaOpcode::kTaack;
    p.payload_len = 0;
    p.route = {wire::stand_in_mac({to, wire::kUbUdpPort}), wire::stand_in_mac({from, wire::kUbUdpPort}), 1, 2, 0};
    std::vector<std::byte> frame(wire::bypass_header_size(p));
    wire::write_bypass_headers(p, frame.data());
    return frame;
  }
};

TEST_F(MemifTest, carries_ctp_and_leaves_the_length_of_frames_as_it_is) {
  ASSERT_NO_FATAL_FAILURE(open_both());
  EXPECT_TRUE(port->link_config().compact && client->link_config().compact);
  EXPECT_FALSE(port->link_config().lossless);
  for (const size_t bytes : {kShortCompact, size_t{60}, size_t{4200}}) {
    const std::vector<std::byte> packet = compact_frame(kPeer, kOwn, bytes);
    send_compact(*client, packet);
    std::vector<std::vector<std::byte>> frames;
    ASSERT_TRUE(test::eventually([&] { return !(frames = receive()).empty(); }));
    EXPECT_EQ(lengths(frames), std::vector<size_t>{bytes});
    EXPECT_TRUE(same_behind_the_addresses(frames[0], packet));
  }
}

TEST_F(MemifTest, carries_loads_and_stores_unless_there_is_a_switch) {
  ASSERT_NO_FATAL_FAILURE(open_both());
  EXPECT_TRUE(port->link_config().bypass && client->link_config().bypass);
  const std::vector<std::byte> packet = bypass_frame(kPeer, kOwn);
  ASSERT_LT(packet.size(), 34u);
  send_compact(*client, packet);
  std::vector<std::vector<std::byte>> frames;
  ASSERT_TRUE(test::eventually([&] { return !(frames = receive()).empty(); }));
  EXPECT_TRUE(same_behind_the_addresses(frames[0], packet));
  client.reset();
  port.reset();
  options.switched = true;
  ASSERT_NO_FATAL_FAILURE(open_server());
  EXPECT_FALSE(port->link_config().bypass);
  port.reset();
  options.device = "net_ring0";
  ASSERT_TRUE(try_open()) << error;
  EXPECT_FALSE(port->link_config().bypass);
}

TEST_F(MemifTest, loads_and_stores_do_not_wait_for_their_neighbour) {
  ASSERT_NO_FATAL_FAILURE(open_both());
  send_compact(*port, bypass_frame(kOwn, kUnknown));
  EXPECT_EQ(port->counters().tx_waited, 0u);
  EXPECT_EQ(port->counters().tx_drop_no_neighbour, 1u);
}

// The test waits for a second, as it is the time that counts.
TEST_F(MemifTest, loads_and_stores_that_nobody_looked_for_in_time_are_dropped) {
  ASSERT_NO_FATAL_FAILURE(open_both());
  receive();
  send_compact(*client, bypass_frame(kPeer, kOwn));
  send_compact(*client, compact_frame(kPeer, kOwn));
  const auto sent = std::chrono::steady_clock::now();
  ASSERT_TRUE(test::eventually([&] { return std::chrono::steady_clock::now() - sent > std::chrono::seconds(1); }));
  EXPECT_EQ(lengths(receive()), std::vector<size_t>{kShortCompact});
  EXPECT_EQ(port->counters().rx_drop_late, 1u);
  send_compact(*client, bypass_frame(kPeer, kOwn));
  EXPECT_EQ(receive().size(), 1u);
}

TEST_F(MemifTest, what_was_queued_for_a_peer_that_went_away_is_not_for_the_next_one) {
  ASSERT_NO_FATAL_FAILURE(open_both());
  const std::vector<std::byte> packet = bypass_frame(kOwn, kPeer);
  std::byte* frame = port->tx_begin(packet.size());
  ASSERT_NE(frame, nullptr);
  std::copy(packet.begin(), packet.end(), frame);
  port->tx_commit(frame, packet.size());
  client.reset();
  ASSERT_TRUE(test::eventually([&] { return !port->has_link(); }));
  ASSERT_NO_FATAL_FAILURE(open_client());
  port->tx_flush(Instant{1});
  EXPECT_EQ(port->counters().tx_drop_no_link, 1u);
}

}  // namespace
}  // namespace ub
