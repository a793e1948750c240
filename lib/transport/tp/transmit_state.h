// SPDX-License-Identifier: Apache-2.0
//
// The sending half of a channel (UB Base Specification Rev 2.0, 6.4, 6.7): which packet may be sent next, which packets
// are in flight, and which are sent again after a timeout. Packets are built by transmitter.h and ta/packet_sender.h;
// this file does not know what a message means.
#pragma once

#include <algorithm>

#include "lib/transport/tp/held_packets.h"
#include "lib/transport/tp/recovery.h"
#include "lib/transport/tp/retransmission_timeout.h"
#include "lib/transport/tp/state.h"
#include "lib/transport/wire/sack.h"

namespace ub::tp {

// ---- what may leave --------------------------------------------------------------------------------------------

// How many packets have a PSN and are not acknowledged: those in flight, and new ones that are built and wait for
// memory.
inline uint32_t numbered(const Channel& ch) { return ch.outstanding() + ch.held_new; }
// window_open() for a channel of whose packets some were reported missing.
bool window_open_beyond_gap(const State& s, const Channel& ch);
// May a packet with a new PSN leave? The peer's window counts packets from the oldest one in flight on; the window of
// the flow counts those that are on their way.
inline bool window_open(const State& s, const Channel& ch) {
  if (ch.recovery != 0) [[unlikely]]
    return window_open_beyond_gap(s, ch);
  return numbered(ch) < ch.send_window;
}
// The PSN of the next new packet.
inline Psn next_new_psn(const Channel& ch) { return ch.next_psn + ch.held_new; }
constexpr uint32_t kPacketsPerQuestion = 32;
// A flight begins while fewer are in flight: not only at 0, since acknowledgements of the flight before may be on their
// way.
constexpr uint32_t kFewPackets = 4;

// A channel is calm after CoreConfig::questions_until_calm times kPacketsPerQuestion packets of which none went again.
// A packet that goes again takes it some way back, for it may have been late and not lost.
constexpr uint8_t kQuestionsBack = 4;
// Where round trips are longer, a peer that is not asked would send many acknowledgements by themselves, because it
// delays them by kAckDelay, and not with the answer to a later packet.
constexpr Duration kRoundTripOfCalm = microseconds(25);

// A new packet is one of those that always ask.
inline void note_question(const State& s, Channel& ch) {
  if (ch.round_trip.smoothed > kRoundTripOfCalm) {
    ch.calm = 0;
  } else if (ch.calm < s.config.questions_until_calm) {
    ++ch.calm;
  }
}

// Does the packet ask for an acknowledgement (A bit)? A retransmission does, and so does a packet that leaves a quarter
// of the window or less to the packets behind it. If losses are to be noticed soon, so does each 32nd one, by which the
// round trip is measured, and, unless the channel is calm, so do the first packets of a flight. All of a short flight
// are such, which costs as many acknowledgements.
inline bool asks_for_ack(const State& s, Channel& ch, bool again) {
  if (again) return true;
  bool asks = 4 * (numbered(ch) + 1) >= 3 * ch.send_window;
  if (!ch.asks_soon) return asks;
  const Psn psn = next_new_psn(ch);
  if (psn.value() % kPacketsPerQuestion == 0) {
    note_question(s, ch);
    asks = true;
  }
  asks |= numbered(ch) < kFewPackets && ch.calm < s.config.questions_until_calm;
  if (asks) ch.asked = psn;
  return asks;
}

// Is a packet to be sent again, and may it leave now? `*psn` is the lowest one that is not built yet.
bool next_resend(State& s, Channel& ch, Psn* psn);

// Which packet of the channel is next.
enum class Turn : uint8_t {
  kNothing,    // none: the channel is not up
  kWaits,      // none: too many packets wait for memory, or the rate of the flow allows none now
  kHeld,       // the first of the held packets, whose memory has answered
  kSendAgain,  // the retransmission of `psn`
  kContinue,   // the next packet of the newest message, if the window allows
  kBegin,      // the first packet of another message, if there is one and the window allows
};
inline Turn next_turn(State& s, Channel& ch, Psn* psn) {
  if (!ch.is_up()) return Turn::kNothing;
  if (!ch.held.empty()) {
    if (ch.paced) return Turn::kWaits;
    if (!s.held.first_waits(ch.held)) return Turn::kHeld;
    if (!s.held.has_room(ch.held.count)) return Turn::kWaits;
  }
  if (ch.recovery != 0 && next_resend(s, ch, psn)) return Turn::kSendAgain;
  return ch.mid_message ? Turn::kContinue : Turn::kBegin;
}

// ---- messages in flight ----------------------------------------------------------------------------------------

// The number of the next message. `next_tpmsn` counts messages whose packets were all sent; one whose packets wait for
// memory has the next number already.
inline Tpmsn next_message_number(State& s, Channel& ch) {
  if (ch.held_new == 0) return ch.next_tpmsn;
  return ch.in_flight.back(s.messages).tpmsn + 1;
}

// Appends a message to those in flight, with the next PSN and the next message number; nullptr: there is no room for
// its descriptor.
inline TxMessage* begin_message(State& s, Channel& ch, const TxMessage& content = {}) {
  const Tpmsn number = next_message_number(s, ch);
  TxMessage* m = ch.in_flight.push(s.messages);
  if (m == nullptr) return nullptr;
  *m = content;
  m->first_psn = next_new_psn(ch);
  m->tpmsn = number;
  return m;
}
// Is a keep-alive due? Answers true only once. With packets in flight none is needed.
inline bool take_keepalive(Channel& ch) {
  const bool due = ch.keepalive_due;
  ch.keepalive_due = false;
  return due && ch.outstanding() == 0 && ch.held.empty();
}
// Appends a message of one fake packet; nullptr: there is no room for its descriptor.
TxMessage* begin_keepalive(State& s, Channel& ch);
// A packet was sent while nothing was in flight.
void flight_begins(State& s, uint32_t channel, Instant now);
constexpr uint32_t kPacketsPerTiming = 16;

// Is the next packet one whose round trip is measured? Where losses are to be noticed soon, the round trip says when to
// ask, so each packet that asks for an acknowledgement is. Elsewhere it only makes the timeout, so few are.
inline bool times(const Channel& ch) {
  if (ch.timing) return false;
  if (!ch.asks_soon) return ch.next_psn.value() % kPacketsPerTiming == 0;
  return ch.asked == ch.next_psn && ch.outstanding() < wire::kSackMaxBits;
}
// A new packet was sent. `m` is its message: the oldest one with packets that were never sent.
inline void packet_sent(State& s, uint32_t channel, TxMessage& m, Instant now) {
  Channel& ch = s.channels[channel];
  bool idle = ch.outstanding() == 0;
  UB_DCHECK(!m.complete && ch.outstanding() < kMaxWindow);
  UB_DCHECK(nothing_noted(s, ch, ch.next_psn));
  if (times(ch)) {
    ch.timing = true;
    ch.timed_psn = ch.next_psn;
    ch.timed_at = now;
  }
  ++m.packets;
  ++ch.next_psn;
  if (idle) flight_begins(s, channel, now);
}
// The last packet of the message was sent.
inline void message_sent(Channel& ch, TxMessage& m) {
  m.complete = true;
  if (m.tpmsn == ch.next_tpmsn) ++ch.next_tpmsn;
}
// A retransmission was sent.
void resent(State& s, Channel& ch, Psn psn, Instant now);

// The message that a PSN in flight belongs to; nullptr: there is none.
TxMessage* message_at(State& s, Channel& ch, Psn psn);
// The message of which some packets are built and others are not; nullptr: there is none.
inline const TxMessage* half_sent(State& s, Channel& ch) {
  return ch.mid_message ? &ch.in_flight.back(s.messages) : nullptr;
}
// Ends the message that is half sent: its next packet is a fake packet and its last one.
void stop_half_sent(State& s, uint32_t channel);

// ---- memory that answers later ---------------------------------------------------------------------------------

// The gathers of the packet that leaves next are done. While the channel waited for them it could not retransmit, so
// the peer had nothing to acknowledge: this time does not count as silence of the peer.
inline void waited_for_memory(Channel& ch, Instant now) {
  ch.progress_at = ch.progress_at < ch.gather_since ? ch.progress_at + (now - ch.gather_since) : now;
}
// The message of a held packet; nullptr: the packet is no longer needed.
TxMessage* held_message(State& s, Channel& ch, const HeldFrame& h);

// ---- time ------------------------------------------------------------------------------------------------------

// Has the peer been silent for `limit`? Not while the next packet waits for memory of this side: nothing is sent that
// the peer could acknowledge.
inline bool is_silent(const State& s, const Channel& ch, Instant now, Duration limit) {
  return !s.held.first_waits(ch.held) && now - ch.progress_at >= limit;
}

inline RtoLimits rto_limits(const State& s) { return {s.config.rtt_multiplier, s.config.rto_min, s.config.rto_max}; }
// Starts the retransmission timer anew, or stops it if nothing is in flight.
inline void restart_rto(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  ch.rto_at = Instant::never();
  if (ch.outstanding() == 0) return;
  ch.rto_at = now + ch.patience;
  s.timers.arm(s.timer_of_channel(channel), ch.rto_at);
}
// How long the peer may be silent before it is asked.
inline Duration first_patience(const Channel& ch) {
  return ch.asks_soon && ch.round_trip.smoothed.ns != 0 ? std::min(pause_of(ch.round_trip), ch.rto) : ch.rto;
}
// The timed packet has arrived.
inline void measured(const State& s, Channel& ch, Instant now) {
  ch.timing = false;
  add_sample(ch.round_trip, now - ch.timed_at, now);
  ch.rto = rto_of(ch.round_trip, rto_limits(s));
  ch.patience = first_patience(ch);
}
// The peer said that packets have arrived of which this was not known.
inline void heard_news(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  ch.timeouts = 0;
  if (ch.probes != 0) {
    ch.probes = 0;
    ch.patience = first_patience(ch);
  }
  restart_rto(s, channel, now);
}
// Packets are lost, and they go again before a timeout. `first`: the lowest PSN of them; `cause`: how that is known.
void lost_fast(State& s, uint32_t channel, Instant now, uint32_t packets, Psn first, ChannelCount cause);

enum class [[nodiscard]] TimerVerdict : uint8_t{
    kGoesOn,
    kGivenUp,  // the peer was silent for Channel::give_up_after: the channel is dead
};
// The timer of an open channel fired, perhaps early: losses, retransmission, keep-alive.
TimerVerdict on_timer(State& s, uint32_t channel, Instant now);
void on_retransmission_timeout(State& s, uint32_t channel, Instant now);

}  // namespace ub::tp
