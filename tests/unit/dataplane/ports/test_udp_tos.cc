// SPDX-License-Identifier: Apache-2.0
//
// The byte of IP with DSCP and ECN that packets of the UDP port have, as the kernel of the receiver tells it.
#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "dataplane/socket_address.h"
#include "lib/ipc/fd.h"
#include "tests/unit/dataplane/ports/udp_pair.h"

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

namespace ub {
namespace {

// What comes to a socket of the kernel, which tells the byte of IP with DSCP and ECN.
class TosReader {
 public:
  explicit TosReader(const char* ip) : v6_(std::strchr(ip, ':') != nullptr) {
    fd_ = ipc::Fd(::socket(v6_ ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(fd_.get(), v6_ ? IPPROTO_IPV6 : IPPROTO_IP, v6_ ? IPV6_RECVTCLASS : IP_RECVTOS, &on, sizeof on);
    if (v6_) ::setsockopt(fd_.get(), IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof on);  // we send none
    endpoint_.ip = *parse_ip(ip);
    SocketAddress at;
    socklen_t bytes = fill(&at, endpoint_.ip, 0);
    EXPECT_EQ(::bind(fd_.get(), &at.base, bytes), 0);
    bytes = sizeof at;
    EXPECT_EQ(::getsockname(fd_.get(), &at.base, &bytes), 0);
    endpoint_.port = ntohs(v6_ ? at.v6.sin6_port : at.v4.sin_port);
  }
  const wire::Endpoint& endpoint() const { return endpoint_; }

  // Of the next packet; -1: none comes.
  int next() {
    pollfd readable{fd_.get(), POLLIN, 0};
    if (::poll(&readable, 1, 1000) != 1) return -1;
    char data[64];
    alignas(cmsghdr) char control[64];
    iovec iov{data, sizeof data};
    msghdr m{};
    m.msg_iov = &iov;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    if (::recvmsg(fd_.get(), &m, 0) < 0) return -1;
    for (const cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, const_cast<cmsghdr*>(c))) {
      if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) return *reinterpret_cast<const uint8_t*>(CMSG_DATA(c));
      if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
        int tclass;
        std::memcpy(&tclass, CMSG_DATA(c), sizeof tclass);
        return tclass;
      }
    }
    return -1;
  }

 private:
  bool v6_;
  ipc::Fd fd_;
  wire::Endpoint endpoint_;
};

class UdpPortTos : public testing::TestWithParam<const char*> {};

// Alone and in a burst, with the code point of the sockets and with others.
TEST_P(UdpPortTos, is_that_of_the_header_of_each_frame) {
  if (std::strchr(GetParam(), ':') != nullptr && !has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  Pair p;
  ASSERT_TRUE(p.open(GetParam())) << p.error;
  TosReader reader(GetParam());
  const std::vector<int> wanted = {46 << 2, 8 << 2, 8 << 2 | 2, 0, 46 << 2 | 1, 63 << 2 | 3, 46 << 2};
  const auto put = [&](int tos) {
    ASSERT_TRUE(send(p.a, make_frame(p.a.local_endpoint(0), reader.endpoint(), 20, 1, static_cast<uint8_t>(tos >> 2),
                                     static_cast<uint8_t>(tos & 3))));
  };
  for (const int tos : wanted) {
    put(tos);
    p.a.tx_flush({});
    EXPECT_EQ(reader.next(), tos) << "alone";
  }
  for (const int tos : wanted) put(tos);
  p.a.tx_flush({});
  for (const int tos : wanted) EXPECT_EQ(reader.next(), tos) << "in a burst";
}

INSTANTIATE_TEST_SUITE_P(Families, UdpPortTos, testing::Values("127.0.0.1", "::1"),
                         [](const auto& ip) { return std::strchr(ip.param, ':') != nullptr ? "ipv6" : "ipv4"; });

}  // namespace
}  // namespace ub
