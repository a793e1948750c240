// SPDX-License-Identifier: Apache-2.0
//
// Control records on their way out, and what is asked of every record that comes in.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"

namespace ub::setup {

struct Arrival;

// Lost, and counted, when too many wait.
void send_record(CoreState& s, const OutRecord& out);
// An answer that needs no channel.
wire::ControlRecord reply_to(const CoreState& s, const wire::ControlRecord& to, wire::RecordType type,
                             wire::RecordReason reason);
void send_reply(CoreState& s, const Arrival& from, const wire::ControlRecord& to, wire::RecordType type,
                wire::RecordReason reason);

// May we talk to the sender of this REQ or FIND at all?
bool meant_for_us(const CoreState& s, const wire::ControlRecord& record);
// Until a record that was sent `tries` times before goes again.
Duration setup_pause(const CoreState& s, uint32_t tries);

}  // namespace ub::setup
