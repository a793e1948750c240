// SPDX-License-Identifier: Apache-2.0
#include "tools/common/tcp_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "tools/common/tool_error.h"

namespace ub::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kMaxMessage = 16u << 20;
constexpr int kSliceMs = 100;  // how late Ctrl-C may be noticed

ToolError peer_lost() { return {kExitPeerLost, "the peer closed the connection: it ended or was killed"}; }

// False: time is over.
bool wait_for(int fd, short events, int timeout_ms) {
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    throw_if_stopped();
    int slice = kSliceMs;
    if (timeout_ms >= 0) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      if (left < 0) return false;
      slice = static_cast<int>(std::min<int64_t>(left, kSliceMs));
    }
    pollfd p = {fd, events, 0};
    if (poll(&p, 1, slice) > 0) return true;
  }
}

void set_options(int fd) {
  int on = 1, idle = 5, interval = 2, count = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A host that vanishes is noticed after about 11 s.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

}  // namespace

TcpSocket::TcpSocket(int fd) : fd_(fd) { set_options(fd); }

TcpSocket::~TcpSocket() {
  if (fd_ >= 0) close(fd_);
}

TcpSocket TcpSocket::connect(const std::string& host, uint16_t port, int patience_ms) {
  const auto end = Clock::now() + std::chrono::milliseconds(patience_ms);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (int e = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); e != 0) {
    throw ToolError(fmt::format("cannot find host {}: {}", host, gai_strerror(e)));
  }
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  for (;;) {
    int error = 0;
    for (addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
      throw_if_stopped();
      int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
      if (fd >= 0 && ::connect(fd, a->ai_addr, a->ai_addrlen) == 0) return TcpSocket(fd);
      error = errno;
      if (fd >= 0) close(fd);
    }
    throw_if_stopped();
    if (error != ECONNREFUSED || Clock::now() > end) {
      throw ToolError(fmt::format("cannot connect to {} port {}: {}{}", host, port, std::strerror(error),
                                  error == ECONNREFUSED ? "; is the server running there?" : ""));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void TcpSocket::send(const std::string& message) {
  std::string frame(4, '\0');
  const uint32_t length = htonl(static_cast<uint32_t>(message.size()));
  std::memcpy(frame.data(), &length, 4);
  send_bytes(frame + message);
}

void TcpSocket::send_bytes(std::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EINTR) {
      wait_for(fd_, POLLOUT, -1);
    } else {
      throw peer_lost();
    }
  }
}

void TcpSocket::receive_bytes(void* to, size_t bytes, int timeout_ms) {
  for (size_t done = 0; done < bytes;) {
    if (!wait_for(fd_, POLLIN, timeout_ms)) {
      throw ToolError(kExitPeerLost, fmt::format("nothing has come from the peer for {} s", timeout_ms / 1000.0));
    }
    ssize_t n = recv(fd_, static_cast<char*>(to) + done, bytes - done, MSG_DONTWAIT);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      throw peer_lost();
    }
  }
}

std::string TcpSocket::receive(int timeout_ms) {
  uint32_t length = 0;
  receive_bytes(&length, 4, timeout_ms);
  length = ntohl(length);
  if (length > kMaxMessage)
    throw ToolError("what is at the other end does not speak our protocol: is the TCP port right?");
  std::string message(length, '\0');
  receive_bytes(message.data(), length, timeout_ms);
  return message;
}

TcpSocket::State TcpSocket::state() const {
  char byte;
  ssize_t n = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n > 0) return State::kReadable;
  return n < 0 && (errno == EAGAIN || errno == EINTR) ? State::kQuiet : State::kClosed;
}

bool TcpSocket::wait(int timeout_ms) const { return wait_for(fd_, POLLIN, timeout_ms); }

std::string TcpSocket::peer_address() const {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  char host[NI_MAXHOST] = "?";
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  }
  return std::strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
}

TcpListener::TcpListener(uint16_t port) {
  const int on = 1, off = 0;
  int error = 0;
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  fd_ = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ >= 0) {
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    error = bind(fd_, reinterpret_cast<sockaddr*>(&v6), sizeof v6) != 0 ? errno : 0;
  }
  if (fd_ < 0 || error == EADDRNOTAVAIL) {  // a host without IPv6
    if (fd_ >= 0) close(fd_);
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    error = fd_ < 0 || bind(fd_, reinterpret_cast<sockaddr*>(&v4), sizeof v4) != 0 ? errno : 0;
  }
  if (error == 0 && listen(fd_, 8) != 0) error = errno;
  if (error != 0) {
    if (fd_ >= 0) close(fd_);
    throw ToolError(fmt::format("cannot listen on TCP port {}: {}{}", port, std::strerror(error),
                                error == EADDRINUSE ? "; choose another one with --port" : ""));
  }
  sockaddr_storage bound = {};
  socklen_t length = sizeof bound;
  getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &length);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                            : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

TcpListener::~TcpListener() {
  if (fd_ >= 0) close(fd_);
}

TcpSocket TcpListener::accept(int timeout_ms) {
  for (;;) {
    if (!wait_for(fd_, POLLIN, timeout_ms)) {
      throw ToolError(kExitPeerLost, fmt::format("nobody has connected for {} s", timeout_ms / 1000.0));
    }
    int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) return TcpSocket(fd);
  }
}

}  // namespace ub::tools
