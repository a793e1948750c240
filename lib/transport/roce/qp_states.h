// SPDX-License-Identifier: Apache-2.0
// qp_states.h - the states of a queue pair, which state may follow which, and which attributes must and may be given
// with each step. InfiniBand Architecture Specification volume 1, 10.3 and 11.2.5. One table says it all; the values of
// attributes are checked where they are used.
#pragma once

#include <cstdint>

namespace ub::roce {

enum class QpType : uint8_t { kRc, kUc, kUd };

enum class QpState : uint8_t {
  kReset,  // nothing is known of the queue pair
  kInit,   // receives may be posted
  kRtr,    // it receives
  kRts,    // it also sends
  kSqd,    // it finishes what it began to send, and begins nothing
  kSqe,    // UC and UD: a send failed; the queue pair still receives
  kError,  // everything that was or is posted comes back flushed
};
inline constexpr uint32_t kQpStates = 7;

/// The attributes of a step, one bit each.
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

/// May a queue pair make this step with these attributes? All that are needed must be there, and none that is out of
/// place.
[[nodiscard]] bool step_is_allowed(QpType type, QpState from, QpState to, uint32_t attributes);

/// Does a queue pair in this state take packets? May it send?
constexpr bool receives(QpState s) { return s >= QpState::kRtr && s <= QpState::kSqe; }
constexpr bool sends(QpState s) { return s == QpState::kRts || s == QpState::kSqd; }
/// Do all requests that are posted in this state come back flushed?
constexpr bool flushes_sends(QpState s) { return s == QpState::kSqe || s == QpState::kError; }

/// "RESET", ...
const char* qp_state_name(QpState s);

}  // namespace ub::roce
