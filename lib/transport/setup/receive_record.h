// SPDX-License-Identifier: Apache-2.0
//
// Control records that came in: whom each is meant for, what it is about, and who takes it from there. They travel as
// unreliable Sends to Jetty 0, which is known to all (UB Base Specification Rev 2.0, table 8-1; wire/control_record.h).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/network_header.h"

namespace ub::setup {

// Where a record came from.
struct Arrival {
  uint32_t link;
  wire::Endpoint local, remote;
};
void on_record(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
// The record is of another version: refuse it by name.
void refuse_version(CoreState& s, const Arrival& from, const wire::ControlRecord& prefix);

// May we talk to the sender of this REQ or FIND at all?
bool meant_for_us(const CoreState& s, const wire::ControlRecord& record);
// The channel that a record is about, if it is about this life of it. 0: there is none.
uint32_t channel_of(const CoreState& s, const wire::ControlRecord& record);

}  // namespace ub::setup
