// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp_port.h"

#include <net/if.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "dataplane/eid.h"
#include "dataplane/socket_address.h"
#include "dataplane/socket_calls.h"
#include "lib/base/bytes.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/not_cancelled.h"

#ifndef UDP_NO_CHECK6_TX
#define UDP_NO_CHECK6_TX 101
#define UDP_NO_CHECK6_RX 102
#endif

namespace ub {
namespace {

using wire::kEthSize;
using wire::kIpv4Size;
using wire::kIpv6Size;
using wire::kUdpSize;

constexpr size_t kHeadersV4 = kEthSize + kIpv4Size + kUdpSize;
constexpr size_t kHeadersV6 = kEthSize + kIpv6Size + kUdpSize;

constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

bool in_loopback_net(const wire::IpAddress& ip) { return ip.is_v4() && ip.v4() >> 24 == 127; }

// A control message that gives a packet a type of service of its own.
struct TosControl {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int))];

  void set(bool v6, int tos) {
    std::memset(bytes, 0, sizeof bytes);
    auto* header = reinterpret_cast<cmsghdr*>(bytes);
    header->cmsg_level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
    header->cmsg_type = v6 ? IPV6_TCLASS : IP_TOS;
    header->cmsg_len = CMSG_LEN(sizeof tos);
    std::memcpy(CMSG_DATA(header), &tos, sizeof tos);
  }
};

}  // namespace

// Transmit and receive slots lie in one mapping; the message headers point into it for good.
struct UdpPort::Buffers {
  ipc::Mapping memory;
  std::byte* tx = nullptr;
  std::byte* rx = nullptr;

  struct Tx {
    iovec iov;
    SocketAddress to;
    socklen_t to_bytes;
    uint8_t tos;  // of the frame: DSCP and ECN
  } tx_slot[kTxSlots];
  mmsghdr tx_message[kTxSlots];
  TosControl tos[2][256];  // of IPv4 and IPv6

  struct Rx {
    iovec iov;
    SocketAddress from;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  } rx_slot[kRxSlots];
  mmsghdr rx_message[kRxSlots];
};

UdpPort::UdpPort() = default;
UdpPort::~UdpPort() { close(); }

void UdpPort::close() {
  sockets_.clear();
  rare_.clear();
  epoll_.reset();
  rare_epoll_.reset();
  buffers_.reset();
  free_slots_ = 0;
  queued_ = 0;
  blocked_ = false;
  next_socket_ = 0;
  port_ = 0;
}

