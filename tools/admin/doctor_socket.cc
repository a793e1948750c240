// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/eid.h"
#include "tools/admin/doctor_look.h"

namespace ub::tools {
namespace {

void set_int(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

int get_int(int fd, int level, int option) {
  int value = 0;
  socklen_t bytes = sizeof value;
  return ::getsockopt(fd, level, option, &value, &bytes) == 0 ? value : 0;
}

wire::IpAddress address_from(const void* bytes, size_t count) {
  wire::IpAddress ip;
  if (count == 4) {
    uint32_t v4;
    std::memcpy(&v4, bytes, 4);
    return wire::IpAddress::from_v4(ntohl(v4));
  }
  std::memcpy(ip.bytes.data(), bytes, 16);
  return ip;
}

// What UdpPort asks for, in the same way. The kernel counts its own overhead and reports double.
uint64_t granted(int fd, int force, int plain, int read, uint64_t wish) {
  const int value = static_cast<int>(std::min<uint64_t>(wish, 1U << 30));
  if (::setsockopt(fd, SOL_SOCKET, force, &value, sizeof value) != 0) set_int(fd, SOL_SOCKET, plain, value);
  return static_cast<uint64_t>(get_int(fd, SOL_SOCKET, read)) / 2;
}

struct RouteRequest {
  nlmsghdr head;
  rtmsg route;
  char room[64];

  void add(uint16_t type, const wire::IpAddress& ip) {
    auto* a = reinterpret_cast<rtattr*>(reinterpret_cast<char*>(this) + NLMSG_ALIGN(head.nlmsg_len));
    const size_t bytes = ip.is_v4() ? 4 : 16;
    a->rta_type = type;
    a->rta_len = static_cast<uint16_t>(RTA_LENGTH(bytes));
    std::memcpy(RTA_DATA(a), ip.bytes.data() + 16 - bytes, bytes);
    head.nlmsg_len = static_cast<uint32_t>(NLMSG_ALIGN(head.nlmsg_len) + a->rta_len);
  }
};

void read_metrics(rtattr* metrics, RouteFacts* out) {
  int left = static_cast<int>(RTA_PAYLOAD(metrics));
  for (auto* m = static_cast<rtattr*>(RTA_DATA(metrics)); RTA_OK(m, left); m = RTA_NEXT(m, left))
    if (m->rta_type == RTAX_MTU) std::memcpy(&out->kernel_mtu, RTA_DATA(m), 4);
}

void read_route(nlmsghdr* head, RouteFacts* out) {
  auto* route = static_cast<rtmsg*>(NLMSG_DATA(head));
  int left = static_cast<int>(RTM_PAYLOAD(head));
  for (rtattr* a = RTM_RTA(route); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
    if (a->rta_type == RTA_PREFSRC) out->source = to_text(address_from(RTA_DATA(a), RTA_PAYLOAD(a)));
    if (a->rta_type == RTA_GATEWAY) out->next_hop = to_text(address_from(RTA_DATA(a), RTA_PAYLOAD(a)));
    if (a->rta_type == RTA_METRICS) read_metrics(a, out);
    if (a->rta_type != RTA_OIF) continue;
    uint32_t index = 0;
    std::memcpy(&index, RTA_DATA(a), 4);
    char name[IF_NAMESIZE] = "";
    if (::if_indextoname(index, name) != nullptr) out->interface = name;
  }
}

}  // namespace

SocketAddress::SocketAddress(const wire::IpAddress& ip, uint16_t port) : v6{}, bytes(sizeof v6) {
  if (ip.is_v4()) {
    v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, ip.bytes.data() + 12, 4);
    bytes = sizeof v4;
    return;
  }
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  std::memcpy(&v6.sin6_addr, ip.bytes.data(), 16);
}

wire::IpAddress SocketAddress::ip() const {
  return base.sa_family == AF_INET ? address_from(&v4.sin_addr, 4) : address_from(&v6.sin6_addr, 16);
}

uint16_t SocketAddress::port() const { return ntohs(base.sa_family == AF_INET ? v4.sin_port : v6.sin6_port); }

std::string SocketAddress::text() const {
  const std::string address = to_text(ip());
  return (ip().is_v4() ? address : "[" + address + "]") + ":" + std::to_string(port());
}

ipc::Fd open_udp(const wire::IpAddress& ip, uint16_t port, int* error) {
  *error = 0;
  ipc::Fd fd(::socket(ip.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const SocketAddress address(ip, port);
  if (fd && ip.is_v4()) set_int(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (fd && !ip.is_v4()) {
    set_int(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set_int(fd.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set_int(fd.get(), IPPROTO_IPV6, IPV6_DONTFRAG, 1);
  }
  if (fd && ::bind(fd.get(), &address.base, address.bytes) == 0) return fd;
  *error = errno;
  return {};
}

bool readable(int fd, int milliseconds) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, milliseconds) > 0;
}

bool echoes(int socket) {
  SocketAddress self;
  if (::getsockname(socket, &self.base, &self.bytes) != 0) return false;
  const char text[] = "softub-doctor 1";
  for (int tries = 0; tries < 3; ++tries) {
    if (::sendto(socket, text, sizeof text, 0, &self.base, self.bytes) < 0) continue;
    char back[64];
    if (readable(socket, 100) && ::recv(socket, back, sizeof back, 0) == sizeof text) return true;
  }
  return false;
}

BufferFacts look_at_buffers(const Config& c) {
  BufferFacts b;
  ipc::Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) {
    b.error = std::string("no UDP socket: ") + std::strerror(errno);
    return b;
  }
  b.send = granted(fd.get(), SO_SNDBUFFORCE, SO_SNDBUF, SO_SNDBUF, c.port.udp_sndbuf);
  b.receive = granted(fd.get(), SO_RCVBUFFORCE, SO_RCVBUF, SO_RCVBUF, c.port.udp_rcvbuf);
  return b;
}

// The answer of `ip route get TO from FROM`, without the program.
RouteFacts look_at_route(const wire::IpAddress& to, const wire::IpAddress& from) {
  RouteFacts out;
  ipc::Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  RouteRequest request{};
  request.head.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg));
  request.head.nlmsg_type = RTM_GETROUTE;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.route.rtm_family = to.is_v4() ? AF_INET : AF_INET6;
  request.route.rtm_dst_len = request.route.rtm_src_len = to.is_v4() ? 32 : 128;
  request.add(RTA_DST, to);
  request.add(RTA_SRC, from);
  alignas(nlmsghdr) char answer[4096];
  ssize_t n = -1;
  if (fd && ::send(fd.get(), &request, request.head.nlmsg_len, 0) > 0) n = ::recv(fd.get(), answer, sizeof answer, 0);
  auto* head = reinterpret_cast<nlmsghdr*>(answer);
  if (n < static_cast<ssize_t>(sizeof(nlmsghdr)) || !NLMSG_OK(head, static_cast<uint32_t>(n))) {
    out.error = "the kernel does not say which route there is";
    return out;
  }
  if (head->nlmsg_type == NLMSG_ERROR) {
    out.error = std::strerror(-static_cast<nlmsgerr*>(NLMSG_DATA(head))->error);
    return out;
  }
  read_route(head, &out);
  if (out.source.empty()) out.source = to_text(from);
  for (const LocalAddress& l : local_addresses())
    if (l.interface == out.interface) out.interface_mtu = l.interface_mtu;
  return out;
}

}  // namespace ub::tools
