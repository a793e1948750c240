// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/transmit_state.h"

#include <algorithm>
#include <bit>

#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/recovery.h"

namespace ub::tp {

bool begin_keepalive(State& s, Channel& ch) {
  TxMessage* m = begin_message(s, ch);
  if (m == nullptr) return false;
  m->kind = MessageKind::kFake;
  m->tpmsn = ch.next_tpmsn - 1;  // that of the newest message sent; 0xFFFFFF if there was none
  ch.mid_message = true;
  s.count(Counter::kTpTxKeepalive);
  s.note(Stage::kKeepalive, number_of(s, ch), m->first_psn.value());
  return true;
}

void flight_begins(State& s, uint32_t channel, Instant now) {
  s.channels[channel].progress_at = now;
  restart_rto(s, channel, now);
}

TxMessage* message_at(State& s, Channel& ch, Psn psn) {
  TxMessage* found = nullptr;
  ch.in_flight.find(s.messages, [&](TxMessage& m) {
    if (psn.distance(m.first_psn) >= m.packets) return false;
    found = &m;
    return true;
  });
  return found;
}

bool next_resend(State& s, Channel& ch, Psn* psn) {
  if (ch.recovery == 0 || ch.paced) return false;
  RecoveryBlock& r = s.recovery[ch.recovery];
  if (r.resend_count == 0) return false;
  for (Psn p = ch.oldest_unacked; p != ch.next_psn;) {
    uint32_t at = recovery_index(p);
    const uint32_t step = std::min(64 - at % 64, ch.next_psn.distance(p));
    const uint64_t word = r.resend[at / 64] >> (at % 64);
    const auto first = static_cast<uint32_t>(std::countr_zero(word));
    if (first < step) {
      *psn = p + first;
      return true;
    }
    p += step;
  }
  UB_DCHECK(false);  // `resend_count` is the number of bits set, and all of them are of packets in flight
  return false;
}

void resent(State& s, Channel& ch, Psn psn) {
  UB_DCHECK(ch.recovery != 0 && goes_again(s.recovery[ch.recovery], psn));
  take_from_resends(s.recovery[ch.recovery], psn);
  if (psn == ch.timed_psn) ch.timing = false;  // its acknowledgement would be ambiguous
  ++ch.retransmits;
}

namespace {

// The peer has all packets, and the oldest message waits there to be executed (ROL). Its packet goes again, so that the
// peer says how far it has come.
void send_probe(RecoveryBlock& r, Psn oldest) {
  if (goes_again(r, oldest)) return;
  set_bit(r.resend, recovery_index(oldest));
  ++r.resend_count;
}

}  // namespace

void on_retransmission_timeout(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  s.count(Counter::kTpTimeout);
  if (ch.timeouts < 32) ++ch.timeouts;
  ch.rto = backed_off(ch.rto, rto_limits(s));
  ch.timing = false;
  RecoveryBlock& r = recovery_block(s, ch);
  uint32_t queued = 0;
  for (Psn p = ch.oldest_unacked; p != ch.next_psn; ++p) {
    if (test_bit(r.sacked, recovery_index(p))) continue;
    queue_resend(r, p);
    ++queued;
  }
  const bool probes = queued == 0;
  if (probes) send_probe(r, ch.oldest_unacked);
  note_burst(r, ch.oldest_unacked, ch.next_psn - 1, next_new_psn(ch));
  s.count(Counter::kTpTxRetransmitTimeout, queued);
  s.note(Stage::kTimerRanOut, channel, queued, ch.oldest_unacked.value());
  if (has_flow(ch) && !probes) tell_timed_out(s, channel, now);
  restart_rto(s, channel, now);
  activate(s, channel);
}

TimerVerdict on_timer(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  if (ch.rto_at <= now) {
    if (is_silent(s, ch, now, ch.give_up_after)) return TimerVerdict::kGivenUp;
    on_retransmission_timeout(s, channel, now);
  }
  Instant idle_at = later(ch.heard_at, ch.progress_at) + s.config.keepalive_idle;
  if (idle_at <= now) {
    if (ch.outstanding() == 0) {
      ch.keepalive_due = true;
      activate(s, channel);
    }
    idle_at = now + s.config.keepalive_idle;
  }
  s.timers.arm(s.timer_of_channel(channel), earlier(ch.rto_at, idle_at));
  if (has_flow(ch)) look_at_flow(s, channel, now);
  return TimerVerdict::kGoesOn;
}

void stop_half_sent(State& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  UB_DCHECK(ch.mid_message);
  s.note(Stage::kMessageStopped, channel, ch.in_flight.back(s.messages).tpmsn.value());
  ch.in_flight.back(s.messages).vanished = true;  // its next packet is its last one, a fake
  activate(s, channel);
}

TxMessage* held_message(State& s, Channel& ch, const HeldFrame& h) {
  if (!h.again) return static_cast<TxMessage*>(h.message);
  const bool wanted = ch.recovery != 0 && test_bit(s.recovery[ch.recovery].held, recovery_index(h.psn));
  return wanted ? message_at(s, ch, h.psn) : nullptr;
}

}  // namespace ub::tp
