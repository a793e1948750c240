// SPDX-License-Identifier: Apache-2.0
//
// Which packets in flight the peer has out of order, and which go again (UB Base Specification Rev 2.0, 6.4.2.3): the
// RecoveryBlock of a channel, which exists from the first report of a gap until nothing is in flight.
#pragma once

#include "lib/transport/tp/state.h"

namespace ub::tp {

constexpr uint32_t recovery_index(Psn psn) { return psn.value() & (kMaxWindow - 1); }

inline RecoveryBlock& recovery_block(State& s, Channel& ch) {
  if (ch.recovery == 0) {
    ch.recovery = s.recovery.alloc();  // one per channel: never exhausted
    s.recovery[ch.recovery] = RecoveryBlock{};
  }
  return s.recovery[ch.recovery];
}

inline void release_recovery(State& s, Channel& ch) {
  if (ch.recovery == 0) return;
  UB_DCHECK(s.recovery[ch.recovery].resend_count == 0);
  s.recovery.free(ch.recovery);
  ch.recovery = 0;
}

// Is it to go again, or built for that and waiting for memory?
inline bool goes_again(const RecoveryBlock& r, Psn psn) {
  return test_bit(r.resend, recovery_index(psn)) || test_bit(r.held, recovery_index(psn));
}

// Nothing is of PSNs that are not in flight: their places are used again a window later.
inline bool nothing_noted(const State& s, const Channel& ch, Psn psn) {
  const RecoveryBlock& r = s.recovery[ch.recovery];
  return ch.recovery == 0 || (!test_bit(r.sacked, recovery_index(psn)) && !goes_again(r, psn));
}

inline void queue_resend(RecoveryBlock& r, Psn psn) {
  if (goes_again(r, psn)) return;
  UB_DCHECK(!test_bit(r.sacked, recovery_index(psn)));  // the peer has it
  set_bit(r.resend, recovery_index(psn));
  ++r.resend_count;
}
// It need not go again, or went.
inline void take_from_resends(RecoveryBlock& r, Psn psn) {
  clear_bit(r.held, recovery_index(psn));
  if (!test_bit(r.resend, recovery_index(psn))) return;
  UB_DCHECK(r.resend_count != 0);
  clear_bit(r.resend, recovery_index(psn));
  --r.resend_count;
}
// It is built to go again, and waits for memory.
inline void resend_waits(RecoveryBlock& r, Psn psn) {
  UB_DCHECK(test_bit(r.resend, recovery_index(psn)));
  take_from_resends(r, psn);
  set_bit(r.held, recovery_index(psn));
}

// A burst of packets goes again because of this gap: all of those in flight, or single ones up to `high_resent`. `next`:
// the first PSN that will be sent after the burst (MarkPSN); those that wait for memory leave before it.
inline void note_burst(RecoveryBlock& r, Psn first, Psn high_resent, Psn next) {
  r.burst = true;
  r.last_first = first;
  r.high_resent = high_resent;
  r.mark = next;
}

}  // namespace ub::tp