bool UdpPort::open(const UdpPortOptions& options, std::string* error, bool* taken, std::vector<ClaimSocket>* bound) {
  close();
  options_ = options;
  if (options.addresses.empty()) {
    *error = "UDP port: no address to bind";
    return false;
  }
  auto is_mtu = [](uint32_t m) { return m == 1024 || m == 2048 || m == 4096 || m == 8192; };
  if (options.mtu != 0 && !is_mtu(options.mtu)) {
    *error = "UDP port: MTU " + std::to_string(options.mtu) + " is not 1024, 2048, 4096 or 8192 (port.mtu)";
    return false;
  }
  receive_tos_ = options.receive_tos;
  socket_tos_ = static_cast<uint8_t>(options.dscp << 2 | wire::kEcnNotCapable);
  mtu_ = options.mtu;
  if (mtu_ == 0) {
    mtu_ = 8192;
    auto locals = local_addresses();
    for (const auto& ip : options.addresses) {
      uint32_t mtu = 1024;
      for (const LocalAddress& l : locals) {
        const bool within = l.loopback && in_loopback_net(l.ip) && in_loopback_net(ip);  // all of it, not listed
        if (l.ip != ip && !within) continue;
        mtu = payload_for_interface_mtu(l.interface_mtu);
        if (l.loopback && mtu > options.loopback_mtu) mtu = options.loopback_mtu;
      }
      mtu_ = std::min(mtu_, mtu);
    }
  }

  bool is_taken = false;
  const bool done = open_all(error, &is_taken, bound);
  if (taken != nullptr) *taken = is_taken;
  if (!done) {
    if (is_taken) *error += "; another instance has it: leave the choice to the port, or configure another";
    close();
    return false;
  }

  slot_bytes_ = (kNetRoom + kFrameOverhead + mtu_ + 63) & ~size_t{63};
  buffers_ = std::make_unique<Buffers>();
  Buffers& b = *buffers_;
  if (!b.memory.map_private((kTxSlots + kRxSlots) * slot_bytes_)) {
    *error = "UDP port: no memory for packet buffers";
    close();
    return false;
  }
  for (int tos = 0; tos < 256; ++tos) {
    for (const bool v6 : {false, true}) b.tos[v6][tos].set(v6, tos);
  }
  b.tx = b.memory.data();
  b.rx = b.memory.data() + kTxSlots * slot_bytes_;
  for (size_t i = 0; i < kRxSlots; ++i) {
    b.rx_slot[i].iov = {b.rx + i * slot_bytes_ + kNetRoom, slot_bytes_ - kNetRoom};
    msghdr& m = b.rx_message[i].msg_hdr;
    m = {};
    m.msg_name = &b.rx_slot[i].from;
    m.msg_namelen = sizeof b.rx_slot[i].from;
    m.msg_iov = &b.rx_slot[i].iov;
    m.msg_iovlen = 1;
    m.msg_control = b.rx_slot[i].control;
    m.msg_controllen = sizeof b.rx_slot[i].control;
  }
  free_slots_ = ~uint64_t{0};
  static_assert(kTxSlots == 64);

  epoll_ = ipc::Fd(::epoll_create1(EPOLL_CLOEXEC));
  rare_epoll_ = ipc::Fd(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event rare{};
  rare.events = EPOLLIN;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, rare_epoll_.get(), &rare);
  for (Socket& s : sockets_) {
    if (watch(s, error)) continue;
    close();
    return false;
  }
  return true;
}

void UdpPort::open_roce(const Notice& notice) {
  for (const wire::IpAddress& ip : options_.addresses) {
    Socket s;
    s.ip = ip;
    bool taken = false;
    std::string error;
    if (open_socket(s, roce::kUdpPort, &taken, &error) && watch(s, &error)) {
      sockets_.push_back(std::move(s));
      continue;
    }
    if (taken) error += "; Soft-RoCE of the kernel or another instance has it";
    if (notice) notice(error + ". There is no RoCE at this address; UB goes on");
  }
}

bool UdpPort::open_source_port(const wire::IpAddress& ip, uint16_t* port, std::string* error) {
  Socket s;
  s.ip = ip;
  bool taken = false;
  if (!open_socket(s, 0, &taken, error) || !watch(s, error)) return false;
  *port = s.port;
  sockets_.push_back(std::move(s));
  return true;
}

bool UdpPort::has_roce(const wire::IpAddress& ip) const {
  return std::any_of(sockets_.begin(), sockets_.end(),
                     [&](const Socket& s) { return s.ip == ip && s.port == roce::kUdpPort; });
}

bool UdpPort::watch(Socket& s) {
  epoll_event event{};
  event.events = s.armed = EPOLLONESHOT;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, s.fd.get(), &event) == 0 || errno == EEXIST;
}

bool UdpPort::watch(Socket& s, std::string* error) {
  if (watch(s)) return true;
  *error = "UDP port: cannot watch the socket of " + to_text(s.ip) + ": " + std::strerror(errno);
  return false;
}

bool UdpPort::open_all(std::string* error, bool* taken, std::vector<ClaimSocket>* bound) {
  bool done = open_sockets(options_.wanted_port, taken, error, bound);
  // An ephemeral port that is free on one address may be taken on another.
  for (int attempt = 0; !done && *taken && !options_.port_required && attempt < 32; ++attempt)
    done = open_sockets(0, taken, error, nullptr);
  return done;
}

