// SPDX-License-Identifier: Apache-2.0
// The DPDK port on a ring that gives back what is sent (net_ring). The test looks into the device from the side.
#include <gtest/gtest.h>
#include <poll.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <vector>

#include "dataplane/plugin_port.h"
#include "lib/base/bytes.h"
#include "lib/ipc/fd.h"
#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/wire/compact_packet.h"
#include "tests/unit/dataplane/host/dpdk_port_test.h"
#include "tests/unit/threads.h"

namespace ub {
namespace {

TEST_F(DpdkPortTest, frames_go_out_with_addresses_and_come_in) {
  open();
  ASSERT_TRUE(send(4200));
  auto frames = receive();
  ASSERT_EQ(frames.size(), 1u);
  std::vector<std::byte> expected(4200);
  write_frame(expected.data(), 4200, kPeer);
  EXPECT_EQ(std::memcmp(frames[0].data(), kPeerMac.data(), 6), 0);
  EXPECT_TRUE(std::equal(expected.begin() + 12, expected.end(), frames[0].begin() + 12, frames[0].end()));
  PluginPortCounters c = port->counters();
  EXPECT_EQ(c.tx_frames, 1u);
  EXPECT_EQ(c.rx_frames, 1u);
}

TEST_F(DpdkPortTest, no_network_of_ours_and_no_gateway) {
  open();
  ASSERT_TRUE(send(100, IpAddress::from_v4(0x0b000001)));
  EXPECT_TRUE(take_all().empty());
  EXPECT_EQ(port->counters().tx_drop_no_route, 1u);
}

TEST_F(DpdkPortTest, frames_wait_for_their_neighbour_and_leave_in_order) {
  open();
  for (size_t i = 0; i < 5; ++i) ASSERT_TRUE(send(100 + i, kUnknown));
  ASSERT_TRUE(send(50));  // others do not wait
  EXPECT_EQ(lengths(take_all()), (std::vector<size_t>{42, 50}));
  EXPECT_EQ(port->counters().tx_waited, 5u);
  EXPECT_EQ(port->counters().tx_frames, 1u);
  inject(arp_answer(kUnknown, kUnknownMac));
  EXPECT_TRUE(receive().empty());
  ASSERT_TRUE(send(99, kUnknown));
  const auto frames = take_all();
  EXPECT_EQ(lengths(frames), (std::vector<size_t>{100, 101, 102, 103, 104, 99}));
  for (const auto& frame : frames) EXPECT_EQ(std::memcmp(frame.data(), kUnknownMac.data(), 6), 0);
  EXPECT_EQ(port->counters().tx_frames, 7u);
  EXPECT_TRUE(port->next_deadline().is_never());
}

TEST_F(DpdkPortTest, a_neighbour_that_asks_us_is_known_from_then_on) {
  open();
  ASSERT_TRUE(send(100, kUnknown));
  take_all();
  std::vector<std::byte> question = arp_answer(kUnknown, kUnknownMac);
  store_be16(question.data() + 20, 1);
  inject(question);
  receive();
  port->tx_flush(Instant{1});
  EXPECT_EQ(lengths(take_all()), (std::vector<size_t>{100, 42}));  // and our answer
}

TEST_F(DpdkPortTest, more_frames_wait_than_the_device_takes_at_once) {
  open();
  for (size_t i = 0; i < 64; ++i) ASSERT_TRUE(send(100 + i, kUnknown));
  ASSERT_TRUE(send(300, kUnknown));  // too many
  EXPECT_EQ(port->counters().tx_drop_waiting_full, 1u);
  for (size_t i = 0; i < 40; ++i) write_and_commit(50, kPeer);  // are queued already
  inject(arp_answer(kUnknown, kUnknownMac));
  receive();
  port->tx_flush(Instant{1});
  const std::vector<size_t> sent = lengths(take_all());
  std::vector<size_t> waited;
  std::copy_if(sent.begin(), sent.end(), std::back_inserter(waited), [](size_t n) { return n >= 100; });
  ASSERT_EQ(waited.size(), 64u);
  EXPECT_TRUE(std::is_sorted(waited.begin(), waited.end()));
}

TEST_F(DpdkPortTest, a_neighbour_that_does_not_answer_is_asked_again_and_given_up) {
  open();
  ASSERT_TRUE(send(100, kUnknown));
  size_t questions = lengths(take_all()).size();
  Instant now{1};
  while (!port->next_deadline().is_never()) {
    ASSERT_GT(port->next_deadline(), now);
    now = port->next_deadline();
    port->tx_flush(now);
    questions += lengths(take_all()).size();
    ASSERT_LT(questions, 100u);
  }
  EXPECT_GT(questions, 5u);
  EXPECT_EQ(port->counters().tx_drop_no_neighbour, 1u);
  EXPECT_EQ(port->counters().tx_frames, 0u);
}

// As whoever is sent on a tour of addresses by an application might do it.
TEST_F(DpdkPortTest, many_neighbours_that_are_not_there_take_no_more_buffers_than_there_is_room) {
  options.addresses = {{kOwn, 8}};
  open();
  rte_mempool* pool = rte_mempool_lookup(("softub-" + std::to_string(id)).c_str());
  const unsigned before = rte_mempool_in_use_count(pool);
  for (uint32_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(send(100, IpAddress::from_v4(0x0a100000 + i)));
    take_all();
  }
  EXPECT_LE(rte_mempool_in_use_count(pool), before + 512 + 64);
  EXPECT_EQ(port->counters().tx_drop_waiting_full, 5000u - 512);
  ASSERT_TRUE(send(100));
  EXPECT_EQ(lengths(take_all()), std::vector<size_t>{100});
  port->tx_flush(Instant{1} + seconds(4));
  EXPECT_EQ(port->counters().tx_drop_no_neighbour, 512u);
  take_all();  // the ring outlives the device
}

TEST_F(DpdkPortTest, frames_wait_for_a_neighbour_behind_a_link_that_is_down) {
  open();
  rte_eth_dev_set_link_down(id);
  ASSERT_TRUE(test::eventually([&] { return port->counters().link_changes == 2; }));
  ASSERT_TRUE(send(100, kUnknown));
  rte_eth_dev_set_link_up(id);
  ASSERT_TRUE(test::eventually([&] { return port->counters().link_changes == 3; }));
  port->tx_flush(Instant{2});  // long before the next question would be due
  EXPECT_EQ(lengths(take_all()), std::vector<size_t>{42});
  inject(arp_answer(kUnknown, kUnknownMac));
  receive();
  port->tx_flush(Instant{2});
  EXPECT_EQ(lengths(take_all()), std::vector<size_t>{100});
}

TEST_F(DpdkPortTest, vlan_tags_are_written_and_removed) {
  options.vlan = 0x123;
  open();
  ASSERT_TRUE(send(1000));
  rte_mbuf* m = nullptr;
  ASSERT_EQ(rte_eth_rx_burst(id, 0, &m, 1), 1);
  std::vector<std::byte> tagged(rte_pktmbuf_mtod(m, std::byte*), rte_pktmbuf_mtod(m, std::byte*) + m->pkt_len);
  rte_pktmbuf_free(m);
  ASSERT_EQ(tagged.size(), 1004u);
  EXPECT_EQ(load_be32(tagged.data() + 12), 0x81000123u);
  store_be16(tagged.data() + 14, 0xe123);  // of any priority
  inject(tagged);
  auto frames = receive();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].size(), 1000u);
  EXPECT_EQ(load_be16(frames[0].data() + 12), wire::kEtherTypeIpv4);

