// SPDX-License-Identifier: Apache-2.0
//
// The other side, seen over TCP: JSON messages {"kind": ..., "tool": ..., ...}. A side that fails says why
// before it ends ("error"), and the other one ends with that sentence.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/common/tcp_socket.h"

namespace ub::tools {

using Json = nlohmann::json;

class Peer {
 public:
  // `tool`: what both sides are; `role`: what the other one is called in sentences ("the receiver").
  Peer(TcpSocket socket, std::string tool, std::string role)
      : socket_(std::move(socket)), tool_(std::move(tool)), role_(std::move(role)) {}

  void send(const std::string& kind, Json body = Json::object());
  // Blocks for the next message, which must be of that kind.
  Json expect(const std::string& kind, int timeout_ms = -1);
  // Looks for a message without blocking; ToolError if the peer is gone, has failed, or on Ctrl-C.
  // A system call: not for every turn of a loop.
  bool message_waits();
  // Tells the peer why we end.
  void send_error(const std::exception& reason) noexcept;
  // The same in a catch block, then throws on: with the peer's reason if a request failed because the peer ended, else
  // with ours.
  [[noreturn]] void end_with(const std::exception& reason);
  const TcpSocket& socket() const { return socket_; }

 private:
  Json take(int timeout_ms);
  // ToolError if the peer says within that time why it ends, or is gone.
  void throw_if_it_ends(int patience_ms);

  TcpSocket socket_;
  std::string tool_, role_;
  std::deque<Json> inbox_;
};

}  // namespace ub::tools
