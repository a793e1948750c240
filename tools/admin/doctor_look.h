// SPDX-License-Identifier: Apache-2.0
//
// What the looking parts of the doctor share. Nothing here judges.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "lib/ipc/fd.h"
#include "lib/transport/wire/network_header.h"
#include "tools/admin/doctor.h"

namespace ub::tools {

std::string first_line(const std::string& path);
uint64_t number_in(const std::string& path);

struct SocketAddress {
  union {
    sockaddr base;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t bytes;

  SocketAddress() : v6{}, bytes(sizeof v6) {}
  SocketAddress(const wire::IpAddress&, uint16_t port);
  wire::IpAddress ip() const;
  uint16_t port() const;
  std::string text() const;  // "10.0.0.1:4792", "[fd00::1]:4792"
};

// A UDP socket bound to an address, sending with "don't fragment" and paying no heed to what the kernel believes of
// the path, so that every size can be tried. Empty and `*error`, an errno.
ipc::Fd open_udp(const wire::IpAddress&, uint16_t port, int* error);
// Does a datagram that the socket sends to itself come back?
bool echoes(int socket);
// Waits for it to be readable.
bool readable(int fd, int milliseconds);

BufferFacts look_at_buffers(const Config&);
DpdkFacts look_at_dpdk(const Config&);
RouteFacts look_at_route(const wire::IpAddress& to, const wire::IpAddress& from);

}  // namespace ub::tools
