// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/transmit_state.h"

#include <algorithm>
#include <bit>

#include "lib/transport/ta/initiator.h"
#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/tp/congestion_window.h"
#include "lib/transport/tp/retransmission_timeout.h"

namespace ub::tp {

namespace {

constexpr uint32_t kIndexMask = kMaxWindow - 1;
uint32_t index_of(Psn psn) { return psn.value() & kIndexMask; }

RecoveryBlock* recovery_block(CoreState& s, Channel& ch) {
  if (ch.recovery == 0) {
    ch.recovery = s.recovery.alloc();  // one per channel: never exhausted
    s.recovery[ch.recovery] = RecoveryBlock{};
  }
  return &s.recovery[ch.recovery];
}

void release_recovery(CoreState& s, Channel& ch) {
  if (ch.recovery == 0) return;
  UB_DCHECK(s.recovery[ch.recovery].resend_count == 0);
  s.recovery.free(ch.recovery);
  ch.recovery = 0;
}

void restart_rto(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  ch.rto_at = ch.outstanding() == 0 ? Instant::never() : s.now + ch.rto;
  arm_channel_timer(s, channel);
}

RtoLimits rto_limits(const CoreState& s) { return {s.config.rtt_multiplier, s.config.rto_min, s.config.rto_max}; }

void sample_rtt(const CoreState& s, Channel& ch, Duration sample) {
  ch.srtt = smoothed(ch.srtt, sample);
  ch.rto = rto_of(ch.srtt, rto_limits(s));
}

// A message has no unacknowledged packet left.
void message_acked(CoreState& s, Channel& ch, TxMessage& m) {
  UB_DCHECK(m.complete);
  if (m.kind == MessageKind::kReadResponse) ta::finish_read_job(s, m);
  ch.in_flight.pop(s.messages);
}

// All packets before `to` were received. Nothing new: the peer got something and has no room for it yet.
void acknowledge_until(CoreState& s, uint32_t channel, Psn to) {
  Channel& ch = s.channels[channel];
  ch.progress_at = s.now;
  uint32_t packets = to.distance(ch.oldest_unacked);
  UB_DCHECK(packets <= ch.outstanding());
  if (packets == 0) return;
  if (ch.timing && to.after(ch.timed_psn)) {
    ch.timing = false;
    sample_rtt(s, ch, s.now - ch.timed_at);
  }
  if (ch.recovery != 0) {
    RecoveryBlock& r = s.recovery[ch.recovery];
    for (Psn p = ch.oldest_unacked; p != to; ++p) {
      clear_bit(r.sacked, index_of(p));
      if (test_bit(r.resend, index_of(p))) {
        clear_bit(r.resend, index_of(p));
        --r.resend_count;
      }
    }
  }
  ch.oldest_unacked = to;
  while (!ch.in_flight.empty()) {
    TxMessage& m = ch.in_flight.front(s.messages);
    if (!m.complete || m.packets > to.distance(m.first_psn)) {
      if (m.kind == MessageKind::kRequest && to.after(m.first_psn)) ta::on_progress(s, m);
      break;
    }
    if (m.kind == MessageKind::kRequest) ta::on_progress(s, m);
    message_acked(s, ch, m);
  }
  if (!ch.lossless) cc_acked(ch.cc, packets);
  ch.timeouts = 0;
  if (ch.outstanding() == 0) release_recovery(s, ch);
  restart_rto(s, channel);
  activate(s, channel);
}

bool acceptable(CoreState& s, const Channel& ch, Psn psn) {
  // oldest - 1 <= psn < next
  if ((psn + 1).distance(ch.oldest_unacked) <= ch.outstanding()) return true;
  s.count(Counter::kTpRxStaleAck);
  return false;
}

void queue_resend(RecoveryBlock& r, Psn psn) {
  if (test_bit(r.resend, index_of(psn))) return;
  UB_DCHECK(!test_bit(r.sacked, index_of(psn)));  // the peer has it
  set_bit(r.resend, index_of(psn));
  ++r.resend_count;
}

// Decides whether a reported hole goes again now (6.4.2.3.1).
bool lost_for_the_first_time_or_again(const RecoveryBlock& r, Psn hole, Psn highest) {
  if (!r.burst || hole.after(r.high_resent)) return true;
  return !highest.before(r.mark);  // something sent after the last burst has arrived: that burst was lost
}

}  // namespace

TxMessage* begin_message(CoreState& s, Channel& ch, const TxMessage& content) {
  TxMessage* m = ch.in_flight.push(s.messages);
  if (m == nullptr) return nullptr;
  *m = content;
  m->first_psn = ch.next_psn;
  m->tpmsn = ch.next_tpmsn;
  return m;
}

void packet_sent(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  TxMessage& m = ch.in_flight.back(s.messages);
  bool idle = ch.outstanding() == 0;
  UB_DCHECK(!m.complete && ch.outstanding() < kMaxWindow);
  // Nothing is noted of PSNs that are not in flight: their places are used again a window later.
  UB_DCHECK(ch.recovery == 0 || (!test_bit(s.recovery[ch.recovery].sacked, index_of(ch.next_psn)) &&
                                 !test_bit(s.recovery[ch.recovery].resend, index_of(ch.next_psn))));
  if (!ch.timing) {
    ch.timing = true;
    ch.timed_psn = ch.next_psn;
    ch.timed_at = s.now;
  }
  ++m.packets;
  ++ch.next_psn;
  if (idle) {
    ch.progress_at = s.now;
    restart_rto(s, channel);
  }
}

TxMessage* message_at(CoreState& s, Channel& ch, Psn psn) {
  TxMessage* found = nullptr;
  ch.in_flight.find(s.messages, [&](TxMessage& m) {
    if (psn.distance(m.first_psn) >= m.packets) return false;
    found = &m;
    return true;
  });
  return found;
}

bool next_resend(CoreState& s, Channel& ch, Psn* psn) {
  if (ch.recovery == 0) return false;
  RecoveryBlock& r = s.recovery[ch.recovery];
  if (r.resend_count == 0) return false;
  for (Psn p = ch.oldest_unacked; p != ch.next_psn;) {
    uint32_t at = index_of(p);
    uint64_t word = r.resend[at / 64] >> (at % 64);
    if (word != 0) {
      *psn = p + std::countr_zero(word);
      return true;
    }
    uint32_t step = 64 - at % 64;
    uint32_t left = ch.next_psn.distance(p);
    p += std::min(step, left);
  }
  UB_DCHECK(false);  // so many bits are set as are counted, all of them in flight
  return false;
}

void resent(CoreState& s, Channel& ch, Psn psn) {
  RecoveryBlock& r = s.recovery[ch.recovery];
  UB_DCHECK(ch.recovery != 0 && test_bit(r.resend, index_of(psn)) && r.resend_count != 0);
  clear_bit(r.resend, index_of(psn));
  --r.resend_count;
  if (psn == ch.timed_psn) ch.timing = false;  // its acknowledgement would be ambiguous
  ++ch.retransmits;
}

void on_ack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp) {
  s.count(Counter::kTpRxAck);
  Channel& ch = s.channels[channel];
  if (acceptable(s, ch, rtp.psn)) acknowledge_until(s, channel, rtp.psn + 1);
}

