// SPDX-License-Identifier: Apache-2.0
//
// When a memif client without a link tries to connect. Nothing but the times; the caller connects.
//
// A server that has the connection is left time to answer. One that hung up, as DPDK's does between the opening of its
// device and its start, has answered: it is tried again soon.
//
// Thread: one at a time.
#pragma once

#include <chrono>

namespace ub::dpdk {

class Reconnect {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kPause{200};            // between tries
  static constexpr std::chrono::milliseconds kAnswerPatience{2000};  // with a server that has the connection

  // `waits_for_server`: the connection of the last try is open. At first, and after tried() that reached nobody, it
  // is not.
  bool is_due(Time now, bool waits_for_server) const {
    return !tried_ || now - at_ >= (waits_for_server ? kAnswerPatience : kPause);
  }
  void tried(Time now) {
    tried_ = true;
    at_ = now;
  }

 private:
  bool tried_ = false;
  Time at_{};
};

}  // namespace ub::dpdk
