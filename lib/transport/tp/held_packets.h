// SPDX-License-Identifier: Apache-2.0
//
// Packets of a channel whose frames are held, because their memory answers later (held_frames.h). A packet has its PSN
// since it was built: a retransmission has its old one, and a new packet has the number that follows those in flight
// and the new ones that were built before it.
#pragma once

#include "lib/transport/tp/state.h"

namespace ub::tp {

// Takes a record for a packet of the channel, which must have room (HeldFrames::has_room()). The record is not in the
// line of the channel yet: append_held() puts it there.
inline HeldFrame& take_held(State& s, uint32_t channel) {
  HeldFrame& h = s.held.take(s.home_of_channel(channel));
  h.link = s.channels[channel].link;
  return h;
}

// Puts the packet behind those that the channel holds.
void append_held(State& s, uint32_t channel, HeldFrame& h, Instant now);
// The first held packet was sent, or need not be sent any more: frees its record.
void drop_first_held(State& s, Channel& ch, Instant now);
// The channel died: frees the records of all packets that it holds.
void give_up_all_held(State& s, Channel& ch);

// The gathers of a packet are done.
void on_gathered(State& s, const HeldFrame& h, Instant now);

}  // namespace ub::tp
