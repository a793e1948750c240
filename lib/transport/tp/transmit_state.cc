// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/transmit_state.h"

#include <algorithm>
#include <bit>

#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/owed_ack.h"
#include "lib/transport/tp/recovery.h"

namespace ub::tp {

TxMessage* begin_keepalive(State& s, Channel& ch) {
  TxMessage* m = begin_message(s, ch);
  if (m == nullptr) return nullptr;
  m->kind = MessageKind::kFake;
  m->tpmsn = ch.next_tpmsn - 1;  // that of the newest message sent; 0xFFFFFF if there was none
  ch.mid_message = true;
  s.count(Counter::kTpTxKeepalive);
  s.note(Stage::kKeepalive, number_of(s, ch), m->first_psn.value());
  return m;
}

void flight_begins(State& s, uint32_t channel, Instant now) {
  s.channels[channel].progress_at = now;
  restart_rto(s, channel, now);
}

bool window_open_beyond_gap(const State& s, const Channel& ch) {
  return numbered(ch) < ch.agreed_window && on_their_way(s.recovery[ch.recovery], numbered(ch)) < ch.send_window;
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

namespace {

// The newest packet in flight that has not arrived, or the oldest one.
Psn newest_missing(const RecoveryBlock& r, const Channel& ch) {
  Psn newest = ch.next_psn - 1;
  while (newest != ch.oldest_unacked && test_bit(r.sacked, recovery_index(newest))) newest -= 1;
  return newest;
}

// Does a packet of a probe wait to leave? It need not wait for the window of the flow: packets of which nothing was
// heard may shut that, and until the timeout nothing will be heard of them without a probe.
// After a timeout all packets wait to go again, and none shuts the window.
bool probe_waits(const RecoveryBlock& r, const Channel& ch, Psn* psn) {
  if (ch.probes == 0 || ch.timeouts != 0) return false;
  *psn = ch.oldest_unacked;
  if (!test_bit(r.resend, recovery_index(*psn))) *psn = newest_missing(r, ch);
  return test_bit(r.resend, recovery_index(*psn));
}

}  // namespace

bool next_resend(State& s, Channel& ch, Psn* psn) {
  if (ch.recovery == 0 || ch.paced) return false;
  const RecoveryBlock& r = s.recovery[ch.recovery];
  if (r.resend_count == 0) return false;
  const uint32_t under_way = on_their_way(r, numbered(ch));
  if (under_way != 0 && under_way >= ch.send_window) return probe_waits(r, ch, psn);
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

void resent(State& s, Channel& ch, Psn psn, Instant now) {
  UB_DCHECK(ch.recovery != 0);
  note_resent(s, ch, psn, now);
  if (psn == ch.timed_psn) ch.timing = false;  // its acknowledgement would be ambiguous
  ch.calm = static_cast<uint8_t>(ch.calm - std::min(ch.calm, kQuestionsBack));
  ++ch.retransmits;
}

void lost_fast(State& s, uint32_t channel, Instant now, uint32_t packets, Psn first, ChannelCount cause) {
  Channel& ch = s.channels[channel];
  s.count(Counter::kTpTxRetransmitFast, packets);
  s.count(channel, cause, packets);
  if (has_flow(ch)) tell_lost(s, channel, now, first);
  activate(s, channel);
}

namespace {

// The packet goes again, whether or not the peer has it, and asks for an acknowledgement. 0: it would anyway; else 1.
uint32_t ask_with(RecoveryBlock& r, Psn psn) {
  if (goes_again(r, psn)) return 0;
  set_bit(r.resend, recovery_index(psn));
  ++r.resend_count;
  return 1;
}

// The oldest packet in flight goes again, for which the peer has room, and the newest one that has not arrived, whose
// acknowledgement tells of all others.
void probe(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  RecoveryBlock& r = recovery_block(s, ch);
  uint32_t queued = ask_with(r, ch.oldest_unacked);
  const Psn newest = newest_missing(r, ch);
  queued += ask_with(r, newest);
  s.count(channel, ChannelCount::kAgainProbe, queued);
  ++ch.probes;
  ch.patience = std::min(ch.patience * 2, ch.rto);
  s.count(Counter::kTpTxProbe);
  s.note(Stage::kProbe, channel, ch.oldest_unacked.value(), newest.value());
  restart_rto(s, channel, now);
  activate(s, channel);
}

// Did the newest packet leave its acknowledgement to the peer's leisure? Then that has more time, once.
bool may_be_delayed(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  if (ch.probes != 0 || ch.asked == ch.next_psn - 1 || now - ch.progress_at >= ch.patience + kAckDelay) return false;
  ch.rto_at = ch.progress_at + ch.patience + kAckDelay;
  s.timers.arm(s.timer_of_channel(channel), ch.rto_at);
  return true;
}

}  // namespace

void on_retransmission_timeout(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  s.count(channel, ChannelCount::kTimeout);
  if (ch.timeouts < 32) ++ch.timeouts;
  ch.rto = ch.patience = backed_off(ch.rto, rto_limits(s));
  ch.timing = false;
  uint32_t queued = queue_all(s, ch, ch.oldest_unacked);
  RecoveryBlock& r = recovery_block(s, ch);
  r.nak = ch.oldest_unacked;  // a TPNAK of it is no news
  r.nak_seen = true;
  // The peer has all packets, and the oldest message waits there to be executed (ROL). Its packet goes again, so that
  // the peer says how far it has come.
  const bool has_all = r.sacked_count == ch.outstanding();
  if (has_all) queued = ask_with(r, ch.oldest_unacked);
  s.count(channel, ChannelCount::kAgainTimeout, queued);
  s.note(Stage::kTimerRanOut, channel, r.resend_count + r.held_count, ch.oldest_unacked.value());
  if (has_flow(ch) && !has_all) tell_timed_out(s, channel, now);
  restart_rto(s, channel, now);
  activate(s, channel);
}

namespace {

// Packets whose successors arrived a pause ago are lost.
void on_judgement(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  if (ch.recovery == 0 || now < s.recovery[ch.recovery].judge_at) return;
  Psn first;
  const uint32_t lost = judge_overdue(s, ch, &first);
  if (lost != 0) lost_fast(s, channel, now, lost, first, ChannelCount::kAgainTime);
  release_recovery(s, ch);
}

TimerVerdict on_silence(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  if (is_silent(s, ch, now, ch.give_up_after)) return TimerVerdict::kGivenUp;
  if (!ch.asks_soon || ch.patience >= ch.rto || s.held.first_waits(ch.held)) {
    on_retransmission_timeout(s, channel, now);
  } else if (!may_be_delayed(s, channel, now)) {
    probe(s, channel, now);
  }
  return TimerVerdict::kGoesOn;
}

}  // namespace

TimerVerdict on_timer(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  on_judgement(s, channel, now);
  if (ch.rto_at <= now && on_silence(s, channel, now) == TimerVerdict::kGivenUp) return TimerVerdict::kGivenUp;
  Instant idle_at = later(ch.heard_at, ch.progress_at) + s.config.keepalive_idle;
  if (idle_at <= now) {
    if (ch.outstanding() == 0) {
      ch.keepalive_due = true;
      activate(s, channel);
    }
    idle_at = now + s.config.keepalive_idle;
  }
  Instant next = earlier(ch.rto_at, idle_at);
  if (ch.recovery != 0) next = earlier(next, s.recovery[ch.recovery].judge_at);
  s.timers.arm(s.timer_of_channel(channel), next);
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
