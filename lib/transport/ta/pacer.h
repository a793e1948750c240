// SPDX-License-Identifier: Apache-2.0
//
// A rate that send queues share: each request puts off the next one by the time that its bytes take. Pauses earn a
// little credit, so that timers need not be exact.
//
// Thread: the owner of the Core.
#pragma once

#include <cstdint>

#include "lib/base/time.h"

namespace ub {

struct Pacer {
  static constexpr uint64_t kRequestBytes = 256;  // what a request costs beside its payload
  static constexpr Duration kCredit = milliseconds(1);

  uint64_t bytes_per_second = 0;  // 0: no limit
  Instant next{};                 // when the next request is due

  // When a request may start; in the past: now.
  Instant ready_at() const {
    const auto credit = static_cast<uint64_t>(kCredit.ns);
    return bytes_per_second == 0 || next.ns <= credit ? Instant{} : Instant{next.ns - credit};
  }

  void charge(Instant now, uint64_t payload) {
    if (bytes_per_second == 0) return;
    const auto ns = static_cast<unsigned __int128>(payload + kRequestBytes) * 1'000'000'000 / bytes_per_second;
    next = (next < now ? now : next) + Duration{static_cast<int64_t>(ns)};
  }
};

}  // namespace ub
