// SPDX-License-Identifier: Apache-2.0
//
// Which packets in flight the peer has beyond a gap, and which are to be sent again (UB Base Specification Rev 2.0,
// 6.4.2.3): the RecoveryBlock of a channel, which exists from the first loss until nothing is in flight.
#pragma once

#include "lib/transport/tp/state.h"

namespace ub::tp {

constexpr uint32_t recovery_index(Psn psn) { return psn.value() & (kMaxWindow - 1); }

inline RecoveryBlock& recovery_block(State& s, Channel& ch) {
  if (ch.recovery == 0) {
    ch.recovery = s.recovery.alloc();  // never 0: the pool has a block for each channel
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

// Is the packet queued for retransmission, or built for it and waiting for memory?
inline bool goes_again(const RecoveryBlock& r, Psn psn) {
  return test_bit(r.resend, recovery_index(psn)) || test_bit(r.held, recovery_index(psn));
}

// Does the block say nothing of this PSN? That must hold for PSNs that are not in flight, because kMaxWindow PSNs later
// the same bits stand for another packet.
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
// The packet was sent again, or need not be sent again.
inline void take_from_resends(RecoveryBlock& r, Psn psn) {
  clear_bit(r.held, recovery_index(psn));
  if (!test_bit(r.resend, recovery_index(psn))) return;
  UB_DCHECK(r.resend_count != 0);
  clear_bit(r.resend, recovery_index(psn));
  --r.resend_count;
}
// The retransmission of the packet is built and waits for memory.
inline void resend_waits(RecoveryBlock& r, Psn psn) {
  UB_DCHECK(test_bit(r.resend, recovery_index(psn)));
  take_from_resends(r, psn);
  set_bit(r.held, recovery_index(psn));
}

// A burst of packets from `first` up to `high_resent` is sent again. `next` is the first new PSN that is sent after the
// burst (MarkPSN).
inline void note_burst(RecoveryBlock& r, Psn first, Psn high_resent, Psn next) {
  r.burst = true;
  r.last_first = first;
  r.high_resent = high_resent;
  r.mark = next;
}

}  // namespace ub::tp
