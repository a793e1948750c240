// SPDX-License-Identifier: Apache-2.0
//
// The rate of an owner, which an administrator sets. Each request delays the next one by the time that its bytes take
// at that rate. Pauses earn a little credit, so that timers need not be exact.
//
// The pacer is no algorithm of a flow (member.h). A flow judges the packets of one way through a network, and what it
// allows changes with what is heard of that way. A pacer judges requests before they are cut into packets, over all
// queues of an owner and wherever they go, and nothing that is heard changes it. Both count with the same rates
// (rate.h).
//
// Thread: the owner of the Core.
#pragma once

#include <cstdint>

#include "lib/transport/cc/rate.h"

namespace ub::cc {

struct Pacer {
  static constexpr uint64_t kRequestBytes = 256;  // what a request costs besides its payload
  static constexpr Duration kCredit = milliseconds(1);

  uint64_t bytes_per_second = 0;  // 0: there is no limit
  Instant next{};                 // when the next request is due

  // When a request may start. A time in the past: now.
  Instant ready_at() const {
    const auto credit = static_cast<uint64_t>(kCredit.ns);
    return bytes_per_second == 0 || next.ns <= credit ? Instant{} : Instant{next.ns - credit};
  }

  // A request starts: charges its bytes.
  void charge(Instant now, uint64_t payload_bytes) {
    if (bytes_per_second == 0) return;
    next = after_bytes(next, now, payload_bytes + kRequestBytes, bytes_per_second);
  }
};

}  // namespace ub::cc
