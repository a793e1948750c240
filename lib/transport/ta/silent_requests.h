// SPDX-License-Identifier: Apache-2.0
//
// Requests that want no answer (No_TAACK, which ROL by CTP has; UB Base Specification Rev 2.0, 7.2.1,
// docs/compact-design.md): WRITEs of one packet without a completion, if CoreConfig::compact_answers is off. Until they
// end they are requests like all others, with a deadline and a place in the window. The target executes in the order of
// arrival and answers failures in any case. So an answer to a later request of the queue says that the silent ones
// before it were executed. If no such request follows soon, the initiator asks: an empty WRITE with the number of the
// last silent one, which wants an answer.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

constexpr uint32_t kMostSilent = 15;             // of a queue, one behind the other; the next request is answered
constexpr Duration kAskAfter = milliseconds(1);  // only the ring of their queue waits; no deadline is before 80 ms

// Are there such requests on this channel?
inline bool has_silent(const CoreState& s, const tp::Channel& ch) {
  return !s.config.compact_answers && is_ordered(ch.lane);
}

// ---- sending, on channels that has_silent() names ----------------------------------------------------------------
// The packet of this request is built: does it want no answer? Only the newest request of its queue may be silent.
// Requests can leave in another order than they were posted in, and then the answer to a later one would say nothing
// about an earlier one that left behind it. Answers are also wanted while the ring or the window fills up.
bool is_silent(const CoreState& s, const tp::Channel& ch, const tp::TxMessage& message);
// The packet has left.
void note_left(CoreState& s, const tp::TxMessage& message, bool silent);

// ---- answers -----------------------------------------------------------------------------------------------------
// An answer came: the silent requests before its own one end with success.
void end_silent_before(CoreState& s, uint32_t channel, const wire::Atah& answer);

// ---- questions ---------------------------------------------------------------------------------------------------
// The timer of a queue with SendQueue::silent requests: asks about them. The question waits in Channel::answers until
// it leaves.
void ask_for_silent(CoreState& s, uint32_t queue);
// What a question says.
wire::TaPacket question(const CoreState& s, const tp::TxMessage& message);

}  // namespace ub::ta
