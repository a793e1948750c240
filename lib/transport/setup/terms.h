// SPDX-License-Identifier: Apache-2.0
//
// The terms of a channel: what each end offers in REQ, REP and CONF (path MTU, window, ICRC, timers), whether an offer
// is one at all, and what both hold to once they have exchanged theirs. The UB Base Specification leaves it to the ends
// (6.3): docs/wire.md.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"

namespace ub::setup {

// Flags of the records of a channel over that link.
uint8_t offered_flags(const CoreState& s, const LinkConfig& link, bool bulk);
// Offers go wanted, wanted, half, half ... 1024, 1024, wanted: the padded REQ that is answered fits the path.
uint16_t mtu_offer(const CoreState& s, const tp::Channel& ch);
// Writes our terms into a record about that channel.
void state_terms(const CoreState& s, const tp::Channel& ch, wire::ControlRecord& record);

bool valid_parameters(const CoreState& s, const wire::ControlRecord& record);
// What both sides know once REQ and REP were exchanged.
void agree(CoreState& s, tp::Channel& ch, const wire::ControlRecord& record);

}  // namespace ub::setup
