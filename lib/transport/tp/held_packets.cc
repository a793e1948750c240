// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/held_packets.h"

#include "lib/transport/tp/transmit_state.h"

namespace ub::tp {

void append_held(State& s, Channel& ch, HeldPacket& h, Instant now) {
  if (ch.held_count == 0) ch.gather_since = now;
  ch.held.push_back<&HeldPacket::in_line>(s.held, held_number(s, h));
  ++ch.held_count;
  if (h.given_up) return;
  s.note(Stage::kPacketHeld, h.channel, h.psn.value());
  if (h.again) return resend_waits(s.recovery[ch.recovery], h.psn);
  ++ch.held_new;
}

void drop_first_held(State& s, Channel& ch, Instant now) {
  HeldPacket& h = first_held(s, ch);
  UB_DCHECK(ch.held_count != 0 && h.pending == 0);
  ch.held.pop_front<&HeldPacket::in_line>(s.held);
  --ch.held_count;
  if (!h.given_up && !h.again) --ch.held_new;
  free_held(s, h);
  if (first_held_waits(s, ch)) ch.gather_since = now;
}

void drop_all_held(State& s, Channel& ch) {
  while (ch.held_count != 0) {
    HeldPacket& h = s.held[ch.held.pop_front<&HeldPacket::in_line>(s.held)];
    --ch.held_count;
    if (!h.given_up) s.orphan(held_place(s, h));
    s.note(Stage::kPacketGivenUp, h.channel, h.psn.value());
    free_held(s, h);
  }
  ch.held_new = 0;
}

bool on_gather_done(State& s, uint32_t channel, uint32_t number, Instant now, bool ok) {
  if (!s.config.slow_memory || number == 0 || number > s.held_packets()) return false;
  HeldPacket& h = s.held[number];
  if (h.channel != channel || h.pending == 0) return false;
  h.failed |= !ok;
  if (--h.pending != 0) return true;
  s.note(Stage::kPacketReady, channel, h.psn.value());
  Channel& ch = s.channels[channel];
  if (&first_held(s, ch) != &h) return true;
  waited_for_memory(ch, now);
  activate(s, channel);
  return true;
}

}  // namespace ub::tp
