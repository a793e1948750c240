// SPDX-License-Identifier: Apache-2.0
//
// Addresses and options of sockets in the kernel's form, and what it says of a datagram.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

#include "lib/transport/wire/network_header.h"

namespace ub {

struct SocketAddress {
  union {
    sockaddr base;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
};

// Answers its length.
inline socklen_t fill(SocketAddress* out, const wire::IpAddress& ip, uint16_t port) {
  std::memset(out, 0, sizeof *out);
  if (ip.is_v4()) {
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(port);
    std::memcpy(&out->v4.sin_addr, ip.bytes.data() + 12, 4);
    return sizeof out->v4;
  }
  out->v6.sin6_family = AF_INET6;
  out->v6.sin6_port = htons(port);
  std::memcpy(&out->v6.sin6_addr, ip.bytes.data(), 16);
  return sizeof out->v6;
}

// The address in one of AF_INET or AF_INET6.
inline wire::IpAddress from_sockaddr(const sockaddr* a) {
  if (a->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, a, sizeof v4);
    return wire::IpAddress::from_v4(ntohl(v4.sin_addr.s_addr));
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, a, sizeof v6);
  wire::IpAddress ip;
  std::memcpy(ip.bytes.data(), &v6.sin6_addr, 16);
  return ip;
}

// An option that not every system has: where it is refused, the default stays.
inline void set_int(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

// Type-of-service byte, or traffic class, of a datagram whose socket reports it.
inline uint8_t received_tos(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) return *CMSG_DATA(c);
    if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int value;
      std::memcpy(&value, CMSG_DATA(c), sizeof value);
      return static_cast<uint8_t>(value);
    }
  }
  return 0;
}

}  // namespace ub
