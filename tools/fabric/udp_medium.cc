// SPDX-License-Identifier: Apache-2.0
//
// NICs whose wire is UDP, on addresses of this host. Each has an address of its own, and another one at which the
// fabric stands for it: peers know the NIC by the latter (device.eid_map). What comes there goes to the NIC, from the
// address at which the fabric stands for the sender. The UDP ports stay as they are.
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "dataplane/eid.h"
#include "dataplane/socket_address.h"
#include "lib/ipc/fd.h"
#include "lib/transport/wire/icrc.h"
#include "tools/common/tool_error.h"
#include "tools/fabric/medium.h"
#include "tools/fabric/readdress.h"
#include "tools/fabric/udp_ports.h"

namespace ub::fabric {
namespace {

using tools::ToolError;

constexpr size_t kBurst = 32;
constexpr size_t kLongestPayload = 9216;  // more than the largest packet has
constexpr int kBufferBytes = 4 << 20;

Endpoint endpoint_of(const SocketAddress& a) {
  return {from_sockaddr(&a.base), ntohs(a.base.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port)};
}

ipc::Fd open_socket(const NicConfig& nic, uint16_t port) {
  const bool v4 = nic.seen.is_v4();
  ipc::Fd fd(::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  SocketAddress address;
  const socklen_t bytes = fill(&address, nic.seen, port);
  if (!fd || ::bind(fd.get(), &address.base, bytes) != 0) {
    const int error = errno;
    std::string why = "NIC \"" + nic.name + "\": cannot bind " + to_text(nic.seen) + " port " + std::to_string(port) +
                      ": " + std::strerror(error);
    if (error == EADDRINUSE) why += "; another fabric or NIC has it: give the NIC other addresses";
    if (error == EADDRNOTAVAIL) why += "; it is not an address of this host";
    throw ToolError(why);
  }
  if (v4) {
    set_int(fd.get(), IPPROTO_IP, IP_RECVTOS, 1);
  } else {
    set_int(fd.get(), IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
  }
  // Beyond the limit of the system, which only the privileged may; else up to it.
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kBufferBytes, sizeof kBufferBytes) != 0) {
    set_int(fd.get(), SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  }
  set_int(fd.get(), SOL_SOCKET, SO_SNDBUF, kBufferBytes);
  return fd;
}

class UdpMedium final : public Medium {
 public:
  explicit UdpMedium(const Config& config) : nics_(config.nics), slots_(kBurst) {
    for (size_t nic = 0; nic < nics_.size(); ++nic) {
      for (uint16_t port : kUdpPorts) sockets_.push_back({open_socket(nics_[nic], port), nic, port});
    }
    for (size_t i = 0; i < kBurst; ++i) {
      slots_[i].iov = {slots_[i].bytes.data() + kHeaderRoom, kLongestPayload};
    }
  }

  std::vector<int> fds() const override {
    std::vector<int> all;
    for (const Socket& s : sockets_) all.push_back(s.fd.get());
    return all;
  }

  void receive(int fd, const Sink& sink) override {
    for (const Socket& s : sockets_) {
      if (s.fd.get() == fd) receive_at(s, sink);
    }
  }

  void send(size_t to, std::span<const std::byte> frame, uint64_t tag) override;

  std::vector<MediumCount> counts() const override {
    return {{"from_strangers", from_strangers_},
            {"too_long", too_long_},
            {"damaged_headers", damaged_headers_},
            {"refused", refused_}};
  }

 private:
  struct Socket {
    ipc::Fd fd;
    size_t nic;  // for which it stands
    uint16_t port;
  };
  struct Slot {
    std::array<std::byte, kHeaderRoom + kLongestPayload> bytes;
    iovec iov;
    SocketAddress from;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  };

  void receive_at(const Socket& s, const Sink& sink);
  void forward(const Socket& s, Slot& slot, mmsghdr& message, const Sink& sink);
  std::optional<size_t> nic_at(const IpAddress& own) const;
  const Socket* socket_at(const Endpoint& seen) const;

  std::vector<NicConfig> nics_;
  std::vector<Socket> sockets_;
  std::vector<Slot> slots_;
  uint64_t from_strangers_ = 0;   // not from a port of another NIC that we know
  uint64_t too_long_ = 0;         // longer than any packet
  uint64_t damaged_headers_ = 0;  // on its way: the kernel of a receiver would drop it
  uint64_t refused_ = 0;          // by the kernel, when it was sent on
};

void UdpMedium::receive_at(const Socket& s, const Sink& sink) {
  mmsghdr messages[kBurst] = {};
  for (size_t i = 0; i < kBurst; ++i) {
    msghdr& m = messages[i].msg_hdr;
    m.msg_name = &slots_[i].from;
    m.msg_namelen = sizeof slots_[i].from;
    m.msg_iov = &slots_[i].iov;
    m.msg_iovlen = 1;
    m.msg_control = slots_[i].control;
    m.msg_controllen = sizeof slots_[i].control;
  }
  const int count = ::recvmmsg(s.fd.get(), messages, kBurst, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < count; ++i) forward(s, slots_[static_cast<size_t>(i)], messages[i], sink);
}

void UdpMedium::forward(const Socket& s, Slot& slot, mmsghdr& message, const Sink& sink) {
  const Endpoint sender = endpoint_of(slot.from);
  const std::optional<size_t> from = nic_at(sender.ip);
  if (!from || *from == s.nic || socket_at({nics_[*from].seen, sender.port}) == nullptr) {
    ++from_strangers_;
    return;
  }
  if ((message.msg_hdr.msg_flags & MSG_TRUNC) != 0) {
    ++too_long_;
    return;
  }
  const Route was{sender, {nics_[s.nic].seen, s.port}};
  const Route is{{nics_[*from].seen, sender.port}, {nics_[s.nic].own, s.port}};
  std::byte* payload = slot.bytes.data() + kHeaderRoom;
  sink(*from, s.nic, readdress({payload, message.msg_len}, received_tos(message.msg_hdr), was, is), 0);
}

void UdpMedium::send(size_t to, std::span<const std::byte> frame, uint64_t) {
  wire::NetHeader net;
  const Socket* socket = nullptr;
  if (wire::parse_network(frame, net) == wire::Drop::kNone && net.dst.ip == nics_[to].own) socket = socket_at(net.src);
  if (socket == nullptr) {
    ++damaged_headers_;
    return;
  }
  SocketAddress address;
  const socklen_t bytes = fill(&address, net.dst.ip, net.dst.port);
  iovec iov{const_cast<std::byte*>(net.tph), net.tp_size() + wire::kIcrcSize};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = bytes;
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  const int tos = net.tos;
  c->cmsg_level = net.v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  c->cmsg_type = net.v6 ? IPV6_TCLASS : IP_TOS;
  c->cmsg_len = CMSG_LEN(sizeof tos);
  std::memcpy(CMSG_DATA(c), &tos, sizeof tos);
  if (::sendmsg(socket->fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) ++refused_;
}

std::optional<size_t> UdpMedium::nic_at(const IpAddress& own) const {
  for (size_t i = 0; i < nics_.size(); ++i) {
    if (nics_[i].own == own) return i;
  }
  return std::nullopt;
}

const UdpMedium::Socket* UdpMedium::socket_at(const Endpoint& seen) const {
  for (const Socket& s : sockets_) {
    if (s.port == seen.port && nics_[s.nic].seen == seen.ip) return &s;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Medium> open_udp_medium(const Config& config) { return std::make_unique<UdpMedium>(config); }

}  // namespace ub::fabric
