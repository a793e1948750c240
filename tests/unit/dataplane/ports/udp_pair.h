// SPDX-License-Identifier: Apache-2.0
// udp_pair.h - two UDP ports in the hands of a test, and frames for them.
#pragma once

#include <poll.h>

#include <cstring>
#include <string>
#include <vector>

#include "dataplane/eid.h"
#include "dataplane/udp_port.h"
#include "lib/transport/wire/network_header.h"

namespace ub {

using Bytes = std::vector<std::byte>;

struct Pair {
  UdpPort a, b;
  std::string error;
  bool open(const char* ip, uint32_t mtu = 0) {
    UdpPortOptions o;
    o.addresses = {*parse_ip(ip)};
    o.wanted_port = 0;
    o.mtu = mtu;
    o.dscp = 46;
    o.receive_tos = true;
    bool ok = a.open(o, &error) && b.open(o, &error);
    a.set_link(5);
    b.set_link(6);
    return ok;
  }
};

inline Bytes make_frame(const wire::Endpoint& from, const wire::Endpoint& to, size_t payload, uint8_t seed,
                        uint8_t dscp = 46, uint8_t ecn = 0) {
  wire::NetTemplate t;
  t.init({}, {}, from, to, dscp);
  Bytes f(t.size + payload);
  t.write(f.data(), payload, ecn);
  for (size_t i = 0; i < payload; ++i) f[t.size + i] = static_cast<std::byte>(seed + i);
  return f;
}

inline bool send(UdpPort& port, const Bytes& frame) {
  std::byte* at = port.tx_begin(port.link(), frame.size());
  if (at == nullptr) return false;
  std::memcpy(at, frame.data(), frame.size());
  port.tx_commit(port.link(), at, frame.size());
  return true;
}

// Would a thread that sleeps on the port wake?
inline bool rings(const UdpPort& port, int patience_ms) {
  std::vector<int> fds;
  port.fds(fds);
  std::vector<pollfd> polled;
  for (int fd : fds) polled.push_back({fd, POLLIN, 0});
  return ::poll(polled.data(), polled.size(), patience_ms) > 0;
}

inline size_t receive(UdpPort& port, RxFrame* out, size_t room) {
  while (rings(port, 1000)) {
    size_t n = port.rx_burst(out, room);
    if (n != 0) return n;
  }
  return 0;
}

inline bool has_ipv6() {
  UdpPort probe;
  UdpPortOptions o;
  o.addresses = {*parse_ip("::1")};
  o.wanted_port = 0;
  std::string error;
  return probe.open(o, &error);
}

}  // namespace ub
