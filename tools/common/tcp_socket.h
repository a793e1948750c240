// SPDX-License-Identifier: Apache-2.0
//
// A TCP connection for the talk between two tools: messages with a length prefix. All waits end with Ctrl-C.
// Errors are ToolErrors; a peer that is gone is kExitPeerLost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ub::tools {

class TcpSocket {
 public:
  TcpSocket() = default;
  explicit TcpSocket(int fd);
  TcpSocket(TcpSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TcpSocket();

  // Tries for `patience_ms` while nobody listens there yet.
  static TcpSocket connect(const std::string& host, uint16_t port, int patience_ms = 3000);

  void send(const std::string& message);
  // Negative: waits for ever. ToolError when the time is over.
  std::string receive(int timeout_ms = -1);
  // Bare bytes, for peers with a protocol of their own.
  void send_bytes(std::string_view bytes);
  void receive_bytes(void* to, size_t bytes, int timeout_ms);

  enum class State { kQuiet, kReadable, kClosed };
  State state() const;  // does not block
  // Until something comes or the peer closes. False: the time is over.
  bool wait(int timeout_ms) const;

  std::string peer_address() const;
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

class TcpListener {
 public:
  // Port 0: any free one. Listens on IPv6 and IPv4.
  explicit TcpListener(uint16_t port);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  TcpSocket accept(int timeout_ms = -1);
  uint16_t port() const { return port_; }
  int fd() const { return fd_; }  // readable when somebody waits to be accepted

 private:
  int fd_ = -1;
  uint16_t port_ = 0;
};

}  // namespace ub::tools