  store_be16(tagged.data() + 14, 0x124);
  inject(tagged);
  tagged.erase(tagged.begin() + 12, tagged.begin() + 16);
  inject(tagged);
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(port->counters().rx_drop_vlan, 2u);
}

TEST_F(DpdkPortTest, frames_in_pieces_are_joined_or_refused) {
  open();
  std::vector<std::byte> frame(4200);
  write_frame(frame.data(), frame.size(), kOwn);
  inject(frame, 3);
  auto frames = receive();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0], frame);
  EXPECT_EQ(port->counters().rx_joined, 1u);
  inject(std::vector<std::byte>(9000), 3);
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(port->counters().rx_drop_too_long, 1u);
}

TEST_F(DpdkPortTest, jumbo_frames) {
  options.mtu = 8192;
  open();
  ASSERT_TRUE(send(8300));
  auto frames = receive();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].size(), 8300u);
  EXPECT_FALSE(send(20000));  // longer than a buffer
  EXPECT_EQ(port->counters().tx_too_long, 1u);
}

TEST_F(DpdkPortTest, a_full_device_is_back_pressure) {
  open();
  size_t sent = 0;
  while (sent < 100000 && send(100)) ++sent;
  EXPECT_LT(sent, 100000u);
  EXPECT_GT(port->counters().tx_full, 0u);
  size_t received = 0;
  while (size_t n = receive().size()) {
    received += n;
    port->tx_flush(Instant{1});  // what was kept
  }
  EXPECT_EQ(received, sent);
  EXPECT_TRUE(send(100));
}

