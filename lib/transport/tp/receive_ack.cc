// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/receive_ack.h"

#include <algorithm>

namespace ub::tp {

void forget_recovered(State& s, Channel& ch, Psn from, Psn to) {
  RecoveryBlock& r = s.recovery[ch.recovery];
  for (Psn p = from; p != to; ++p) {
    clear_bit(r.sacked, recovery_index(p));
    take_from_resends(r, p);
  }
  // Forget the mark when it is passed: half the number space later it would seem to lie ahead.
  if (!to.before(r.mark)) r.burst = false;
  if (ch.outstanding() == 0) release_recovery(s, ch);
}

namespace {

Acknowledged nothing_new(const Channel& ch) { return {ch.oldest_unacked, ch.oldest_unacked}; }

// Is a reported hole to be sent again now (6.4.2.3.1)? `highest`: the highest PSN that the peer has.
bool lost_for_the_first_time_or_again(const RecoveryBlock& r, Psn hole, Psn highest) {
  if (!r.burst || hole.after(r.high_resent)) return true;
  return !highest.before(r.mark);  // something sent after the last burst has arrived: that burst was lost
}

// Records which packets the peer has beyond the first gap; returns the highest of their PSNs.
Psn note_received(State& s, uint32_t channel, Instant now, Psn base, const wire::SackView& sack) {
  Channel& ch = s.channels[channel];
  RecoveryBlock& r = recovery_block(s, ch);
  const uint32_t last_bit = std::min(sack.bit_count() - 1, ch.outstanding());  // bit i: PSN base + i, base = oldest - 1
  Psn highest = base;
  bool progress = false;
  for (uint32_t bit = 1; bit <= last_bit; ++bit) {
    if (!sack.test(bit)) continue;
    Psn p = base + bit;
    highest = p;
    if (test_bit(r.sacked, recovery_index(p))) continue;
    progress = true;
    set_bit(r.sacked, recovery_index(p));
    take_from_resends(r, p);
    if (ch.flow.send_times != 0) tell_arrived(s, channel, now, p);
  }
  if (progress) ch.timeouts = 0;
  return highest;
}

// Queues for retransmission the packets that are missing below `highest` and were not queued for an earlier report.
// Returns how many.
uint32_t queue_holes(State& s, uint32_t channel, Instant now, Psn first, Psn highest) {
  Channel& ch = s.channels[channel];
  RecoveryBlock& r = recovery_block(s, ch);
  uint32_t lost = 0;
  for (Psn p = first; p.before(highest); ++p) {
    if (test_bit(r.sacked, recovery_index(p)) || goes_again(r, p)) continue;
    if (!lost_for_the_first_time_or_again(r, p, highest)) continue;
    queue_resend(r, p);
    if (lost++ == 0) {
      r.last_first = p;
      if (has_flow(ch)) tell_lost(s, channel, now, p);
    }
    if (!r.burst || p.after(r.high_resent)) r.high_resent = p;
    r.burst = true;
  }
  if (lost != 0) r.mark = next_new_psn(ch);
  if (lost != 0) s.note(Stage::kPacketsLost, channel, lost, r.last_first.value());
  return lost;
}

}  // namespace

Acknowledged on_nak(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp) {
  s.count(Counter::kTpRxNak);
  Channel& ch = s.channels[channel];
  if (!gap_acceptable(s, ch, rtp.psn)) return nothing_new(ch);
  Acknowledged result = acknowledge_until(s, channel, now, rtp.psn);
  if (!ch.fast) return result;
  RecoveryBlock& r = recovery_block(s, ch);
  if (r.burst && rtp.psn == r.last_first) return result;  // go back only once for each reported PSN
  note_burst(r, rtp.psn, ch.next_psn - 1, next_new_psn(ch));
  for (Psn p = rtp.psn; p != ch.next_psn; ++p) queue_resend(r, p);
  result.lost = ch.next_psn.distance(rtp.psn);
  s.note(Stage::kPacketsLost, channel, result.lost, rtp.psn.value());
  s.count(Counter::kTpTxRetransmitFast, result.lost);
  if (has_flow(ch)) tell_lost(s, channel, now, rtp.psn);
  activate(s, channel);
  return result;
}

Acknowledged on_sack(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp, const wire::SackView& sack) {
  s.count(Counter::kTpRxSack);
  Channel& ch = s.channels[channel];
  if (!acceptable(s, ch, rtp.psn)) return nothing_new(ch);
  Acknowledged result = acknowledge_until(s, channel, now, rtp.psn + 1);
  if (ch.outstanding() == 0) return result;
  const Psn highest = note_received(s, channel, now, rtp.psn, sack);
  if (!ch.fast) return result;
  result.lost = queue_holes(s, channel, now, rtp.psn + 1, highest);
  if (result.lost == 0) return result;
  s.count(Counter::kTpTxRetransmitFast, result.lost);
  activate(s, channel);
  return result;
}

}  // namespace ub::tp