void UdpPort::listen(std::vector<ClaimSocket> claims) {
  for (ClaimSocket& claim : claims) {
    Socket s;
    std::string error;
    s.ip = claim.ip;
    s.port = claim.port;
    s.v6 = !claim.ip.is_v4();
    s.fd = std::move(claim.fd);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<uint32_t>(s.fd.get());
    // One that cannot be read still says whose the ids are.
    if (set_options(s, &error, true)) ::epoll_ctl(rare_epoll_.get(), EPOLL_CTL_ADD, s.fd.get(), &event);
    rare_.push_back(std::move(s));
  }
}

void UdpPort::stop_listening(uint16_t port) {
  for (Socket& s : rare_) {
    if (s.port != port) continue;
    for (uint32_t i = 0; i < s.queue_count; ++i) release_slot(s.queue[i]);
    queued_ -= s.queue_count;
  }
  std::erase_if(rare_, [port](const Socket& s) { return s.port == port; });
}

bool UdpPort::open_sockets(uint16_t port, bool* taken, std::string* error, std::vector<ClaimSocket>* bound) {
  sockets_.clear();
  port_ = port;
  for (const wire::IpAddress& ip : options_.addresses) {
    Socket s;
    s.ip = ip;
    if (bound != nullptr && take_bound(s, port, bound)) {
      if (!set_options(s, error)) return false;
    } else if (!open_socket(s, port_, taken, error)) {
      return false;
    }
    port_ = s.port;
    sockets_.push_back(std::move(s));
  }
  return true;
}

bool UdpPort::take_bound(Socket& s, uint16_t port, std::vector<ClaimSocket>* bound) {
  auto fits = [&](const ClaimSocket& b) { return b.ip == s.ip && b.port == port; };
  const auto found = std::find_if(bound->begin(), bound->end(), fits);
  if (found == bound->end()) return false;
  s.fd = std::move(found->fd);
  s.port = port;
  s.v6 = !s.ip.is_v4();
  bound->erase(found);
  return true;
}

bool UdpPort::open_socket(Socket& s, uint16_t port, bool* taken, std::string* error) {
  *taken = false;
  s.v6 = !s.ip.is_v4();
  s.fd = ipc::Fd(::socket(s.v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!s.fd) {
    *error = "UDP port: cannot open a socket for " + to_text(s.ip) + ": " + std::strerror(errno);
    return false;
  }
  if (!set_options(s, error)) return false;
  SocketAddress address;
  socklen_t bytes = fill(&address, s.ip, port);
  if (::bind(s.fd.get(), &address.base, bytes) != 0) {
    int e = errno;
    *taken = e == EADDRINUSE;
    *error = "UDP port: cannot bind " + to_text(s.ip) + " port " + std::to_string(port) + ": " + std::strerror(e);
    if (e == EADDRNOTAVAIL) *error += "; the address is not one of this host (device.eids, port.udp_bind)";
    return false;
  }
  bytes = sizeof address;
  if (::getsockname(s.fd.get(), &address.base, &bytes) != 0) return false;
  s.port = ntohs(s.v6 ? address.v6.sin6_port : address.v4.sin_port);
  return true;
}

bool UdpPort::set_options(Socket& s, std::string* error, bool rare) {
  int fd = s.fd.get();
  int failed;
  if (s.v6) {
    set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, socket_tos_);
    set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, receive_tos_);
    set_int(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
    set_int(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
    set_int(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
    int value = IPV6_PMTUDISC_DO;
    failed = ::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &value, sizeof value);
  } else {
    set_int(fd, IPPROTO_IP, IP_TOS, socket_tos_);
    set_int(fd, IPPROTO_IP, IP_RECVTOS, receive_tos_);
    set_int(fd, SOL_SOCKET, SO_NO_CHECK, 1);
    int value = IP_PMTUDISC_DO;
    failed = ::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, sizeof value);
  }
  if (failed) {
    *error = "UDP port: the kernel does not let us set \"don't fragment\" on " + to_text(s.ip) + ": " +
             std::strerror(errno) + "; packets would carry IPv4 IDs that the ICRC does not expect";
    return false;
  }
  auto wish = [fd](int force, int plain, uint64_t bytes) {
    int value = static_cast<int>(std::min<uint64_t>(bytes, 1U << 30));
    if (value == 0) return;
    if (::setsockopt(fd, SOL_SOCKET, force, &value, sizeof value) != 0)  // beyond the limit: privileged
      ::setsockopt(fd, SOL_SOCKET, plain, &value, sizeof value);
  };
  if (rare) return true;
  wish(SO_SNDBUFFORCE, SO_SNDBUF, options_.send_buffer_bytes);
  wish(SO_RCVBUFFORCE, SO_RCVBUF, options_.receive_buffer_bytes);
  return true;
}

