// SPDX-License-Identifier: Apache-2.0
//
// Control records on their way out: about a channel, in answer to one that came, and again when nobody answers.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"

namespace ub::setup {

struct Arrival;

// Lost, and counted, when too many wait.
void send_record(CoreState& s, const OutRecord& out);
// A record about a channel, with our terms in it.
void send_about(CoreState& s, const tp::Channel& ch, wire::RecordType type);
// An answer that needs no channel.
wire::ControlRecord reply_to(const CoreState& s, const wire::ControlRecord& to, wire::RecordType type,
                             wire::RecordReason reason);
void send_reply(CoreState& s, const Arrival& from, const wire::ControlRecord& to, wire::RecordType type,
                wire::RecordReason reason);

// Until a record that was sent `tries` times before goes again.
Duration setup_pause(const CoreState& s, uint32_t tries);
// The timer of the channel is due when the record that waits for an answer goes again.
void arm_setup(CoreState& s, uint32_t channel);

}  // namespace ub::setup
