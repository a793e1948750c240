// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/peer.h"

#include <fmt/format.h>

#include "tools/common/tool_error.h"

namespace ub::tools {

void Peer::send(const std::string& kind, Json body) {
  body["kind"] = kind;
  socket_.send(body.dump());
}

Json Peer::take(int timeout_ms) {
  Json message = Json::parse(socket_.receive(timeout_ms), nullptr, false);
  if (!message.is_object() || !message.contains("kind") || !message["kind"].is_string()) {
    throw ToolError("what is at the other end is not urma_perf");
  }
  if (message["kind"] == "error") {
    throw ToolError(kExitPeerLost, fmt::format("the peer failed: {}", message.value("text", "no reason given")));
  }
  return message;
}

Json Peer::expect(const std::string& kind, int timeout_ms) {
  Json message;
  if (inbox_.empty()) {
    message = take(timeout_ms);
  } else {
    message = std::move(inbox_.front());
    inbox_.pop_front();
  }
  if (message["kind"] != kind) {
    throw ToolError(fmt::format("expected \"{}\" from the peer, got \"{}\": different versions?", kind,
                                message["kind"].get<std::string>()));
  }
  return message;
}

bool Peer::message_waits() {
  throw_if_stopped();
  switch (socket_.state()) {
    case TcpSocket::State::kQuiet:
      break;
    case TcpSocket::State::kReadable:
      inbox_.push_back(take(1000));
      break;
    case TcpSocket::State::kClosed:
      if (inbox_.empty()) throw ToolError(kExitPeerLost, "the peer ended or was killed");
      break;
  }
  return !inbox_.empty();
}

void Peer::send_error(const std::string& sentence) noexcept {
  try {
    send("error", {{"text", sentence}});
  } catch (const std::exception&) {
    // It is gone already.
  }
}

}  // namespace ub::tools
