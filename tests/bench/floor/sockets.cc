// SPDX-License-Identifier: Apache-2.0
//
// Kernel UDP and TCP between two processes: what our NIC is compared with.
// UDP polls (MSG_DONTWAIT) or blocks, TCP does both: blocking is what most programs do.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <vector>

#include "tests/bench/floor/floor.h"
#include "tests/bench/floor/process.h"

namespace ub::floor {
namespace {

using tools::monotonic_ns;

constexpr uint64_t kLostAfterNs = 200'000'000;
constexpr int kBufferBytes = 4 << 20;
constexpr char kStopByte = 1;  // first byte of a datagram that ends the peer

class Socket {
 public:
  Socket() = default;
  Socket(int family, int type) : fd_(socket(family, type | SOCK_CLOEXEC, 0)) {
    if (fd_ < 0) fail("socket");
  }
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  explicit Address(const std::string& text) {
    auto* ipv4 = reinterpret_cast<sockaddr_in*>(&storage);
    auto* ipv6 = reinterpret_cast<sockaddr_in6*>(&storage);
    if (inet_pton(AF_INET, text.c_str(), &ipv4->sin_addr) == 1) {
      ipv4->sin_family = AF_INET;
      length = sizeof(*ipv4);
    } else if (inet_pton(AF_INET6, text.c_str(), &ipv6->sin6_addr) == 1) {
      ipv6->sin6_family = AF_INET6;
      length = sizeof(*ipv6);
    } else {
      throw std::runtime_error("\"" + text + "\" is not an IP address");
    }
  }
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// Binds to an ephemeral port and returns the address with it.
Address bind_to(const Socket& socket, const std::string& text) {
  Address address(text);
  if (bind(socket.fd(), address.get(), address.length) != 0) fail("bind to " + text);
  address.length = sizeof(address.storage);
  if (getsockname(socket.fd(), address.get(), &address.length) != 0) fail("getsockname");
  return address;
}

Socket udp_socket(const std::string& address) {
  Socket socket(Address(address).family(), SOCK_DGRAM);
  setsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof(kBufferBytes));
  setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof(kBufferBytes));
  return socket;
}

void connect_to(const Socket& socket, const Address& address) {
  if (connect(socket.fd(), address.get(), address.length) != 0) fail("connect");
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNREFUSED; }

// One end of a pair of UDP sockets.
struct UdpEnd {
  Socket socket;
  Address address, other;
  bool connected;

  UdpEnd(const std::string& ip, bool connect)
      : socket(udp_socket(ip)), address(bind_to(socket, ip)), other(address), connected(connect) {}
  void meet(const UdpEnd& end) {
    other = end.address;
    if (connected) connect_to(socket, other);
  }
  int fd() const { return socket.fd(); }

  ssize_t send(const char* data, size_t size) const {
    if (connected) return ::send(fd(), data, size, MSG_DONTWAIT);
    return sendto(fd(), data, size, MSG_DONTWAIT, other.get(), other.length);
  }
  ssize_t receive(char* data, size_t size, int flags) const {
    if (connected) return recv(fd(), data, size, flags);
    sockaddr_storage from;
    socklen_t length = sizeof(from);
    return recvfrom(fd(), data, size, flags, reinterpret_cast<sockaddr*>(&from), &length);
  }
};

// Made before the fork: nothing has to be agreed upon later.
struct UdpPair {
  UdpEnd near, peer;

