// SPDX-License-Identifier: Apache-2.0
//
// The receiver of Go-Back-N (UB Base Specification Rev 2.0, 6.4.1): a packet ahead of a gap is discarded, and a TPNAK
// names the packet that is missing. One leaves for each gap, and no other one before a TPACK has left, since each
// TPNAK makes the sender repeat all that it has in flight. The sender's half is in acknowledged_packets.cc.
//
// Without fast retransmission nothing is reported, and the sender goes back after a timeout.
#pragma once

#include "lib/transport/tp/fused_ack.h"
#include "lib/transport/tp/state.h"

namespace ub::tp {

// A packet was discarded because the one at `expected` is missing.
void note_gap(State& s, uint32_t channel, Instant now);
// Makes the acknowledgement that is to be sent a TPNAK, if one is owed and the gap is still there. While a channel of
// ROL says how a message failed, it says nothing else. True: it is one.
bool report_gap(const Channel& ch, FusedAck* ack);
// It was sent. `gap`: it was a TPNAK.
void gap_report_sent(Channel& ch, bool gap);

}  // namespace ub::tp
