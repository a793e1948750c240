// SPDX-License-Identifier: Apache-2.0
//
// The sending half of a channel (UB Base Specification Rev 2.0, 6.4, 6.7): which packet may leave, what is in flight,
// what goes again when nothing is heard. No packet is built here (transmitter.h does), and no message is understood.
#pragma once

#include <algorithm>

#include "lib/transport/tp/held_packets.h"
#include "lib/transport/tp/recovery.h"
#include "lib/transport/tp/retransmission_timeout.h"
#include "lib/transport/tp/state.h"

namespace ub::tp {

// ---- what may leave --------------------------------------------------------------------------------------------

// In flight, or built and waiting for memory.
inline uint32_t numbered(const Channel& ch) { return ch.outstanding() + ch.held_new; }
// May a packet with a new PSN leave?
inline bool window_open(const Channel& ch) { return numbered(ch) < ch.send_window; }
// Of the next new packet.
inline Psn next_new_psn(const Channel& ch) { return ch.next_psn + ch.held_new; }
// Does a packet demand an acknowledgement (A)? One that goes again does, and one that leaves a quarter of the window or
// less for those behind it.
inline bool asks_for_ack(const Channel& ch, bool again) {
  return again || 4 * (numbered(ch) + 1) >= 3 * ch.send_window;
}

// The next PSN that is to be sent again, if any may leave now: the lowest one that is not built yet.
bool next_resend(State& s, Channel& ch, Psn* psn);

// What the channel's next packet is.
enum class Turn : uint8_t {
  kNothing,    // it is not up
  kWaits,      // as many wait for memory as may, or its rate allows none now
  kHeld,       // the first of the packets whose memory was awaited
  kSendAgain,  // that of `psn`
  kContinue,   // the next one of the newest message, if that has bytes and the window allows
  kBegin,      // the first one of another message, if there is one
};
inline Turn next_turn(State& s, Channel& ch, Psn* psn) {
  if (!ch.is_up()) return Turn::kNothing;
  if (ch.held_count != 0) {
    if (ch.paced) return Turn::kWaits;
    if (!first_held_waits(s, ch)) return Turn::kHeld;
    if (!room_to_hold(s, ch)) return Turn::kWaits;
  }
  if (ch.recovery != 0 && next_resend(s, ch, psn)) return Turn::kSendAgain;
  return ch.mid_message ? Turn::kContinue : Turn::kBegin;
}

// ---- messages in flight ----------------------------------------------------------------------------------------

// Appends a message that starts with the next PSN and is the next to be started; nullptr: no room for its descriptor.
TxMessage* begin_message(State& s, Channel& ch, const TxMessage& content = {});
// Is it time to ask whether the peer lives? Says so once; with packets in flight there is no need.
inline bool take_keepalive(Channel& ch) {
  const bool due = ch.keepalive_due;
  ch.keepalive_due = false;
  return due && ch.outstanding() == 0 && ch.held_count == 0;
}
// Appends a message without a transaction, of one packet; false: no room for its descriptor.
bool begin_keepalive(State& s, Channel& ch);
// The first packet after nothing was in flight.
void flight_begins(State& s, uint32_t channel, Instant now);
// A new packet left. `m`: its message, the oldest one with packets that have not left.
inline void packet_sent(State& s, uint32_t channel, TxMessage& m, Instant now) {
  Channel& ch = s.channels[channel];
  bool idle = ch.outstanding() == 0;
  UB_DCHECK(!m.complete && ch.outstanding() < kMaxWindow);
  UB_DCHECK(nothing_noted(s, ch, ch.next_psn));
  if (!ch.timing) {
    ch.timing = true;
    ch.timed_psn = ch.next_psn;
    ch.timed_at = now;
  }
  ++m.packets;
  ++ch.next_psn;
  if (idle) flight_begins(s, channel, now);
}
// It was the last one of its message.
inline void message_sent(Channel& ch, TxMessage& m) {
  m.complete = true;
  if (m.tpmsn == ch.next_tpmsn) ++ch.next_tpmsn;
}
// A packet that was to be sent again left.
void resent(State& s, Channel& ch, Psn psn);

// The message that a PSN in flight belongs to; nullptr: none.
TxMessage* message_at(State& s, Channel& ch, Psn psn);
// The message of which some packets were built and some not; nullptr: none.
inline const TxMessage* half_sent(State& s, Channel& ch) {
  return ch.mid_message ? &ch.in_flight.back(s.messages) : nullptr;
}
// The message that is half sent ends here, with a fake packet.
void stop_half_sent(State& s, uint32_t channel);

// ---- memory that answers later ---------------------------------------------------------------------------------

// The gathers of the packet that leaves next are done. Nothing could be sent again meanwhile, so the peer had nothing to
// acknowledge: that time is no silence.
inline void waited_for_memory(Channel& ch, Instant now) {
  ch.progress_at = ch.progress_at < ch.gather_since ? ch.progress_at + (now - ch.gather_since) : now;
}
// The message of a packet that is held; nullptr: nobody needs that packet any more.
TxMessage* held_message(State& s, Channel& ch, const HeldPacket& h);

// ---- time ------------------------------------------------------------------------------------------------------

// Has it been silent for so long? While the next packet waits for memory of this side, nothing goes again that the peer
// could acknowledge.
inline bool is_silent(const State& s, const Channel& ch, Instant now, Duration limit) {
  return !first_held_waits(s, ch) && now - ch.progress_at >= limit;
}

inline RtoLimits rto_limits(const State& s) { return {s.config.rtt_multiplier, s.config.rto_min, s.config.rto_max}; }
// The oldest packet in flight has the whole time from now on.
inline void restart_rto(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  ch.rto_at = Instant::never();
  if (ch.outstanding() == 0) return;
  ch.rto_at = now + ch.rto;
  s.timers.arm(s.timer_of_channel(channel), ch.rto_at);
}

enum class [[nodiscard]] TimerVerdict : uint8_t{
    kGoesOn,
    kGivenUp,  // nothing came for Channel::give_up_after: it is dead
};
// The timer of an open channel fired, perhaps early: retransmission, keep-alive.
TimerVerdict on_timer(State& s, uint32_t channel, Instant now);
void on_retransmission_timeout(State& s, uint32_t channel, Instant now);

}  // namespace ub::tp