// ---- send ----

std::byte* UdpPort::tx_begin(uint32_t, size_t bytes) {
  if (free_slots_ == 0 && !blocked_ && queued_ != 0) send_queues();
  if (free_slots_ == 0 || bytes > slot_bytes_) [[unlikely]] {
    ++counters_.tx_no_room;
    return nullptr;
  }
  auto slot = static_cast<size_t>(__builtin_ctzll(free_slots_));
  free_slots_ &= free_slots_ - 1;
  return buffers_->tx + slot * slot_bytes_;
}

void UdpPort::release_slot(uint32_t slot) { free_slots_ |= uint64_t{1} << slot; }

void UdpPort::tx_abort(uint32_t, std::byte* frame) {
  release_slot(static_cast<uint32_t>(static_cast<size_t>(frame - buffers_->tx) / slot_bytes_));
}

void UdpPort::tx_commit(uint32_t, std::byte* frame, size_t bytes) {
  Buffers& b = *buffers_;
  auto slot = static_cast<uint32_t>(static_cast<size_t>(frame - b.tx) / slot_bytes_);
  Buffers::Tx& tx = b.tx_slot[slot];
  wire::IpAddress source;
  size_t headers = 0;
  const std::byte* ip = frame + kEthSize;
  uint16_t type = load_be16(frame + 12);
  if (type == wire::kEtherTypeIpv4 && bytes >= kHeadersV4 && load_u8(ip + 9) == IPPROTO_UDP) {
    headers = kHeadersV4;
    tx.tos = load_u8(ip + 1);
    source = wire::IpAddress::from_v4(load_be32(ip + 12));
    tx.to.v4.sin_family = AF_INET;
    std::memcpy(&tx.to.v4.sin_addr, ip + 16, 4);
    std::memcpy(&tx.to.v4.sin_port, ip + kIpv4Size + 2, 2);
    tx.to_bytes = sizeof tx.to.v4;
  } else if (type == wire::kEtherTypeIpv6 && bytes >= kHeadersV6 && load_u8(ip + 6) == IPPROTO_UDP) {
    headers = kHeadersV6;
    tx.tos = static_cast<uint8_t>(load_be16(ip) >> 4);
    std::memcpy(source.bytes.data(), ip + 8, 16);
    tx.to.v6 = {};
    tx.to.v6.sin6_family = AF_INET6;
    std::memcpy(&tx.to.v6.sin6_addr, ip + 24, 16);
    std::memcpy(&tx.to.v6.sin6_port, ip + kIpv6Size + 2, 2);
    tx.to_bytes = sizeof tx.to.v6;
  }
  size_t payload = headers == 0 ? 0 : size_t{load_be16(frame + headers - 4)} - kUdpSize;
  if (headers != 0 && payload <= bytes - headers) {
    if (Socket* s = socket_of(source, load_be16(frame + headers - kUdpSize))) {
      tx.iov = {frame + headers, payload};
      s->queue[s->queue_count++] = static_cast<uint16_t>(slot);
      ++queued_;
      return;
    }
  }
  ++counters_.tx_drop_bad_frame;
  release_slot(slot);
}

