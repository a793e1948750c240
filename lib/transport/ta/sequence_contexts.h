// SPDX-License-Identifier: Apache-2.0
//
// The sequence contexts of a target (ROT, UB Base Specification Rev 2.0, 7.3.3.3). One stands for the ordered requests
// of a send queue of a peer. The initiator numbers them without gaps and sends them by any channels; the target
// executes one of strong order when all before it were executed. One that comes early is held, while its channel goes
// on delivering: delivery never waits for an order.
//
// A peer that asks again for the same send queue gives up the former context.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/ta/parked_messages.h"

namespace ub::ta {

// How many early messages a channel and a context hold at most; what comes beyond is refused and sent again.
constexpr uint32_t kEarlyOfChannel = 32;
static_assert(kEarlyOfContext <= kEarlyOfChannel && kEarlyOfChannel <= kParkedOfChannel / 2);
// How long a message is held at most: longer than a lost packet takes to come again. The one before it may never come,
// because its queue is gone and the record that said so was lost. A queue that lives sends what was refused again.
constexpr Duration kHeldLongest = seconds(1);

inline bool names_context(const wire::Btah& request) { return request.rc_type == wire::kRcTypeSequenceContext; }

// Makes a context for this queue of the peer and returns its SCID; 0: there is no room.
uint32_t open_context(CoreState& s, uint32_t peer, uint32_t rcid);
// The context that this peer may name so; 0: none.
uint32_t context_of(const CoreState& s, uint32_t peer, uint32_t scid);
// Ends the context. What it holds is dropped without an answer, because nobody waits for one.
void close_context(CoreState& s, uint32_t context);
void close_contexts_of(CoreState& s, uint32_t peer);

// May the request be executed now, as far as its order is concerned?
enum class Turn : uint8_t {
  kNow,
  kEarly,
  kNever,  // its number cannot be
};
Turn turn_of(const SequenceContext& context, const wire::Btah& request);

// May the channel hold one more message for this context?
bool room_for_early(const CoreState& s, const tp::Channel& ch, const SequenceContext& context);
// The open message of the channel is held until it is its turn. There must be room.
ParkedMessage& hold_early(CoreState& s, uint32_t channel);
// The message is no longer held: its turn has come, or it will not be executed.
void forget_early(CoreState& s, const ParkedMessage& message);

// A request of the context was executed or failed for good, or one without an order was refused. Returns the held
// message whose turn it is now, or 0.
uint32_t note_executed(CoreState& s, uint32_t context, Tassn tassn);
// The turn of a held message has come: it is parked behind those of its channel that end before it.
void park_held(CoreState& s, uint32_t message);

}  // namespace ub::ta
