// SPDX-License-Identifier: Apache-2.0
//
// The target's side of UM: who gets a datagram, or under which name it is dropped. Nothing is ever answered. The copying
// is in datagram_receiver.h.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

// A record of `s.arriving` with a receive taken for the message; 0: it was dropped, and counted.
uint32_t admit_datagram(CoreState& s, uint32_t link, const wire::Endpoint& source, const wire::TaPacket& packet);
// All copies into its receive are done, or none was made; the record is free then.
void complete_datagram(CoreState& s, uint32_t record, CrStatus status);

}  // namespace ub::ta
