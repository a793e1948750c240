// SPDX-License-Identifier: Apache-2.0
//
// Which packets in flight the peer has beyond a gap, and which are lost (UB Base Specification Rev 2.0, 6.4.2.3): the
// RecoveryBlock of a channel, which exists while there is something to say of a packet in flight.
//
// A packet is lost if another that was sent later has arrived, and there are more than Channel::tolerance packets
// between the two (reorder_tolerance.h), or margin_of(), or pause_of() where the path changes the order, has passed
// meanwhile (retransmission_timeout.h). "Later" is judged by the order of transmission: packets that were sent once are
// in the order of their PSNs, and each retransmission has a record with the next new PSN of that time. MarkPSN
// (6.4.2.3.1) is the same with one record for each burst.
#pragma once

#include "lib/transport/tp/state.h"

namespace ub::tp {

constexpr uint32_t recovery_index(Psn psn) { return psn.value() & (kMaxWindow - 1); }

RecoveryBlock& recovery_block(State& s, Channel& ch);
// Gives the block back, whatever it says.
void free_recovery(State& s, Channel& ch);
// Gives it back if it says nothing.
void release_recovery(State& s, Channel& ch);

// Is the packet queued for retransmission, or built for it and waiting for memory?
inline bool goes_again(const RecoveryBlock& r, Psn psn) {
  return test_bit(r.resend, recovery_index(psn)) || test_bit(r.held, recovery_index(psn));
}

// Does the block say nothing of this PSN? That must hold for PSNs that are not in flight, because kMaxWindow PSNs later
// the same bits stand for another packet.
inline bool nothing_noted(const State& s, const Channel& ch, Psn psn) {
  const RecoveryBlock& r = s.recovery[ch.recovery];
  const uint32_t at = recovery_index(psn);
  return ch.recovery == 0 || (!test_bit(r.sacked, at) && !test_bit(r.resent, at) && !goes_again(r, psn));
}

// Has the packet arrived?
inline bool arrived(const RecoveryBlock& r, const Channel& ch, Psn psn) {
  return psn.before(ch.oldest_unacked) || test_bit(r.sacked, recovery_index(psn));
}

// How many packets are on their way, as far as is known: neither arrived nor waiting to be sent again.
inline uint32_t on_their_way(const RecoveryBlock& r, uint32_t numbered) {
  const uint32_t others = r.sacked_count + r.resend_count;
  return numbered > others ? numbered - others : 0;
}

// False: it is queued already, or built.
bool queue_resend(RecoveryBlock& r, Psn psn);
// The packet was sent again, or need not be sent again.
void take_from_resends(RecoveryBlock& r, Psn psn);
// The retransmission of the packet is built and waits for memory.
void resend_waits(RecoveryBlock& r, Psn psn);
// The packet was sent again: takes a record of it, if there is one and the peer is selective.
void note_resent(State& s, Channel& ch, Psn psn, Instant now);

// The peer has this packet, beyond a gap. False: that was known.
bool note_arrived(RecoveryBlock& r, Channel& ch, Psn psn);
// Forgets what the block says of the packets [from, to), which are no longer in flight.
void forget_recovered(State& s, Channel& ch, Psn from, Psn to, Instant now);

// Queues what is lost, by what has arrived until now. `end`: the peer has said which packets before it have arrived.
// Returns how many packets that are; `*first` is the lowest PSN of them.
uint32_t judge(State& s, Channel& ch, Psn end, Instant now, Psn* first);
// The same when a pause has passed since RecoveryBlock::judge_at was set.
uint32_t judge_overdue(State& s, Channel& ch, Psn* first);
// All packets from there on that have not arrived are lost: queues them. Returns how many were not queued before.
uint32_t queue_all(State& s, Channel& ch, Psn from);

}  // namespace ub::tp
