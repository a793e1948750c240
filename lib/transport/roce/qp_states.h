// SPDX-License-Identifier: Apache-2.0
// qp_states.h - the states of a queue pair, which may follow which, and what must and may be said with each step.
// InfiniBand Architecture Specification volume 1, 10.3 and 11.2.5. One table; the values themselves are checked where
// they are used.
#pragma once

#include <cstdint>

namespace ub::roce {

enum class QpType : uint8_t { kRc, kUc, kUd };

enum class QpState : uint8_t {
  kReset,  // nothing is known of it
  kInit,   // receives may be posted
  kRtr,    // receives
  kRts,    // and sends
  kSqd,    // finishes what it began to send, begins nothing
  kSqe,    // UC and UD: a send failed; receives still
  kError,  // everything posted comes back flushed
};
inline constexpr uint32_t kQpStates = 7;

/// What a step says, one bit each.
enum QpAttribute : uint32_t {
  kQpPkey = 1 << 0,
  kQpPort = 1 << 1,
  kQpAccess = 1 << 2,
  kQpQkey = 1 << 3,
  kQpPath = 1 << 4,
  kQpMtu = 1 << 5,
  kQpDestination = 1 << 6,
  kQpReceivePsn = 1 << 7,
  kQpReadsServed = 1 << 8,    // max_dest_rd_atomic
  kQpReadsInFlight = 1 << 9,  // max_rd_atomic
  kQpRnrTimer = 1 << 10,      // min_rnr_timer
  kQpTimeout = 1 << 11,
  kQpRetries = 1 << 12,
  kQpRnrRetries = 1 << 13,
  kQpSendPsn = 1 << 14,
};

/// May a queue pair go so, with these attributes: all that are needed, and none that is out of place?
[[nodiscard]] bool step_is_allowed(QpType type, QpState from, QpState to, uint32_t attributes);

/// Does it take packets; may it send?
constexpr bool receives(QpState s) { return s >= QpState::kRtr && s <= QpState::kSqe; }
constexpr bool sends(QpState s) { return s == QpState::kRts || s == QpState::kSqd; }
/// Does all that is posted for sending come back?
constexpr bool flushes_sends(QpState s) { return s == QpState::kSqe || s == QpState::kError; }

/// "RESET", ...
const char* qp_state_name(QpState s);

}  // namespace ub::roce
