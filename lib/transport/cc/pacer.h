// SPDX-License-Identifier: Apache-2.0
//
// What the send queues of one owner share, jettys' and queue pairs'. A rate: each request puts off the next one by the time
// that its bytes take; pauses earn a little credit, so that timers need not be exact. And what it may cost by elements that
// send nothing. It lies above flows: those judge packets, this one requests before they are cut into any.
//
// Thread: the owner of the Core.
#pragma once

#include <cstdint>

#include "lib/base/allowance.h"
#include "lib/transport/cc/rate.h"

namespace ub::cc {

struct Pacer {
  // Prices of slots that nothing is sent for, and of the first of them at one time.
  static constexpr Duration kPassedSlot = microseconds(2), kPassedFirst = microseconds(20);
  static constexpr uint64_t kRequestBytes = 256;  // what a request costs beside its payload
  static constexpr Duration kCredit = milliseconds(1);

  uint64_t bytes_per_second = 0;  // 0: no limit
  Instant next{};                 // when the next request is due
  Allowance passing;

  // When a request may start; in the past: now.
  Instant ready_at() const {
    const auto credit = static_cast<uint64_t>(kCredit.ns);
    return bytes_per_second == 0 || next.ns <= credit ? Instant{} : Instant{next.ns - credit};
  }

  // A request starts.
  void charge(Instant now, uint64_t payload) {
    passing.give_back(kPassedFirst);
    if (bytes_per_second == 0) return;
    next = after_bytes(next, now, payload + kRequestBytes, bytes_per_second);
  }
};

}  // namespace ub::cc