void UdpPort::tx_flush(Instant) {
  if (queued_ == 0) return;
  blocked_ = false;
  send_queues();
}

UdpPort::Socket* UdpPort::socket_of(const wire::IpAddress& source, uint16_t port) {
  for (auto* sockets : {&sockets_, &rare_}) {
    for (Socket& s : *sockets) {
      if (s.ip == source && s.port == port) return &s;
    }
  }
  return nullptr;
}

void UdpPort::send_queues() {
  for (Socket& s : sockets_) send_queue(s);
  for (Socket& s : rare_) {
    if (queued_ == 0) return;
    send_queue(s);
  }
}

void UdpPort::send_queue(Socket& s) {
  Buffers& b = *buffers_;
  uint32_t count = s.queue_count, done = 0;
  if (count == 0) return;
  const ipc::NotCancelled guard;
  // One alone goes without a message header, which the kernel would have to fetch first, unless that has to say its
  // class or ECN code point.
  const auto goes_alone = [&](uint32_t at) { return count - at == 1 && b.tx_slot[s.queue[at]].tos == socket_tos_; };
  for (uint32_t i = 0; i < count && !goes_alone(0); ++i) {
    Buffers::Tx& tx = b.tx_slot[s.queue[i]];
    msghdr& m = b.tx_message[i].msg_hdr;
    m = {};
    m.msg_name = &tx.to;
    m.msg_namelen = tx.to_bytes;
    m.msg_iov = &tx.iov;
    m.msg_iovlen = 1;
    if (tx.tos == socket_tos_) continue;
    m.msg_control = b.tos[s.v6][tx.tos].bytes;
    m.msg_controllen = sizeof b.tos[s.v6][tx.tos].bytes;
  }
  while (done < count) {
    int n;
    if (goes_alone(done)) {
      const Buffers::Tx& tx = b.tx_slot[s.queue[done]];
      ssize_t sent =
          ::sendto(s.fd.get(), tx.iov.iov_base, tx.iov.iov_len, kSendFlags, &tx.to.base, tx.to_bytes);
      n = sent < 0 ? -1 : 1;
    } else {
      n = ::sendmmsg(s.fd.get(), b.tx_message + done, count - done, kSendFlags);
    }
    if (n > 0) {
      counters_.tx_frames += static_cast<uint32_t>(n);
      done += static_cast<uint32_t>(n);
      continue;
    }
    int e = errno;
    if (e == EINTR) continue;
    if (e == EAGAIN || e == ENOBUFS || e == ENOMEM) {
      blocked_ = true;
      ++counters_.tx_again;
      break;
    }
    count_send_error(e);  // that one frame is lost, as it would be in a network
    ++done;
  }
  for (uint32_t i = 0; i < done; ++i) release_slot(s.queue[i]);
  std::copy(s.queue + done, s.queue + count, s.queue);
  s.queue_count = count - done;
  queued_ -= done;
}

void UdpPort::count_send_error(int error) {
  switch (error) {
    case EMSGSIZE:
      ++counters_.tx_drop_too_long;
      break;
    case ECONNREFUSED:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case EADDRNOTAVAIL:
    case EINVAL:  // source and destination that do not go together (loopback to outside)
      ++counters_.tx_drop_unreachable;
      break;
    default:
      ++counters_.tx_drop_other;
      break;
  }
}

// ---- receive ----