TEST_F(DpdkPortTest, an_empty_pool_is_back_pressure) {
  open();
  rte_mempool* pool = rte_mempool_lookup(("softub-" + std::to_string(id)).c_str());
  std::vector<rte_mbuf*> taken;
  while (rte_mbuf* m = rte_pktmbuf_alloc(pool)) taken.push_back(m);
  EXPECT_FALSE(send(100));
  EXPECT_EQ(port->counters().tx_no_buffer, 1u);
  for (rte_mbuf* m : taken) rte_pktmbuf_free(m);
  EXPECT_TRUE(send(100));
  EXPECT_EQ(receive().size(), 1u);
}

TEST_F(DpdkPortTest, without_a_link_frames_are_dropped) {
  open();
  rte_eth_dev_set_link_down(id);
  ASSERT_TRUE(test::eventually([&] { return port->counters().link_changes == 2; }));
  EXPECT_TRUE(said("lost its link"));
  ASSERT_TRUE(send(100));
  EXPECT_EQ(port->counters().tx_drop_no_link, 1u);
  rte_eth_dev_set_link_up(id);
  ASSERT_TRUE(test::eventually([&] { return port->counters().link_changes == 3; }));
  EXPECT_TRUE(said("has a link"));
  ASSERT_TRUE(send(100));
  EXPECT_EQ(receive().size(), 1u);
}

TEST_F(DpdkPortTest, a_device_that_is_removed) {
  open();
  rte_eth_dev_info info;
  ASSERT_EQ(rte_eth_dev_info_get(id, &info), 0);
  ASSERT_EQ(rte_dev_remove(info.device), 0);
  ASSERT_TRUE(test::eventually([&] { return port->counters().link_changes == 2; }));
  EXPECT_TRUE(said("DPDK device net_ring0 was removed"));
  for (int i = 0; i < 1000; ++i) {
    send(100);
    EXPECT_TRUE(receive().empty());
    port->prepare_sleep();
    port->finish_sleep();
  }
  EXPECT_EQ(port->counters().tx_drop_no_link, 1000u);
  port.reset();
  open();  // it can come again
}

TEST_F(DpdkPortTest, damaged_and_foreign_frames_are_counted) {
  open();
  std::vector<std::byte> echo(14 + 20 + 8);
  write_frame(echo.data(), echo.size(), kOwn);
  store_u8(echo.data() + 23, 1);  // ICMP
  store_u8(echo.data() + 34, 8);  // echo request
  store_be16(echo.data() + 36, 0x1234);
  inject(echo);
  std::vector<std::byte> other(100);
  write_frame(other.data(), other.size(), kOwn, 53);
  inject(other);
  for (size_t bytes : {1, 13, 14, 33, 34, 41}) inject(std::vector<std::byte>(other.begin(), other.begin() + bytes));
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(port->counters().rx_drop_checksum, 1u);
  EXPECT_EQ(port->counters().rx_drop_foreign, 7u);
}

TEST_F(DpdkPortTest, roce_frames_are_foreign_unless_roce_is_on) {
  std::vector<std::byte> frame(100);
  write_frame(frame.data(), frame.size(), kOwn, roce::kUdpPort);
  open();
  inject(frame);
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(port->counters().rx_drop_foreign, 1u);
  port.reset();
  options.roce = true;
  open();
  inject(frame);
  EXPECT_EQ(receive().size(), 1u);
  EXPECT_EQ(port->counters().rx_drop_foreign, 0u);
}

TEST_F(DpdkPortTest, a_neighbour_is_asked_for_before_there_are_frames_for_it) {
  const IpAddress other = IpAddress::from_v4(kPeer.v4() + 1), elsewhere = IpAddress::from_v4(0x08080808);
  open();
  EXPECT_TRUE(port->resolve(Instant{1}, kPeer, kOwn));  // known from the options
  EXPECT_FALSE(port->resolve(Instant{1}, elsewhere, kOwn));
  EXPECT_FALSE(port->resolve(Instant{1}, other, kOwn));
  port->tx_flush(Instant{1});
  rte_mbuf* question = nullptr;
  ASSERT_EQ(rte_eth_rx_burst(id, 0, &question, 1), 1);  // the ring gives back what was sent
  EXPECT_EQ(load_be16(rte_pktmbuf_mtod(question, std::byte*) + 12), 0x0806);
  EXPECT_EQ(load_be32(rte_pktmbuf_mtod(question, std::byte*) + 38), other.v4());
  rte_pktmbuf_free(question);
  EXPECT_EQ(port->counters().tx_drop_no_neighbour, 0u);
}

