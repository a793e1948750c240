// SPDX-License-Identifier: Apache-2.0
//
// Connects a channel with its congestion control (cc/flow.h): the channel tells its flow what happens to its packets
// and obeys its verdict. Where the channel has several paths, paths.h does that for each of them. The fields that every
// packet reads are in the channel's first cache line: `send_window`, `paced` and `tells_sent`.
#pragma once

#include <span>

#include "lib/transport/cc/feedback.h"
#include "lib/transport/tp/state.h"

namespace ub::tp {

// The algorithm that both ends agreed on, or Swift, which needs no agreement. If there is none, what the wire needs and
// CoreConfig::loss_window allows: a lossless wire needs none, because there a full buffer holds the sender back.
cc::Algorithm algorithm_for(const State& s, wire::CcAlgorithm agreed, bool lossless);
// Starts a new flow and forgets the former one. `agreed_window` and `next_psn` of the channel must be set.
void begin_flow(State& s, Channel& ch, cc::Algorithm algorithm);
// Ends the flow, and those of its paths, because the channel is dead.
void end_flow(State& s, Channel& ch);

// What the flow of a channel, or of one of its paths, is told of its way with each signal.
cc::Path terms_of_flow(const State& s, const Channel& ch, uint32_t in_flight);

constexpr bool has_flow(const Channel& ch) { return ch.flow.algorithm != cc::Algorithm::kNone; }

// A data packet is about to be sent; its frame is complete but for the seal, and gets the flow's ECN code point, or the
// headers of the path that it takes. The caller calls it only for channels whose `tells_sent` is set.
void tell_sent(State& s, uint32_t channel, Instant now, const TxMessage& m, Psn psn, std::span<std::byte> frame,
               bool again);
// The peer reported that it has this packet, beyond a gap.
void tell_arrived(State& s, uint32_t channel, Instant now, Psn psn);
void tell_acknowledged(State& s, uint32_t channel, Instant now, Psn from, Psn to);
// Packets are lost; `first` is the first of them.
void tell_lost(State& s, uint32_t channel, Instant now, Psn first);
void tell_timed_out(State& s, uint32_t channel, Instant now);
// A CNP arrived, with this CETPH.
void on_notification(State& s, uint32_t channel, Instant now, std::span<const std::byte> cetph);
// An acceptable acknowledgement arrived, with a CETPH that says `feedback`.
void tell_fed_back(State& s, uint32_t channel, Instant now, const cc::Feedback& feedback);
// The receiver's half: the ECN code point of a data packet is not 0. `bytes`: of its transport header, payload and
// ICRC. C-AQM and LDCP report it with the next acknowledgement. If DCQCN is agreed on and the packet met congestion, a
// CNP is sent with an acknowledgement, which is due at once, unless the last CNP was sent too short a time ago (6.6).
[[gnu::cold]] void on_ecn(State& s, uint32_t channel, Instant now, Psn psn, uint8_t ecn, uint32_t bytes);
// The same of a packet with a CCI (5.3.5), as a channel over UB's own network header has it. FECN has the code points
// of ECN. What does not belong to the algorithm of the channel says nothing.
[[gnu::cold]] void on_cci(State& s, uint32_t channel, Instant now, Psn psn, uint16_t cci, uint32_t bytes);
// The channel's timer fired, perhaps early: the flow may have a deadline of its own.
void look_at_flow(State& s, uint32_t channel, Instant now);

}  // namespace ub::tp