void on_nak(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp) {
  s.count(Counter::kTpRxNak);
  Channel& ch = s.channels[channel];
  if (!acceptable(s, ch, rtp.psn - 1) || rtp.psn == ch.next_psn) return;
  acknowledge_until(s, channel, rtp.psn);
  if (!ch.fast) return;
  RecoveryBlock& r = *recovery_block(s, ch);
  if (r.burst && rtp.psn == r.last_first) return;  // one restart per reported PSN
  r.burst = true;
  r.last_first = rtp.psn;
  r.high_resent = ch.next_psn - 1;
  r.mark = ch.next_psn;
  for (Psn p = rtp.psn; p != ch.next_psn; ++p) queue_resend(r, p);
  s.count(Counter::kTpTxRetransmitFast, ch.next_psn.distance(rtp.psn));
  if (!ch.lossless) cc_lost(ch.cc, rtp.psn, ch.next_psn);
  activate(s, channel);
}

void on_sack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp, const wire::SackView& sack) {
  s.count(Counter::kTpRxSack);
  Channel& ch = s.channels[channel];
  if (!acceptable(s, ch, rtp.psn)) return;
  acknowledge_until(s, channel, rtp.psn + 1);
  if (ch.outstanding() == 0) return;
  RecoveryBlock& r = *recovery_block(s, ch);
  uint32_t in_flight = ch.outstanding();
  uint32_t last_bit = std::min(sack.bit_count() - 1, in_flight);  // bit i: PSN base + i, base = oldest - 1
  Psn highest = rtp.psn;
  bool progress = false;
  for (uint32_t bit = 1; bit <= last_bit; ++bit) {
    if (!sack.test(bit)) continue;
    Psn p = rtp.psn + bit;
    highest = p;
    if (test_bit(r.sacked, index_of(p))) continue;
    progress = true;
    set_bit(r.sacked, index_of(p));
    if (test_bit(r.resend, index_of(p))) {
      clear_bit(r.resend, index_of(p));
      --r.resend_count;
    }
  }
  if (progress) ch.timeouts = 0;
  if (!ch.fast) return;
  bool first_hole = true;
  for (Psn p = rtp.psn + 1; p.before(highest); ++p) {
    if (test_bit(r.sacked, index_of(p)) || test_bit(r.resend, index_of(p))) continue;
    if (!lost_for_the_first_time_or_again(r, p, highest)) continue;
    queue_resend(r, p);
    s.count(Counter::kTpTxRetransmitFast);
    if (first_hole) {
      first_hole = false;
      r.last_first = p;
      if (!ch.lossless) cc_lost(ch.cc, p, ch.next_psn);
    }
    if (!r.burst || p.after(r.high_resent)) r.high_resent = p;
    r.burst = true;
  }
  if (!first_hole) {
    r.mark = ch.next_psn;
    activate(s, channel);
  }
}

