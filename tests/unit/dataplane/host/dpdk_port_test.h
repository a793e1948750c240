// SPDX-License-Identifier: Apache-2.0
//
// A DPDK port on a ring that gives back what is sent (net_ring), unless a test chooses another device; frames as the
// Core writes them; a look into the device from the side.
#pragma once

#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dataplane/plugin_port.h"
#include "lib/base/bytes.h"
#include "lib/transport/wire/compact_packet.h"
#include "tests/unit/threads.h"

extern "C" ub::PluginPort* softub_open_port(uint32_t version, const ub::PluginPortOptions&, std::string* error);

namespace ub {

using wire::IpAddress;
using wire::MacAddress;

inline const IpAddress kOwn = IpAddress::from_v4(0x0a090001), kPeer = IpAddress::from_v4(0x0a090002);
inline const IpAddress kUnknown = IpAddress::from_v4(0x0a090009);
inline constexpr MacAddress kPeerMac{2, 0, 0, 0, 0, 2}, kUnknownMac{2, 0, 0, 0, 0, 9};
inline constexpr size_t kHeaders = 14 + 20 + 8;

struct DpdkPortTest : testing::Test {
  PluginPortOptions options;
  std::mutex mutex;  // of the notices, which a thread of the port writes as long as there is one
  std::string notices;
  std::unique_ptr<PluginPort> port;
  uint16_t id = 0;
  std::string error;

  DpdkPortTest() {
    options.device = "net_ring0";
    options.addresses = {{kOwn, 24}};
    options.neighbours = {{kPeer, kPeerMac}};
    options.mtu = 4096;
    options.notice = [this](const std::string& sentence) {
      std::lock_guard lock(mutex);
      notices += sentence + "\n";
    };
  }
  bool try_open() {
    error.clear();
    port.reset(softub_open_port(kPluginPortVersion, options, &error));
    return port != nullptr;
  }
  void open() {
    ASSERT_TRUE(try_open()) << error;
    ASSERT_EQ(rte_eth_dev_get_port_by_name("net_ring0", &id), 0);
    port->set_link(7);
    ASSERT_TRUE(test::eventually([&] { return port->counters().link_changes == 1; }));
  }
  // The thread that counts a change speaks of it afterwards.
  bool said(const char* words) {
    return test::eventually([&] {
      std::lock_guard lock(mutex);
      return notices.find(words) != std::string::npos;
    });
  }

  // IPv4 and UDP headers as the Core writes them; the rest is a pattern.
  static void write_frame(std::byte* frame, size_t bytes, const IpAddress& to, uint16_t udp_port = wire::kUbUdpPort) {
    std::memset(frame, 0, kHeaders);
    for (size_t i = kHeaders; i < bytes; ++i) frame[i] = static_cast<std::byte>(i * 7);
    store_be16(frame + 12, wire::kEtherTypeIpv4);
    store_be16(frame + 14, 0x4500);
    store_be16(frame + 16, static_cast<uint16_t>(bytes - 14));
    store_u8(frame + 23, IPPROTO_UDP);
    store_be32(frame + 26, kOwn.v4());
    store_be32(frame + 30, to.v4());
    store_be16(frame + 36, udp_port);
  }
  bool send(size_t bytes, const IpAddress& to = kPeer) {
    std::byte* frame = port->tx_begin(bytes);
    if (frame == nullptr) return false;
    write_frame(frame, bytes, to);
    port->tx_commit(frame, bytes);
    port->tx_flush(Instant{1});
    return true;
  }
  void write_and_commit(size_t bytes, const IpAddress& to) {
    std::byte* frame = port->tx_begin(bytes);
    ASSERT_NE(frame, nullptr);
    write_frame(frame, bytes, to);
    port->tx_commit(frame, bytes);
  }
  // What the device was given: the ring gives it back.
  std::vector<std::vector<std::byte>> take_all() {
    std::vector<std::vector<std::byte>> frames;
    rte_mbuf* m = nullptr;
    while (rte_eth_rx_burst(id, 0, &m, 1) == 1) {
      frames.emplace_back(rte_pktmbuf_mtod(m, std::byte*), rte_pktmbuf_mtod(m, std::byte*) + m->pkt_len);
      rte_pktmbuf_free(m);
    }
    return frames;
  }
  static std::vector<size_t> lengths(const std::vector<std::vector<std::byte>>& frames) {
    std::vector<size_t> out;
    for (const auto& frame : frames) out.push_back(frame.size());
    return out;
  }
  // To us: that this address is there.
  static std::vector<std::byte> arp_answer(const IpAddress& ip, const MacAddress& mac) {
    std::vector<std::byte> frame(42);
    store_be16(frame.data() + 12, 0x0806);
    store_be64(frame.data() + 14, uint64_t{0x0001'0800'0604} << 16 | 2);
    std::memcpy(frame.data() + 22, mac.data(), 6);
    store_be32(frame.data() + 28, ip.v4());
    store_be32(frame.data() + 38, kOwn.v4());
    return frame;
  }
  // A frame that comes from elsewhere, cut into pieces.
  void inject(const std::vector<std::byte>& frame, size_t pieces = 1) {
    rte_mempool* pool = rte_mempool_lookup(("softub-" + std::to_string(id)).c_str());
    ASSERT_NE(pool, nullptr);
    rte_mbuf* head = nullptr;
    size_t done = 0;
    for (size_t i = 0; i < pieces; ++i) {
      rte_mbuf* m = rte_pktmbuf_alloc(pool);
      ASSERT_NE(m, nullptr);
      auto n = static_cast<uint16_t>((frame.size() - done) / (pieces - i));
      std::memcpy(rte_pktmbuf_append(m, n), frame.data() + done, n);
      done += n;
      if (head == nullptr) {
        head = m;
      } else {
        ASSERT_EQ(rte_pktmbuf_chain(head, m), 0);
      }
    }
    ASSERT_EQ(rte_eth_tx_burst(id, 0, &head, 1), 1);
  }
  // What the Core would get.
  std::vector<std::vector<std::byte>> receive() {
    RxFrame frames[kBurst];
    std::vector<std::vector<std::byte>> out;
    size_t n = port->rx_burst(Instant{1}, frames, kBurst);
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(frames[i].link, 7u);
      out.emplace_back(frames[i].data, frames[i].data + frames[i].bytes);
    }
    port->rx_release();
    return out;
  }
};

// Of an answer: shorter than any frame that Ethernet carries.
inline constexpr size_t kShortCompact = 44;

// As the Core writes it, with the stand-in addresses; the rest is a pattern.
inline std::vector<std::byte> compact_frame(const IpAddress& from, const IpAddress& to, size_t bytes = kShortCompact) {
  std::vector<std::byte> frame(bytes);
  for (size_t i = wire::CompactTemplate::kSize; i < bytes; ++i) frame[i] = static_cast<std::byte>(i * 7);
  wire::CompactTemplate({from, wire::kUbUdpPort}, {to, wire::kUbUdpPort}, 0x123, 0x456).write(frame.data(), 3);
  return frame;
}

inline void send_compact(PluginPort& port, const std::vector<std::byte>& bytes) {
  std::byte* frame = port.tx_begin(bytes.size());
  ASSERT_NE(frame, nullptr);
  std::copy(bytes.begin(), bytes.end(), frame);
  port.tx_commit(frame, bytes.size());
  port.tx_flush(Instant{1});
}

inline bool same_behind_the_addresses(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  return std::equal(a.begin() + 12, a.end(), b.begin() + 12, b.end());
}

}  // namespace ub
