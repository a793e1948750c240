// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/held_packets.h"

#include "lib/transport/tp/transmit_state.h"

namespace ub::tp {

void append_held(State& s, uint32_t channel, HeldFrame& h, Instant now) {
  Channel& ch = s.channels[channel];
  if (ch.held.empty()) ch.gather_since = now;
  s.held.append(ch.held, h);
  s.note(Stage::kPacketHeld, channel, h.psn.value());
  if (h.again) return resend_waits(s.recovery[ch.recovery], h.psn);
  ++ch.held_new;
}

void drop_first_held(State& s, Channel& ch, Instant now) {
  UB_DCHECK(!s.held.first_waits(ch.held));
  if (!s.held.first(ch.held).again) --ch.held_new;
  s.held.drop_first(ch.held);
  if (s.held.first_waits(ch.held)) ch.gather_since = now;
}

void give_up_all_held(State& s, Channel& ch) {
  const uint32_t channel = number_of(s, ch);
  s.held.each(ch.held, [&](const HeldFrame& h) { s.note(Stage::kPacketGivenUp, channel, h.psn.value()); });
  s.held.give_up_all(ch.held);
  ch.held_new = 0;
}

void on_gathered(State& s, const HeldFrame& h, Instant now) {
  const uint32_t channel = s.held_homes.index_of(h.home);
  s.note(Stage::kPacketReady, channel, h.psn.value());
  Channel& ch = s.channels[channel];
  if (&s.held.first(ch.held) != &h) return;
  waited_for_memory(ch, now);
  activate(s, channel);
}

}  // namespace ub::tp
