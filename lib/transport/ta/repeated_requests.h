// SPDX-License-Identifier: Apache-2.0
//
// The initiator's side of a channel of CTP whose wire may lose packets: which requests it carries, and when one that is
// not answered is sent again (UB Base Specification Rev 2.0, 7.3.1.1; docs/compact-design.md). The channel has one list
// of what is unanswered, and one time at which somebody looks at it. The first repeat of a request comes after the
// timeout that measured round trips give (tp/retransmission_timeout.h), each further one after twice the time, up to
// CoreConfig::rto_max. If many are lost at once, the wire takes less than is sent: half as many may be unanswered then,
// and repeated together; each answer allows one more (CoreConfig::loss_window). A request ends with kAckTimeout when
// its own deadline passes, or with the last repeat.
#pragma once

#include <algorithm>

#include "lib/transport/core_state.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

constexpr uint32_t kMostRepeats = 32;  // of a segment

// How many segments of such a channel may be unanswered, if its wire takes them.
inline uint32_t most_repeatable(const tp::Channel& ch) { return std::min(ch.agreed_window / 2, kRepeatable); }

// ---- the channel's record --------------------------------------------------------------------------------------
// Gives the channel its record, if it has none. False: there is none left.
bool take_repeats(CoreState& s, tp::Channel& ch);
void free_repeats(CoreState& s, tp::Channel& ch);

// ---- which requests it carries ---------------------------------------------------------------------------------
// Has the queue a place on this record, or can it get one?
bool has_place(const Repeats& r, const SendQueue& q);
// May the compact channel to this peer, whose wire loses packets, carry the next request of the queue? If not, RTP
// does: a request that takes a receive, because receives are taken in the order of posting and so each would have to
// wait for the answer to the one before; a request of a queue for which the target has no record, or one whose TASSNs
// it can no longer compare, because the queue has used too many elsewhere; and one that is too far ahead of an older
// one, which is sent elsewhere.
bool may_be_repeated(const CoreState& s, const SendQueue& q, const Wqe& wqe, uint32_t peer);
// Will the target still have the results of all unanswered requests of the queue when it has this one?
bool target_remembers(const SendQueue& q, Tassn tassn);
// The next request of the queue is admitted to the channel, after may_be_repeated() said yes: the queue has a place
// there.
void hold_place(CoreState& s, const tp::Channel& ch, const SendQueue& q);
// The TASSNs of the queue have come round to 0.
void note_wrap(CoreState& s, uint32_t rcid);
// The RCID gets a new owner some time.
void close_repeat_queues(CoreState& s, uint32_t rcid);

// ---- sending ---------------------------------------------------------------------------------------------------
// A segment has left, and not as a repeat.
void note_sent(CoreState& s, uint32_t channel, const tp::TxMessage& message);
// The next segment that is to be sent again; nullptr: none.
SentSegment* next_repeat(CoreState& s, const tp::Channel& ch);
// The message of a segment that next_repeat() gave.
tp::TxMessage message_of(const CoreState& s, const SentSegment& segment);
// It has left again.
void note_repeated(CoreState& s, uint32_t channel, SentSegment& segment);

// ---- answers and time ------------------------------------------------------------------------------------------
// An answer came: the target knows the request, and the round trip may be measured by it.
void note_answered(CoreState& s, uint32_t channel, const wire::Atah& answer);
// The channel's timer. Segments that are due will be sent again, requests that were sent often enough end. False: the
// peer was silent for so long that the channel has ended with them.
bool look_for_repeats(CoreState& s, uint32_t channel);
// When the timer has to fire for that.
inline Instant next_look(const CoreState& s, const tp::Channel& ch) {
  return ch.repeats == 0 ? Instant::never() : s.repeats[ch.repeats].look_at;
}

}  // namespace ub::ta
