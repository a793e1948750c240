// SPDX-License-Identifier: Apache-2.0
//
// Messages that a channel delivers while memory answers later. The channel goes on: a message whose end waits for copies
// is parked behind those that were parked before it, and they end in the order in which they came. A message of which
// packets are placed beyond a gap has its copies counted in a record, too, until they are done or delivery reaches it.
//
// A message whose copies are done at once needs no record: what its packets came to is in Channel::open.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

constexpr uint32_t kParkedOfChannel = 64;

// May another message of this channel have a record?
inline bool room_to_park(const CoreState& s, const tp::Channel& ch) {
  return ch.parked < kParkedOfChannel && has_share(s.parked, ch.parked);
}

// Where the pending copies of a message that delivery has not passed are counted; nullptr: there is no record for it.
tp::OpenMessage* message_ahead(CoreState& s, uint32_t channel, Tpmsn number);

// The open message ends when its copies are done. Its record, the last of those that end; there is room to park.
ParkedMessage& park(CoreState& s, uint32_t channel);
// The first of those that end; there is one.
inline ParkedMessage& first_parked(CoreState& s, const tp::Channel& ch) {
  return s.parked[ch.ending.front<&ParkedMessage::in_line>(s.parked)];
}
// It ended.
void unpark_first(CoreState& s, tp::Channel& ch);

// Delivery has come to this message: those before it that never came vanish, and what was placed of it counts as its own.
void reach_message(CoreState& s, uint32_t channel, Tpmsn number);

// A copy of that message is done. Its record, if it is one of those that end.
ParkedMessage* copy_done(CoreState& s, uint32_t channel, Tpmsn number, bool ok);

// The channel died: receives go back, at once or after the last copy into them.
void drop_messages(CoreState& s, tp::Channel& ch);

}  // namespace ub::ta
