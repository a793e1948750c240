// SPDX-License-Identifier: Apache-2.0
//
// What a spinning loop does besides: look now and then whether the peer is alive and whether Ctrl-C was
// pressed, and give up when nothing has happened for too long. One per wait; almost free.
#pragma once

#include <sched.h>

#include <cstdint>

#include "tools/common/peer.h"
#include "tools/common/probe.h"
#include "tools/common/tool_error.h"

namespace ub::tools {

class Idle {
 public:
  static constexpr uint64_t kNoLimit = 0;
  explicit Idle(Peer& peer, uint64_t limit_s = 20) : peer_(peer), limit_ns_(limit_s * 1'000'000'000) {}

  // Nothing happened. True: a message of the peer waits.
  bool operator()() {
    if (++turns_ % 2048 != 0) [[likely]]
      return false;
    return look();
  }
  // The same without giving up the CPU or calling anything, for whoever has nothing else to do. Much rarer.
  bool quietly() {
    if (++turns_ % (1u << 22) != 0) [[likely]]
      return false;
    return peer_.message_waits();
  }
  void progress() { turns_ = 0; }  // something happened
  // For loops that sleep between their turns.
  bool now() {
    turns_ = turns_ == 0 ? 2048 : 4096;
    return look();
  }

 private:
  [[gnu::noinline]] bool look() {
    sched_yield();  // long idle: perhaps somebody whom we wait for has no CPU
    const uint64_t now = monotonic_ns();
    if (turns_ == 2048) since_ns_ = now;
    if (limit_ns_ != kNoLimit && now - since_ns_ > limit_ns_) {
      throw ToolError(kExitPeerLost, "nothing has come from the peer for too long");
    }
    if (now - looked_ns_ < 2'000'000) return false;
    looked_ns_ = now;
    return peer_.message_waits();
  }

  Peer& peer_;
  const uint64_t limit_ns_;
  uint64_t turns_ = 0, since_ns_ = 0, looked_ns_ = 0;
};

}  // namespace ub::tools
