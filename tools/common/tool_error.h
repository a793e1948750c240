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

// SIGINT and SIGTERM set the flag and interrupt system calls; the second one kills as usual.
inline void install_stop_handler() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_requested = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

inline void throw_if_stopped() {
  if (stop_requested) throw ToolError(kExitInterrupted, "interrupted");
}

}  // namespace ub::tools
