// SPDX-License-Identifier: Apache-2.0
//
// The life of a channel apart from its handshake: its record and TPN; opening; closing with CLOSE and CLOSED; death,
// which ends everything on it; PING, PONG and RESET when a peer seems to have restarted; the channel's timer.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"

namespace ub::setup {

struct Arrival;

inline bool alive(const tp::Channel& ch) {
  return ch.state != tp::ChannelState::kFree && ch.state != tp::ChannelState::kDead;
}
// Its state has changed.
inline void note_state(CoreState& s, uint32_t channel) {
  forget_routes(s);
  s.note(Stage::kChannelState, channel, static_cast<uint32_t>(s.channels[channel].state));
}
// The channel of a TPN, or 0.
inline uint32_t channel_of_tpn(const CoreState& s, uint32_t tpn) {
  uint32_t index = tpn & ((1u << tp::kTpnIndexBits) - 1);
  if (index == 0 || index > s.channels.high_water()) return 0;
  const tp::Channel& ch = s.channels[index];
  return ch.tpn == tpn && alive(ch) ? index : 0;
}

// ---- begin and end ----
// Makes a record for a channel, with a TPN; the caller begins the handshake. 0: there is no room for another channel.
uint32_t new_channel(CoreState& s, uint32_t peer, uint32_t lane, uint32_t place = 0);
// The handshake of the channel is complete: it may carry data.
void open_channel(CoreState& s, uint32_t channel);
// Ends everything on the channel. Its TPN rests before it is used again.
void kill_channel(CoreState& s, uint32_t channel);
// The same, and the peer is told.
void end_channel(CoreState& s, uint32_t channel);
// Ends the channel as kill_channel() does, because the peer was silent. Other channels to this peer on which it was
// silent, too, end with it.
void kill_silent(CoreState& s, uint32_t channel);
void close_all(CoreState& s);
void close_owner(CoreState& s, Owner owner);

// ---- packets ----
void on_close(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_closed(CoreState& s, const wire::ControlRecord& record);
void on_ping(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_pong(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
void on_reset(CoreState& s, const wire::ControlRecord& record);
// SC_FREE: the peer uses a sequence context no more.
void on_context_free(CoreState& s, const wire::ControlRecord& record);
// A data packet for a TPN that nobody has.
void on_unknown_tpn(CoreState& s, const Arrival& from, uint32_t dst_tpn, uint32_t src_tpn);
// Asks the peer whether it still has the channel. False: it was asked less than 10 ms ago.
bool ping(CoreState& s, tp::Channel& ch);

// ---- time ----
void on_channel_timer(CoreState& s, uint32_t channel);
// A request on the channel timed out. If the channel is about to die of the same silence, it dies now: otherwise
// requests that are posted next would die with it.
void end_if_silent(CoreState& s, uint32_t channel);

}  // namespace ub::setup