  explicit UdpPair(const Options& options, bool connect)
      : near(options.address, connect), peer(options.peer_address, connect) {
    near.meet(peer);
    peer.meet(near);
  }
  // A lost datagram ends a wait.
  void limit_waits() const {
    const timeval limit{0, kLostAfterNs / 1000};
    for (const UdpEnd* end : {&near, &peer}) setsockopt(end->fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
};

void udp_latency(const Options& options, Report& report) {
  const size_t size = report.size_bytes;
  const int flags = options.blocking ? 0 : MSG_DONTWAIT;
  UdpPair pair(options, !options.unconnected);
  if (options.blocking) pair.limit_waits();
  Peer peer(peer_cpu(options), [&] {
    std::vector<char> buffer(size);
    for (;;) {
      const ssize_t bytes = pair.peer.receive(buffer.data(), size, flags);
      if (bytes < 0 && !would_block()) fail("recv");
      if (bytes < 0) continue;
      if (buffer[0] == kStopByte) return;
      while (pair.peer.send(buffer.data(), static_cast<size_t>(bytes)) < 0) {
        if (!would_block()) fail("send");
      }
    }
  });
  pin(near_cpu(options));
  LatencyRow row{
      std::string("UDP, ") + (options.blocking ? "blocking" : "polling") + (options.unconnected ? ", unconnected" : ""),
      {}};
  std::vector<char> buffer(size);
  const uint64_t start = monotonic_ns();
  const uint64_t warm_up_end = start + static_cast<uint64_t>(options.seconds * 1e8);
  const uint64_t end = warm_up_end + static_cast<uint64_t>(options.seconds * 1e9);
  uint64_t lost = 0;
  for (uint64_t now = start; now < end; now = monotonic_ns()) {
    const uint64_t sent = monotonic_ns();
    if (pair.near.send(buffer.data(), size) < 0 && !would_block()) fail("send");
    uint64_t then;
    ssize_t bytes;
    do {
      bytes = pair.near.receive(buffer.data(), size, flags);
      then = monotonic_ns();
      if (bytes < 0 && !would_block()) fail("recv");
    } while (bytes < 0 && then - sent < kLostAfterNs);
    if (bytes < 0) ++lost;
    if (bytes >= 0 && now > warm_up_end) row.round_trip_ns.record(then - sent);
  }
  if (lost != 0) row.name += ", " + std::to_string(lost) + " lost";
  buffer[0] = kStopByte;
  pair.near.send(buffer.data(), size);
  peer.join();
  report.latency.push_back(row);
}

// `batch` messages of `size` bytes each for sendmmsg and recvmmsg.
struct Batch {
  std::vector<char> bytes;
  std::vector<iovec> vectors;
  std::vector<mmsghdr> headers;
  std::vector<Address> names;  // of a socket that is not connected: to whom each goes, or where it came from

  Batch(size_t size, unsigned batch, const UdpEnd& end)
      : bytes(size * batch), vectors(batch), headers(batch), names(end.connected ? 0 : batch, end.other) {
    for (unsigned i = 0; i < batch; ++i) {
      vectors[i] = {bytes.data() + i * size, size};
      headers[i].msg_hdr.msg_iov = &vectors[i];
      headers[i].msg_hdr.msg_iovlen = 1;
      if (end.connected) continue;
      headers[i].msg_hdr.msg_name = names[i].get();
      headers[i].msg_hdr.msg_namelen = names[i].length;
    }
  }
};

struct BandwidthMemory {
  std::atomic<uint64_t> stop;
  std::atomic<uint64_t> sent;
};

void udp_bandwidth(const Options& options, Report& report) {
  const size_t size = report.size_bytes;
  UdpPair pair(options, !options.unconnected);
  const Shared<BandwidthMemory> memory;
  Peer peer(peer_cpu(options), [&] {
    Batch batch(size, options.batch, pair.peer);
    while (memory->stop.load(std::memory_order_relaxed) == 0) {
      const int count = sendmmsg(pair.peer.fd(), batch.headers.data(), options.batch, MSG_DONTWAIT);
      if (count < 0 && errno != ENOBUFS && !would_block()) fail("sendmmsg");
      if (count > 0) memory->sent.fetch_add(static_cast<uint64_t>(count), std::memory_order_relaxed);
    }
  });
  pin(near_cpu(options));
  Batch batch(size, options.batch, pair.near);
  const uint64_t warm_up_end = monotonic_ns() + static_cast<uint64_t>(options.seconds * 1e8);
  const uint64_t end = warm_up_end + static_cast<uint64_t>(options.seconds * 1e9);
  uint64_t first_ns = 0, sent_before = 0, received = 0, now;
  while ((now = monotonic_ns()) < end) {
    if (first_ns == 0 && now >= warm_up_end) {
      first_ns = now;
      received = 0;
      sent_before = memory->sent.load();
    }
    const int count = recvmmsg(pair.near.fd(), batch.headers.data(), options.batch, MSG_DONTWAIT, nullptr);
    if (count < 0 && !would_block()) fail("recvmmsg");
    if (count > 0) received += static_cast<uint64_t>(count);
  }
  const uint64_t sent = memory->sent.load() - sent_before;
  memory->stop.store(1);
  peer.join();
  const double per_ns = static_cast<double>(received) / static_cast<double>(now - first_ns);
  const double lost = sent > received ? 100.0 * static_cast<double>(sent - received) / static_cast<double>(sent) : 0;
  const char* named = options.unconnected ? ", unconnected" : "";
  report.rate.push_back({"UDP, one way, " + std::to_string(options.batch) + " per system call" + named,
                         per_ns * static_cast<double>(size) * 8, per_ns * 1e9, lost});
}

// -- TCP --------------------------------------------------------------------------------------------------------

struct TcpPair {
  Socket near, peer;

  explicit TcpPair(const Options& options) {
    Socket listener(Address(options.peer_address).family(), SOCK_STREAM);
    const Address address = bind_to(listener, options.peer_address);
    if (listen(listener.fd(), 1) != 0) fail("listen");
    near = Socket(Address(options.address).family(), SOCK_STREAM);
    bind_to(near, options.address);
    connect_to(near, address);
    peer = Socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.fd() < 0) fail("accept");
    const int on = 1;
    for (const Socket* socket : {&near, &peer}) {
      setsockopt(socket->fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
  }
};

// Exactly `size` bytes; false at the end of the stream. Polls if `flags` is MSG_DONTWAIT, else blocks.
bool receive_all(int fd, char* data, size_t size, int flags) {
  while (size > 0) {
    const ssize_t bytes = recv(fd, data, size, flags);
    if (bytes == 0) return false;
    if (bytes < 0 && errno == ECONNRESET) return false;
    if (bytes < 0 && !would_block()) fail("recv");
    if (bytes < 0) continue;
    data += bytes;
    size -= static_cast<size_t>(bytes);
  }
  return true;
}

bool send_all(int fd, const char* data, size_t size, int flags) {
  while (size > 0) {
    const ssize_t bytes = send(fd, data, size, flags | MSG_NOSIGNAL);
    if (bytes < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
    if (bytes < 0 && !would_block()) fail("send");
    if (bytes < 0) continue;
    data += bytes;
    size -= static_cast<size_t>(bytes);
  }
  return true;
}

void tcp_latency(const Options& options, Report& report, const char* name, int flags) {
  const size_t size = report.size_bytes;
  TcpPair pair(options);
  Peer peer(peer_cpu(options), [&] {
    pair.near = Socket();  // else the stream would have no end
    std::vector<char> buffer(size);
    while (receive_all(pair.peer.fd(), buffer.data(), size, flags) &&
           send_all(pair.peer.fd(), buffer.data(), size, flags)) {
    }
  });
  pair.peer = Socket();
  pin(near_cpu(options));
  LatencyRow row{name, {}};
  std::vector<char> buffer(size);
  const uint64_t start = monotonic_ns();
  const uint64_t warm_up_end = start + static_cast<uint64_t>(options.seconds * 1e8);
  const uint64_t end = warm_up_end + static_cast<uint64_t>(options.seconds * 1e9);
  for (uint64_t now = start; now < end;) {
    if (!send_all(pair.near.fd(), buffer.data(), size, flags) ||
        !receive_all(pair.near.fd(), buffer.data(), size, flags)) {
      throw std::runtime_error("the second process closed the connection");
    }
    const uint64_t then = monotonic_ns();
    if (now > warm_up_end) row.round_trip_ns.record(then - now);
    now = then;
  }
  pair.near = Socket();
  peer.join();
  report.latency.push_back(row);
}

void tcp_bandwidth(const Options& options, Report& report) {
  constexpr size_t kWriteBytes = 64 << 10;
  TcpPair pair(options);
  Peer peer(peer_cpu(options), [&] {
    pair.near = Socket();
    const std::vector<char> buffer(kWriteBytes, 'x');
    while (send_all(pair.peer.fd(), buffer.data(), buffer.size(), 0)) {
    }
  });
  pair.peer = Socket();
  pin(near_cpu(options));
  std::vector<char> buffer(kWriteBytes);
  const uint64_t warm_up_end = monotonic_ns() + static_cast<uint64_t>(options.seconds * 1e8);
  const uint64_t end = warm_up_end + static_cast<uint64_t>(options.seconds * 1e9);
  uint64_t first_ns = 0, received = 0, now;
  while ((now = monotonic_ns()) < end) {
    if (first_ns == 0 && now >= warm_up_end) {
      first_ns = now;
      received = 0;
    }
    const ssize_t bytes = recv(pair.near.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (bytes < 0 && !would_block()) fail("recv");
    if (bytes > 0) received += static_cast<uint64_t>(bytes);
  }
  pair.near = Socket();
  peer.join();
  const double bytes_per_ns = static_cast<double>(received) / static_cast<double>(now - first_ns);
  report.rate.push_back({"TCP stream, writes of 64 KiB", bytes_per_ns * 8, bytes_per_ns * 1e9 / kWriteBytes, 0});
}

}  // namespace

void run_udp(const Options& options, Report& report) {
  const size_t standard = options.bandwidth ? 1472 : 64;
  report.size_bytes = options.size_bytes != 0 ? options.size_bytes : standard;
  options.bandwidth ? udp_bandwidth(options, report) : udp_latency(options, report);
}

void run_tcp(const Options& options, Report& report) {
  report.size_bytes = options.size_bytes != 0 ? options.size_bytes : 64;
  if (!options.bandwidth) {
    tcp_latency(options, report, "TCP, polling", MSG_DONTWAIT);
    tcp_latency(options, report, "TCP, blocking", 0);
  }
  tcp_bandwidth(options, report);
}

}  // namespace ub::floor
