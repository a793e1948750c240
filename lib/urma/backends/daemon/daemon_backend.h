// SPDX-License-Identifier: Apache-2.0
// daemon_backend.h - liburma's back end on a NIC in another process, softubd. docs/daemon.md is the whole story.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lib/urma/backends/backend.h"

namespace ub::urma {

struct DaemonOptions {
  std::string socket;                             // path
  std::chrono::milliseconds patience{10'000};     // a daemon that does not answer a call for so long is gone
  std::chrono::nanoseconds helper_spin{5'000};    // how long the helper looks before it sleeps
  std::chrono::nanoseconds away_least{50'000};    // how long it stays away while the application polls: at first
  std::chrono::nanoseconds away_most{1'000'000};  // and at most
};

// Null and `*error`: a sentence that says what a person can do.
std::unique_ptr<Backend> start_daemon_backend(const DaemonOptions& options, std::string* error);

}  // namespace ub::urma
