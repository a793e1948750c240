// SPDX-License-Identifier: Apache-2.0
//
// How the tools end: an exception that carries the exit code and a sentence for the user, and Ctrl-C as a
// flag that every waiting loop looks at, so that a tool tears down its objects and tells its peer.
#pragma once

#include <csignal>
#include <stdexcept>
#include <string>

namespace ub::tools {

enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitPeerLost = 3,
  kExitWrongData = 4,
  kExitInterrupted = 130,
};

class ToolError : public std::runtime_error {
 public:
  ToolError(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  explicit ToolError(const std::string& sentence) : ToolError(kExitFailed, sentence) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

inline volatile std::sig_atomic_t stop_requested = 0;

// A request to the NIC ended badly; that may be because the peer ended.
class RequestFailed : public ToolError {
 public:
  using ToolError::ToolError;
};

// The peer said why it ends. If that is no reason of its own, but that a request failed or that we gave up, it does not
// explain why a request of ours failed.
class PeerGaveUp : public ToolError {
 public:
  PeerGaveUp(ExitCode code, const std::string& sentence, bool explains)
      : ToolError(code, sentence), explains_(explains) {}
  bool explains() const { return explains_; }

 private:
  bool explains_;
};

inline ExitCode exit_code_of(const std::exception& e) {
  const auto* error = dynamic_cast<const ToolError*>(&e);
  return error != nullptr ? error->code() : kExitFailed;
}

// SIGINT, SIGTERM and SIGHUP (the terminal is gone) set the flag and interrupt system calls; the second one kills as
// usual. A write that a pipe, a socket or a limit of the file size refuses is an error, not a signal.
inline void install_stop_handler() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_requested = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (signal(SIGHUP, SIG_IGN) != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup: it stays ignored
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

inline void throw_if_stopped() {
  if (stop_requested) throw ToolError(kExitInterrupted, "interrupted");
}

}  // namespace ub::tools
