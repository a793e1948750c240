// SPDX-License-Identifier: Apache-2.0
//
// Receives control records and passes each on to the function that handles its type. They travel as unreliable Sends to
// Jetty 0, a known Jetty (UB Base Specification Rev 2.0, table 8-1; wire/control_record.h).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/control_record.h"
#include "lib/transport/wire/network_header.h"

namespace ub::setup {

// Where a record came from: the link and the addresses of both ends.
struct Arrival {
  uint32_t link;
  wire::Endpoint local, remote;
};
void on_record(CoreState& s, const Arrival& from, const wire::ControlRecord& record);
// The record is of another version, so only its first fields (`prefix`) are known. A REQ gets a REJ, and a REJ is
// obeyed.
void refuse_version(CoreState& s, const Arrival& from, const wire::ControlRecord& prefix);

// Is this REQ or FIND addressed to this instance, and from our partition (UPI)?
bool meant_for_us(const CoreState& s, const wire::ControlRecord& record);
// The channel that a record is about; 0: there is none, or the record belongs to another attempt.
uint32_t channel_of(const CoreState& s, const wire::ControlRecord& record);

}  // namespace ub::setup
