// SPDX-License-Identifier: Apache-2.0
#include "tools/common/peer.h"

#include <fmt/format.h>

#include "tools/common/tool_error.h"

namespace ub::tools {
namespace {

constexpr int kLastWordsMs = 1000;

// The field, if it is a text.
std::string text_of(const Json& message, const char* field) {
  const auto found = message.find(field);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

// That somebody pressed Ctrl-C there means here that the peer is gone.
ExitCode code_of(const Json& error) {
  const Json code = error.value("code", Json());
  if (code == kExitInterrupted || code == kExitPeerLost) return kExitPeerLost;
  return code == kExitWrongData ? kExitWrongData : kExitFailed;
}

template <class Error>
bool is(const std::exception& e) {
  return dynamic_cast<const Error*>(&e) != nullptr;
}

}  // namespace

void Peer::send(const std::string& kind, Json body) {
  body["kind"] = kind;
  body["tool"] = tool_;
  try {
    socket_.send(body.dump());
  } catch (const ToolError&) {
    throw_if_it_ends(0);  // its last words may have come before it closed
    throw;
  }
}

Json Peer::take(int timeout_ms) {
  Json message = Json::parse(socket_.receive(timeout_ms), nullptr, false);
  if (!message.is_object() || text_of(message, "tool") != tool_) {
    const std::string tool = message.is_object() ? text_of(message, "tool") : "";
    throw ToolError(fmt::format("{} is {}, not {}: is the TCP port right?", role_,
                                tool.empty() ? "another program, or another version" : tool, tool_));
  }
  if (text_of(message, "kind") == "error") {
    const std::string reason = text_of(message, "text");
    throw PeerGaveUp(code_of(message),
                     fmt::format("{} gave up: {}", role_, reason.empty() ? "no reason given" : reason),
                     message.value("explains", Json()) == true);
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
  if (const std::string got = text_of(message, "kind"); got != kind) {
    throw ToolError(fmt::format("expected \"{}\" from {}, got \"{}\": different versions?", kind, role_, got));
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
      if (inbox_.empty()) throw ToolError(kExitPeerLost, role_ + " ended or was killed");
      break;
  }
  return !inbox_.empty();
}

void Peer::throw_if_it_ends(int patience_ms) {
  while (socket_.wait(patience_ms)) {
    if (socket_.state() == TcpSocket::State::kClosed) throw ToolError(kExitPeerLost, role_ + " ended or was killed");
    inbox_.push_back(take(1000));
  }
}

void Peer::send_error(const std::exception& reason) noexcept {
  const ExitCode code = exit_code_of(reason);
  const bool explains = !is<RequestFailed>(reason) && !is<PeerGaveUp>(reason);
  try {
    send("error", {{"text", code == kExitInterrupted ? "it was interrupted" : reason.what()},
                   {"code", code},
                   {"explains", explains}});
  } catch (const std::exception&) {
    // It is gone already.
  }
}

void Peer::end_with(const std::exception& reason) {
  send_error(reason);
  if (is<RequestFailed>(reason)) {
    try {
      throw_if_it_ends(kLastWordsMs);
    } catch (const PeerGaveUp& last_words) {
      if (last_words.explains()) throw;
    }
  }
  throw;
}

}  // namespace ub::tools
