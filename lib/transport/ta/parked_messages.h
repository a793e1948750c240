// SPDX-License-Identifier: Apache-2.0
//
// Messages with copies that memory answers later, while the channel goes on delivering. A message whose packets are all
// delivered is parked in a record (Channel::ending) until its copies are done. Parked messages end in the order in
// which they arrived. If packets of a message were placed beyond a gap, the message has a record, too (Channel::ahead),
// until its copies are done or delivery reaches it.
//
// A message whose copies are done at once needs no record: its progress is in Channel::open.
#pragma once

#include "lib/transport/core_state.h"

namespace ub::ta {

constexpr uint32_t kParkedOfChannel = 160;

// May another message of this channel have a record?
inline bool room_to_park(const CoreState& s, const tp::Channel& ch) {
  return ch.parked < kParkedOfChannel && has_share(s.parked, ch.parked);
}

// Does a message of this number wait for its copies? Numbers come again after 2^24 messages, and answers, which nothing
// parks, may be so many.
bool has_parked(const CoreState& s, const tp::Channel& ch, Tpmsn number);
inline bool is_parked(const CoreState& s, const tp::Channel& ch, Tpmsn number) {
  return ch.parked != 0 && has_parked(s, ch, number);
}

// The record that counts the copies of a message which is not delivered yet. If there is none, one is made. nullptr:
// there is no room for a record, or a parked message has the number.
tp::OpenMessage* message_ahead(CoreState& s, uint32_t channel, Tpmsn number);

// Is a segment parked of which this last packet of a WRITE looks like the next one? The two may be of one WRITE, whose
// final word has to become visible last, so the packet is placed when the other segment has ended.
bool follows_parked(const CoreState& s, const tp::Channel& ch, const wire::TaPacket& last);

// The number of a record.
inline uint32_t record_of(const CoreState& s, const ParkedMessage& m) {
  return static_cast<uint32_t>(&m - &s.parked[0]);
}

// Parks the open message at the end of a list of its channel. There must be room (room_to_park()).
ParkedMessage& park_on(CoreState& s, uint32_t channel, IndexList& list);
inline ParkedMessage& park(CoreState& s, uint32_t channel) { return park_on(s, channel, s.channels[channel].ending); }
// The oldest record of Channel::ending, which must not be empty.
inline ParkedMessage& first_parked(CoreState& s, const tp::Channel& ch) {
  return s.parked[ch.ending.front<&ParkedMessage::in_line>(s.parked)];
}
// The message of that record has ended: frees the record.
void unpark_first(CoreState& s, tp::Channel& ch);

// Delivery has reached this message. Records of messages before it vanish; its own record, if it has one, becomes the
// open message.
void reach_message(CoreState& s, uint32_t channel, Tpmsn number);

// A copy of this message is done. Returns its record if that is on Channel::ending, else nullptr.
ParkedMessage* copy_done(CoreState& s, uint32_t channel, Tpmsn number, bool ok);

// The context of a message on Channel::early has ended: the message is dropped.
void drop_early(CoreState& s, uint32_t message);

// The channel died: its messages are dropped, and their receives go back to their JFRs, at once or after the last
// pending copy into them.
void drop_messages(CoreState& s, tp::Channel& ch);

}  // namespace ub::ta
