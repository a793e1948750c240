// SPDX-License-Identifier: Apache-2.0
//
// Datagrams of NICs that are sockets of the test: where they come out, with which addresses, and which of them do not.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <optional>

#include "dataplane/socket_address.h"
#include "lib/ipc/fd.h"
#include "tests/unit/fabric/medium_counts.h"
#include "tests/unit/fabric/two_nics.h"
#include "tools/fabric/medium.h"
#include "tools/fabric/udp_ports.h"

namespace ub::fabric {
namespace {

IpAddress loopback(uint32_t group, uint32_t nic) {
  const uint32_t process = static_cast<uint32_t>(::getpid()) % 0x3FFF + 1;  // so that tests can run side by side
  return IpAddress::from_v4(0x7f000000 + ((process << 10 | group << 8 | nic) & 0xFFFFFF));
}

class UdpMedium : public testing::Test {
 protected:
  UdpMedium() {
    for (uint32_t nic = 0; nic < 2; ++nic) {
      config_.nics.push_back({nic == 0 ? "a" : "b", NicKind::kUdp, "", loopback(1, nic + 1), loopback(2, nic + 1)});
    }
    medium_ = open_udp_medium(config_);
  }

  static ipc::Fd socket_at(const IpAddress& ip, uint16_t port) {
    ipc::Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    SocketAddress address;
    const socklen_t bytes = fill(&address, ip, port);
    EXPECT_EQ(::bind(fd.get(), &address.base, bytes), 0);
    return fd;
  }

  static void send(const ipc::Fd& from, const IpAddress& to, uint16_t port, std::string_view text, int tos = 0) {
    SocketAddress address;
    const socklen_t bytes = fill(&address, to, port);
    ::setsockopt(from.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    EXPECT_EQ(::sendto(from.get(), text.data(), text.size(), 0, &address.base, bytes),
              static_cast<ssize_t>(text.size()));
  }

  // Waits for something to come, and sends it on at once. Returns how many frames that were.
  size_t pass_on() {
    size_t frames = 0;
    std::vector<pollfd> all;
    for (int fd : medium_->fds()) all.push_back({fd, POLLIN, 0});
    ::poll(all.data(), all.size(), 1000);
    for (const pollfd& p : all) {
      if (p.revents == 0) continue;
      medium_->receive(p.fd, [&](size_t, size_t to, std::span<const std::byte> frame, uint64_t tag) {
        ++frames;
        medium_->send(to, frame, tag);
      });
    }
    return frames;
  }

  struct Received {
    std::string text;
    Endpoint from;
    int tos;
  };
  static std::optional<Received> receive(const ipc::Fd& at, int patience_ms = 1000) {
    pollfd p{at.get(), POLLIN, 0};
    if (::poll(&p, 1, patience_ms) != 1) return std::nullopt;
    char bytes[256];
    SocketAddress from;
    alignas(cmsghdr) char control[64];
    iovec iov{bytes, sizeof bytes};
    msghdr m{};
    m.msg_name = &from;
    m.msg_namelen = sizeof from;
    m.msg_iov = &iov;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    const ssize_t count = ::recvmsg(at.get(), &m, 0);
    const Endpoint sender{IpAddress::from_v4(ntohl(from.v4.sin_addr.s_addr)), ntohs(from.v4.sin_port)};
    return Received{std::string(bytes, static_cast<size_t>(count)), sender, received_tos(m)};
  }

  uint64_t count(const std::string& name) const { return count_of(*medium_, name); }

  Config config_;
  std::unique_ptr<Medium> medium_;
};

TEST_F(UdpMedium, what_is_sent_to_where_a_nic_is_seen_comes_to_it_from_where_the_sender_is_seen) {
  for (uint16_t port : kUdpPorts) {
    const ipc::Fd a = socket_at(config_.nics[0].own, kUdpPorts[0]), b = socket_at(config_.nics[1].own, port);
    const int on = 1;
    ::setsockopt(b.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
    send(a, config_.nics[1].seen, port, "abcdef", 26 << 2 | 1);
    EXPECT_EQ(pass_on(), 1u);
    const auto got = receive(b);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->text.substr(0, 2), "ab");  // the last four bytes are the ICRC
    EXPECT_EQ(got->from, (Endpoint{config_.nics[0].seen, kUdpPorts[0]}));
    EXPECT_EQ(got->tos, 26 << 2 | 1);
  }
}

TEST_F(UdpMedium, drops_what_does_not_come_from_a_port_of_another_nic) {
  const ipc::Fd stranger = socket_at(loopback(3, 1), kUdpPorts[0]);
  const ipc::Fd other_port = socket_at(config_.nics[0].own, 5000);
  const ipc::Fd itself = socket_at(config_.nics[1].own, kUdpPorts[0]);
  for (const ipc::Fd* sender : {&stranger, &other_port, &itself}) {
    send(*sender, config_.nics[1].seen, kUdpPorts[0], "abcdef");
    EXPECT_EQ(pass_on(), 0u);
  }
  EXPECT_EQ(count("from_strangers"), 3u);
  EXPECT_FALSE(receive(itself, 0));
}

TEST_F(UdpMedium, drops_a_datagram_longer_than_any_packet) {
  const ipc::Fd a = socket_at(config_.nics[0].own, kUdpPorts[0]);
  send(a, config_.nics[1].seen, kUdpPorts[0], std::string(20000, 'x'));
  EXPECT_EQ(pass_on(), 0u);
  EXPECT_EQ(count("too_long"), 1u);
}

TEST_F(UdpMedium, drops_a_frame_whose_headers_were_damaged_on_the_way) {
  const ipc::Fd a = socket_at(config_.nics[0].own, kUdpPorts[0]), b = socket_at(config_.nics[1].own, kUdpPorts[0]);
  send(a, config_.nics[1].seen, kUdpPorts[0], "abcdef");
  pollfd p{medium_->fds()[kUdpPorts.size()], POLLIN, 0};
  ASSERT_EQ(::poll(&p, 1, 1000), 1);
  medium_->receive(p.fd, [&](size_t, size_t to, std::span<const std::byte> frame, uint64_t tag) {
    std::vector<std::byte> damaged(frame.begin(), frame.end());
    damaged[wire::kEthSize + 16] ^= std::byte{1};
    medium_->send(to, damaged, tag);
  });
  EXPECT_EQ(count("damaged_headers"), 1u);
  EXPECT_FALSE(receive(b, 0));
}

TEST_F(UdpMedium, an_address_that_another_fabric_has_is_an_error_that_says_so) {
  const std::string said = complaint([&] { open_udp_medium(config_); });
  EXPECT_NE(said.find("NIC \"a\": cannot bind"), std::string::npos) << said;
  EXPECT_NE(said.find("give the NIC other addresses"), std::string::npos) << said;
}

}  // namespace
}  // namespace ub::fabric