size_t UdpPort::rx_burst(RxFrame* out, size_t room) {
  if (room == 0) return 0;
  if (--until_rare_ == 0) [[unlikely]] {
    if (size_t count = receive_rare(out, room)) return count;
  }
  // With several sockets two are asked each time, in turn: an empty one costs a system call.
  size_t count = 0;
  size_t asked = std::min<size_t>(sockets_.size(), 2);
  room = std::min(room, kRxSlots);
  for (size_t i = 0; i < asked && count == 0; ++i) {
    if (next_socket_ >= sockets_.size()) next_socket_ = 0;
    count = receive(sockets_[next_socket_], out, room);
    ++next_socket_;
  }
  return count;
}

size_t UdpPort::receive_rare(RxFrame* out, size_t room) {
  until_rare_ = kRareTurn;
  epoll_event ready;
  if (rare_.empty()) return 0;
  const ipc::NotCancelled guard;
  if (::epoll_wait(rare_epoll_.get(), &ready, 1, 0) != 1) return 0;
  until_rare_ = 1;  // there may be more
  for (Socket& s : rare_) {
    if (static_cast<uint32_t>(s.fd.get()) != ready.data.u32) continue;
    if ((ready.events & ~uint32_t{EPOLLOUT}) != 0) return receive(s, out, std::min(room, kRxSlots));
    arm(rare_epoll_, s, EPOLLIN, false);  // room is all there is
  }
  return 0;
}

size_t UdpPort::receive(Socket& s, RxFrame* out, size_t room) {
  Buffers& b = *buffers_;
  int n;
  if (!s.busy) {
    // After an empty look a single packet is the likely thing; recvmmsg would ask for a second one.
    ssize_t bytes;
    if (receive_tos_) {
      bytes = socket_calls::receive_message(s.fd.get(), &b.rx_message[0].msg_hdr, MSG_DONTWAIT);
    } else {  // measurably cheaper
      Buffers::Rx& rx = b.rx_slot[0];
      socklen_t from_bytes = sizeof rx.from;
      bytes = socket_calls::receive_from(s.fd.get(), rx.iov.iov_base, rx.iov.iov_len, MSG_DONTWAIT | MSG_TRUNC,
                                         &rx.from.base, &from_bytes);
      b.rx_message[0].msg_hdr.msg_flags = bytes > static_cast<ssize_t>(rx.iov.iov_len) ? MSG_TRUNC : 0;
    }
    n = bytes < 0 ? -1 : 1;
    b.rx_message[0].msg_len = static_cast<unsigned>(bytes);
  } else {
    n = socket_calls::receive_messages(s.fd.get(), b.rx_message, static_cast<unsigned>(room), MSG_DONTWAIT);
  }
  s.busy = n > 0;
  if (n <= 0) {
    if (errno != EAGAIN && errno != EINTR) ++counters_.rx_errors;
    return 0;
  }
  size_t count = 0;
  for (int i = 0; i < n; ++i) {
    msghdr& m = b.rx_message[i].msg_hdr;
    Buffers::Rx& rx = b.rx_slot[i];
    size_t payload = b.rx_message[i].msg_len;
    size_t headers = s.v6 ? kHeadersV6 : kHeadersV4;
    std::byte* frame = static_cast<std::byte*>(rx.iov.iov_base) - headers;
    if (m.msg_flags & MSG_TRUNC) [[unlikely]] {
      ++counters_.rx_drop_too_long;
    } else {
      uint8_t tos = receive_tos_ ? received_tos(m) : 0;
      if (s.v6) {
        write_headers_v6(frame, s, rx.from.v6, payload, tos);
      } else {
        write_headers_v4(frame, s, rx.from.v4, payload, tos);
      }
      out[count++] = {frame, static_cast<uint32_t>(headers + payload), link_};
    }
    m.msg_namelen = sizeof rx.from;
    m.msg_controllen = sizeof rx.control;
    m.msg_flags = 0;
  }
  counters_.rx_frames += count;
  return count;
}

