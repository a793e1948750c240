// SPDX-License-Identifier: Apache-2.0
//
// The terms of a channel: what each end offers in REQ, REP and CONF (path MTU, window, ICRC, timers), whether an offer
// is valid, and what both ends agree on after the exchange. The UB Base Specification leaves this open (6.3);
// docs/wire.md describes it.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"

namespace ub::setup {

// The flags in the records of a channel over this link.
uint8_t offered_flags(const CoreState& s, const LinkConfig& link, uint32_t lane);
// Can channels over this link be of CTP? Not yet where memory answers later, and not if CoreConfig::lanes is 1, since
// then one channel carries all.
bool carries_compact(const CoreState& s, const LinkConfig& link);
// Can they be of ROL, too? Only a wire that loses nothing keeps the order of what one packet carries each.
bool keeps_order_compactly(const CoreState& s, const LinkConfig& link);
// Does a channel of this lane over this link have to repeat requests and keep results (ta/repeats.h)?
bool needs_repeats(const LinkConfig& link, uint32_t lane);
// Do we offer that a channel of this lane over this link goes over UB's own network header (wire/cna_packet.h)?
bool offers_cna(const CoreState& s, const LinkConfig& link, uint32_t lane);
// The lane of the channel that a REQ asks for.
uint32_t lane_of(const wire::ControlRecord& request);
// Does the record agree with the channel whether it is one of ROL, or of CTP?
bool same_service(const tp::Channel& ch, const wire::ControlRecord& record);
// The MTU that the next REQ offers. REQs offer the MTU of the link twice, half of it twice and so on down to 1024, then
// start over. A REQ is padded to its MTU, so one that is answered fits the path. REQs for CTP over a lossless wire
// offer that of the link only.
uint16_t mtu_offer(const CoreState& s, const tp::Channel& ch);
// How many REQs that takes.
uint32_t requests_of_round(const CoreState& s, const tp::Channel& ch);
// Writes our terms, or those that are agreed on, into a record about that channel.
void state_terms(const CoreState& s, const tp::Channel& ch, wire::ControlRecord& record);

// Are the terms in this record of the peer, which came over this link, valid, and do we support them?
bool valid_parameters(const CoreState& s, const LinkConfig& link, const wire::ControlRecord& record);
// Takes over the peer's terms into the channel, once its REQ or REP has arrived.
void agree(CoreState& s, tp::Channel& ch, const wire::ControlRecord& record);

}  // namespace ub::setup
