// SPDX-License-Identifier: Apache-2.0
//
// Packets of a channel whose frames are held, because their memory answers later (held_frames.h). A packet has its PSN
// since it was built: a retransmission has its old one, and a new packet has the number that follows those in flight
// and the new ones that were built before it.
#pragma once

#include "lib/transport/tp/state.h"

namespace ub::tp {

// A record for a packet of the channel, not in its line yet; there is room.
inline HeldFrame& take_held(State& s, uint32_t channel) {
  HeldFrame& h = s.held.take(s.home_of_channel(channel));
  h.link = s.channels[channel].link;
  return h;
}

// The packet waits behind those that the channel holds.
void append_held(State& s, uint32_t channel, HeldFrame& h, Instant now);
// The first packet left, or need not be sent any more.
void drop_first_held(State& s, Channel& ch, Instant now);
// The channel died.
void give_up_all_held(State& s, Channel& ch);

// The gathers of a packet are done.
void on_gathered(State& s, const HeldFrame& h, Instant now);

}  // namespace ub::tp
