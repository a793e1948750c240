// SPDX-License-Identifier: Apache-2.0
//
// The target's decisions about datagrams (UM): which queue gets a datagram, or under which counter it is dropped.
// Datagrams are never answered. datagram_receiver.h copies their payload.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/network_header.h"
#include "lib/transport/wire/transaction_packet.h"

namespace ub::ta {

// Takes a receive for the datagram. Returns the number of its record in `s.arriving`; 0: it was dropped and counted.
uint32_t admit_datagram(CoreState& s, uint32_t link, const wire::Endpoint& source, const wire::TaPacket& packet);
// No copy into the receive is pending: completes the receive and frees the record.
void complete_datagram(CoreState& s, uint32_t record, CrStatus status);

}  // namespace ub::ta
