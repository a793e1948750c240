// SPDX-License-Identifier: Apache-2.0
//
// Packets of a channel that wait for memory which answers later: as many as hide its latency, in the order in which they
// were built, which is that in which they leave. A new one has the number that follows those in flight and those that
// wait before it; one that goes again has its own.
#pragma once

#include "lib/transport/tp/state.h"

namespace ub::tp {

constexpr uint32_t kHeldOfChannel = 16;

inline uint32_t held_number(const State& s, const HeldPacket& h) { return static_cast<uint32_t>(&h - s.held); }

inline uint32_t held_place(const State& s, const HeldPacket& h) {
  return s.held_frames_of_packets.of(held_number(s, h));
}

// May another packet be built that may have to wait? Without slow memory none has to.
inline bool room_to_hold(const State& s, const Channel& ch) {
  return ch.held_count == 0 || (ch.held_count < kHeldOfChannel && has_share(s.more_held, ch.held_count));
}

// A record for it, on no list; there is room.
inline HeldPacket& take_held(State& s, uint32_t channel) {
  uint32_t number = channel;
  if (s.held[channel].channel != 0) number = s.config.max_channels + s.more_held.alloc();
  UB_DCHECK(number != s.config.max_channels);
  HeldPacket& h = s.held[number];
  h = HeldPacket{};
  h.channel = channel;
  return h;
}
inline void free_held(State& s, HeldPacket& h) {
  const uint32_t number = held_number(s, h);
  h.channel = 0;
  if (number > s.config.max_channels) s.more_held.free(number - s.config.max_channels);
}

// The one that leaves next; there is one.
inline HeldPacket& first_held(const State& s, const Channel& ch) {
  return s.held[ch.held.front<&HeldPacket::in_line>(s.held)];
}
inline bool first_held_waits(const State& s, const Channel& ch) {
  return ch.held_count != 0 && first_held(s, ch).pending != 0;
}

// The last of those that wait.
void append_held(State& s, Channel& ch, HeldPacket& h, Instant now);
// The one that leaves next left, or is given up.
void drop_first_held(State& s, Channel& ch, Instant now);
// All of them are given up: the channel died.
void drop_all_held(State& s, Channel& ch);

// A gather of that packet is done; false: it is not one of this channel's.
bool on_gather_done(State& s, uint32_t channel, uint32_t number, Instant now, bool ok);

}  // namespace ub::tp