void on_retransmission_timeout(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  s.count(Counter::kTpTimeout);
  if (ch.timeouts < 32) ++ch.timeouts;
  ch.rto = backed_off(ch.rto, rto_limits(s));
  ch.timing = false;
  RecoveryBlock& r = *recovery_block(s, ch);
  uint32_t queued = 0;
  for (Psn p = ch.oldest_unacked; p != ch.next_psn; ++p) {
    if (test_bit(r.sacked, index_of(p))) continue;
    queue_resend(r, p);
    ++queued;
  }
  r.burst = true;
  r.last_first = ch.oldest_unacked;
  r.high_resent = ch.next_psn - 1;
  r.mark = ch.next_psn;
  s.count(Counter::kTpTxRetransmitTimeout, queued);
  if (!ch.lossless) cc_timeout(ch.cc, ch.next_psn);
  restart_rto(s, channel);
  activate(s, channel);
}

namespace {

// The next packet of the message will be its last: a fake one (transmitter.h).
void stop_newest(CoreState& s, uint32_t channel) {
  s.channels[channel].in_flight.back(s.messages).vanished = true;
  activate(s, channel);
}

bool half_sent(CoreState& s, Channel& ch, MessageKind kind, uint32_t source) {
  if (!ch.mid_message) return false;
  const TxMessage& m = ch.in_flight.back(s.messages);
  return m.kind == kind && m.source == source;
}

}  // namespace

void stop_half_sent(CoreState& s, uint32_t channel, uint32_t queue, uint32_t number) {
  Channel& ch = s.channels[channel];
  if (!half_sent(s, ch, MessageKind::kRequest, queue)) return;
  const TxMessage& m = ch.in_flight.back(s.messages);
  if (m.work_request == number && m.generation == s.queues[queue].generation) stop_newest(s, channel);
}

void stop_half_sent_job(CoreState& s, uint32_t channel, uint32_t job) {
  if (half_sent(s, s.channels[channel], MessageKind::kReadResponse, job)) stop_newest(s, channel);
}

void arm_channel_timer(CoreState& s, uint32_t channel) {
  Channel& ch = s.channels[channel];
  if (ch.rto_at.is_never()) return;
  s.timers.arm(s.timer_of_channel(channel), ch.rto_at);
}

}  // namespace ub::tp