// ---- raw ----

TEST_F(DpdkPortTest, a_raw_port_hands_over_every_frame_as_it_came) {
  options.raw = true;
  options.addresses.clear();
  open();
  std::vector<std::byte> elsewhere(100), tagged(60), other_port(80);
  write_frame(elsewhere.data(), elsewhere.size(), IpAddress::from_v4(0x0b000001));
  store_be32(tagged.data() + 12, 0x81000123);
  write_frame(other_port.data(), other_port.size(), kOwn, 53);
  const std::vector<std::vector<std::byte>> all{elsewhere, tagged, other_port, arp_answer(kUnknown, kUnknownMac),
                                                std::vector<std::byte>(20)};
  for (const auto& frame : all) inject(frame);
  EXPECT_EQ(receive(), all);
  EXPECT_EQ(port->counters().rx_frames, all.size());
  port->tx_flush(Instant{1});
  EXPECT_TRUE(take_all().empty()) << "it answered";
}

TEST_F(DpdkPortTest, a_raw_port_sends_a_frame_with_the_addresses_that_it_was_written_with) {
  options.raw = true;
  options.addresses.clear();
  open();
  const std::vector<std::byte> frame(90, std::byte{0x5a});  // of no known type
  std::byte* room = port->tx_begin(frame.size());
  ASSERT_NE(room, nullptr);
  std::copy(frame.begin(), frame.end(), room);
  port->tx_commit(room, frame.size());
  port->tx_flush(Instant{1});
  EXPECT_EQ(take_all(), std::vector<std::vector<std::byte>>{frame});
  EXPECT_EQ(port->counters().tx_frames, 1u);
}

TEST_F(DpdkPortTest, a_port_has_as_many_buffers_as_it_was_told) {
  options.buffers = 300;
  open();
  EXPECT_EQ(rte_mempool_lookup(("softub-" + std::to_string(id)).c_str())->size, 300u);
}

// ---- CTP ----

TEST_F(DpdkPortTest, a_wire_may_lose_and_carries_ctp_between_neighbours_of_ipv4) {
  const auto carries_compact = [this] {
    port.reset();
    EXPECT_TRUE(try_open()) << error;
    EXPECT_FALSE(port->link_config().lossless);
    EXPECT_FALSE(port->link_config().icrc_optional);
    EXPECT_EQ(port->link_config().mtu, 4096u);
    return port->link_config().compact;
  };
  EXPECT_TRUE(carries_compact());
  options.gateway_v4 = kPeer;  // forwards IP only
  EXPECT_FALSE(carries_compact());
  options.gateway_v4 = {};
  IpAddress v6;
  v6.bytes = {0xfd, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  options.gateway_v6 = v6;
  EXPECT_FALSE(carries_compact());
  options.gateway_v6 = {};
  options.addresses.push_back({v6, 64});  // the stand-in does not have all of it
  EXPECT_FALSE(carries_compact());
}

TEST_F(DpdkPortTest, packets_of_ctp_find_their_next_hop_by_the_addresses_that_stand_in) {
  open();
  const std::vector<std::byte> packet = compact_frame(kOwn, kPeer);
  send_compact(*port, packet);
  const auto frames = take_all();
  ASSERT_EQ(lengths(frames), std::vector<size_t>{kShortCompact});
  EXPECT_EQ(std::memcmp(frames[0].data(), kPeerMac.data(), 6), 0);
  EXPECT_TRUE(same_behind_the_addresses(frames[0], packet));
}

TEST_F(DpdkPortTest, packets_of_ctp_wait_for_their_neighbour_as_others_do) {
  open();
  send_compact(*port, compact_frame(kOwn, kUnknown));
  const auto asked = take_all();
  ASSERT_EQ(lengths(asked), std::vector<size_t>{42});
  EXPECT_EQ(load_be32(asked[0].data() + 28), kOwn.v4());      // who asks
  EXPECT_EQ(load_be32(asked[0].data() + 38), kUnknown.v4());  // for whom
  inject(arp_answer(kUnknown, kUnknownMac));
  EXPECT_TRUE(receive().empty());
  port->tx_flush(Instant{1});
  EXPECT_EQ(lengths(take_all()), std::vector<size_t>{kShortCompact});
}

TEST_F(DpdkPortTest, packets_of_ctp_are_ours_if_they_come_to_our_ethernet_address) {
  open();
  rte_ether_addr own;
  ASSERT_EQ(rte_eth_macaddr_get(id, &own), 0);
  std::vector<std::byte> packet = compact_frame(kPeer, kOwn);
  inject(packet);  // to the stand-in, which is nobody's
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(port->counters().rx_drop_foreign, 1u);
  std::memcpy(packet.data(), own.addr_bytes, 6);
  inject(packet);
  const auto frames = receive();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0], packet);

  port.reset();
  options.gateway_v4 = kPeer;  // a port that does not carry them
  open();
  inject(packet);
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(port->counters().rx_drop_foreign, 1u);
}

