// SPDX-License-Identifier: Apache-2.0
//
// How a channel tells its flow what happens to its packets, and heeds what that says (cc/flow.h). What every packet looks
// at is in the channel's first line: `send_window`, `paced`, `tells_sent`.
#pragma once

#include <span>

#include "lib/transport/cc/feedback.h"
#include "lib/transport/tp/state.h"

namespace ub::tp {

// What both ends agreed on, else what a wire needs: nothing if it is lossless, for there a full buffer holds the sender back.
cc::Algorithm algorithm_for(const State& s, wire::CcAlgorithm agreed, bool lossless);
// Forgets the flow that there was. `agreed_window` and `next_psn` are set.
void begin_flow(State& s, Channel& ch, cc::Algorithm algorithm);
// It is dead.
inline void end_flow(State& s, Channel& ch) { cc::end(ch.flow, s.send_times); }

constexpr bool has_flow(const Channel& ch) { return ch.flow.algorithm != cc::Algorithm::kNone; }

// A data packet leaves that is not sealed yet; it gets the flow's code point. For channels whose `tells_sent` is set.
void tell_sent(State& s, uint32_t channel, Instant now, Psn psn, std::span<std::byte> frame, bool again);
// The peer has it, behind a gap.
void tell_arrived(State& s, uint32_t channel, Instant now, Psn psn);
void tell_acknowledged(State& s, uint32_t channel, Instant now, Psn from, Psn to);
// This one is the first of those missing.
void tell_lost(State& s, uint32_t channel, Instant now, Psn first);
void tell_timed_out(State& s, uint32_t channel, Instant now);
// A CNP came: its CETPH.
void on_notification(State& s, uint32_t channel, Instant now, std::span<const std::byte> cetph);
// The CETPH of an acknowledgement that fits what is in flight.
void tell_fed_back(State& s, uint32_t channel, Instant now, const cc::Feedback& feedback);
// The receiver's half: a data packet of the peer met congestion, says its code point. Where the peer's flow wants to know,
// it is told by a CNP, with the acknowledgement that leaves next, at once; so often and no more (6.6).
[[gnu::cold]] void on_mark(State& s, uint32_t channel, Instant now, uint8_t ecn);
// The channel's timer fired, perhaps early.
void look_at_flow(State& s, uint32_t channel, Instant now);

}  // namespace ub::tp