void UdpPort::write_headers_v4(std::byte* frame, const Socket& s, const sockaddr_in& from, size_t payload,
                               uint8_t tos) const {
  std::memset(frame, 0, 12);
  store_be16(frame + 12, wire::kEtherTypeIpv4);
  std::byte* ip = frame + kEthSize;
  auto total = static_cast<uint16_t>(kIpv4Size + kUdpSize + payload);
  uint32_t source = ntohl(from.sin_addr.s_addr), destination = s.ip.v4();
  store_be16(ip, static_cast<uint16_t>(0x4500 | tos));
  store_be16(ip + 2, total);
  store_be32(ip + 4, 0x00004000);  // ID 0, DF
  store_be16(ip + 8, 64 << 8 | IPPROTO_UDP);
  uint32_t sum = (0x4500U | tos) + total + 0x4000 + (64 << 8 | IPPROTO_UDP) + (source >> 16) + (source & 0xffff) +
                 (destination >> 16) + (destination & 0xffff);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  store_be16(ip + 10, static_cast<uint16_t>(~sum));
  store_be32(ip + 12, source);
  store_be32(ip + 16, destination);
  std::byte* udp = ip + kIpv4Size;
  store_be16(udp, ntohs(from.sin_port));
  store_be16(udp + 2, s.port);
  store_be16(udp + 4, static_cast<uint16_t>(kUdpSize + payload));
  store_be16(udp + 6, 0);
}

void UdpPort::write_headers_v6(std::byte* frame, const Socket& s, const sockaddr_in6& from, size_t payload,
                               uint8_t tos) const {
  std::memset(frame, 0, 12);
  store_be16(frame + 12, wire::kEtherTypeIpv6);
  std::byte* ip = frame + kEthSize;
  store_be32(ip, 0x60000000U | uint32_t{tos} << 20);
  store_be16(ip + 4, static_cast<uint16_t>(kUdpSize + payload));
  store_be16(ip + 6, IPPROTO_UDP << 8 | 64);
  std::memcpy(ip + 8, &from.sin6_addr, 16);
  std::memcpy(ip + 24, s.ip.bytes.data(), 16);
  std::byte* udp = ip + kIpv6Size;
  store_be16(udp, ntohs(from.sin6_port));
  store_be16(udp + 2, s.port);
  store_be16(udp + 4, static_cast<uint16_t>(kUdpSize + payload));
  store_be16(udp + 6, 0);
}

// ---- sleep ----

// What waits for room in a socket wakes the sleeper when there is some: who sleeps need not look.
bool UdpPort::prepare_sleep() {
  for (Socket& s : sockets_) arm(epoll_, s, EPOLLONESHOT, blocked_ && s.queue_count != 0);
  for (Socket& s : rare_) arm(rare_epoll_, s, EPOLLIN, blocked_ && s.queue_count != 0);
  return false;
}

void UdpPort::finish_sleep() {
  for (Socket& s : sockets_) arm(epoll_, s, EPOLLONESHOT, false);
  for (Socket& s : rare_) arm(rare_epoll_, s, EPOLLIN, false);
}

void UdpPort::mute() {
  for (const Socket& s : sockets_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, s.fd.get(), nullptr);
}

bool UdpPort::unmute() {
  bool done = true;
  for (Socket& s : sockets_) done &= watch(s);
  return done;
}

// Nobody takes events from the set of the main sockets, so that they stay armed.
void UdpPort::arm(const ipc::Fd& epoll, Socket& s, uint32_t events, bool wants_room) {
  epoll_event event{};
  event.events = events | (wants_room ? uint32_t{EPOLLOUT} : 0);
  event.data.u32 = static_cast<uint32_t>(s.fd.get());
  if (event.events == s.armed) return;
  s.armed = event.events;
  ::epoll_ctl(epoll.get(), EPOLL_CTL_MOD, s.fd.get(), &event);
}

void UdpPort::fds(std::vector<int>& out) const {
  if (epoll_) out.push_back(epoll_.get());
  for (const Socket& s : sockets_) out.push_back(s.fd.get());
}

}  // namespace ub