// ---- memif ----

// A server of the test's own, which says nothing.
class SilentServer {
 public:
  explicit SilentServer(const char* name) : path_(testing::TempDir() + name + std::to_string(getpid())) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), std::min(path_.size(), sizeof address.sun_path - 1));
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
  }
  ~SilentServer() { unlink(path_.c_str()); }
  int fd() const { return listener_.get(); }
  ipc::Fd accept() { return ipc::Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)); }
  std::string device(const char* name) const {
    return name + (",role=client,bsize=8192,socket-abstract=no,socket=" + path_);
  }

 private:
  std::string path_;
  ipc::Fd listener_{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
};

// As the server of a program that has opened its device and not started it yet. The client came back only when the time
// was over that a server has to answer.
TEST_F(DpdkPortTest, a_server_that_hangs_up_is_tried_again_while_a_silent_one_is_waited_for) {
  SilentServer silent("silent"), refusing("refusing");
  options.device = silent.device("net_memif0");
  ASSERT_TRUE(try_open()) << error;
  options.device = refusing.device("net_memif1");
  std::unique_ptr<PluginPort> second(softub_open_port(kPluginPortVersion, options, &error));
  ASSERT_NE(second, nullptr) << error;
  std::vector<ipc::Fd> waits;
  size_t refused = 0;
  while (waits.size() < 2) {
    pollfd servers[] = {{silent.fd(), POLLIN, 0}, {refusing.fd(), POLLIN, 0}};
    ASSERT_GT(poll(servers, 2, 10'000), 0);
    if (refusing.accept()) ++refused;  // and hangs up
    if (ipc::Fd connection = silent.accept()) waits.push_back(std::move(connection));
  }
  EXPECT_GE(refused, 3u);
}

// ---- bad input: what, where, what to do ----

TEST_F(DpdkPortTest, a_device_that_is_in_use) {
  open();
  PluginPortOptions again = options;
  EXPECT_EQ(softub_open_port(kPluginPortVersion, again, &error), nullptr);
  EXPECT_NE(error.find("net_ring0 is in use in this process already; dpdk.device"), std::string::npos) << error;
}

TEST_F(DpdkPortTest, a_driver_that_is_unknown) {
  options.device = "net_nonsense0";
  EXPECT_FALSE(try_open());
  EXPECT_NE(error.find("\"net_nonsense0\" cannot be opened"), std::string::npos) << error;
  EXPECT_NE(error.find("check dpdk.device"), std::string::npos) << error;
}

TEST_F(DpdkPortTest, arguments_that_are_wrong) {
  options.device = "net_memif0,role=nonsense";
  EXPECT_FALSE(try_open());
  EXPECT_NE(error.find("cannot be opened"), std::string::npos) << error;
  EXPECT_NE(error.find("nonsense"), std::string::npos) << error;  // the driver's own words
}

TEST_F(DpdkPortTest, buffers_of_memif_that_are_too_small) {
  options.device = "net_memif0,role=server,socket=softub-test";
  EXPECT_FALSE(try_open());
  EXPECT_NE(error.find("buffers of 2048 bytes"), std::string::npos) << error;
  EXPECT_NE(error.find("add bsize=8192"), std::string::npos) << error;
}

TEST_F(DpdkPortTest, a_plugin_of_another_version) {
  EXPECT_EQ(softub_open_port(kPluginPortVersion + 1, options, &error), nullptr);
  EXPECT_NE(error.find("install both from one build"), std::string::npos) << error;
}

}  // namespace
}  // namespace ub
