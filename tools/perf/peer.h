// SPDX-License-Identifier: Apache-2.0
//
// The other urma_perf, seen over TCP: JSON messages {"kind": ..., ...}. A side that fails says why before it
// ends ("error"), and the other one ends with that sentence.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/common/tcp_socket.h"

namespace ub::tools {

using Json = nlohmann::json;

class Peer {
 public:
  explicit Peer(TcpSocket socket) : socket_(std::move(socket)) {}

  void send(const std::string& kind, Json body = Json::object());
  // Blocks for the next message, which must be of that kind.
  Json expect(const std::string& kind, int timeout_ms = -1);
  // Looks for a message without blocking; ToolError if the peer is gone, has failed, or on Ctrl-C.
  // A system call: not for every turn of a loop.
  bool message_waits();
  void send_error(const std::string& sentence) noexcept;
  const TcpSocket& socket() const { return socket_; }

 private:
  Json take(int timeout_ms);

  TcpSocket socket_;
  std::deque<Json> inbox_;
};

}  // namespace ub::tools
