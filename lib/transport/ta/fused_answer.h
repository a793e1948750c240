// SPDX-License-Identifier: Apache-2.0
//
// Answers of the transaction layer in acknowledgements (UB Base Specification Rev 2.0, 6.2.1, 6.8.2). On a channel of
// ROL, WRITEs and SENDs have no other: tp/fused_ack.h keeps count of what may be acknowledged, and this file knows what
// that means for messages, at the target and at the initiator. On other channels a peer may put a failure into a TPACK
// where it has no room for an answer.
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/tp/acknowledged_packets.h"
#include "lib/transport/wire/transaction_header.h"

namespace ub::ta {

// ---- target ----------------------------------------------------------------------------------------------------

// If this request fails, does only the acknowledgement say so? That is so for WRITEs and SENDs of ROL; other requests
// are answered as on any channel.
bool answered_by_ack(const tp::Channel& ch, wire::TaOpcode request);
// Such a request failed with this status (kSilent: its receiver is not ready for anyone); `last` is its last packet.
// False: another failure was not confirmed yet, and the message has to wait with its end.
[[nodiscard]] bool fail_by_ack(CoreState& s, uint32_t channel, const wire::RtpHeader& last, const wire::Btah& request,
                               uint8_t rspst, uint8_t rspinfo);

// ROL: a message was parked, or a parked one ended: notes which packets may not be acknowledged.
void note_unexecuted(const CoreState& s, tp::Channel& ch);

// ---- initiator -------------------------------------------------------------------------------------------------

// Packets were acknowledged on a channel of ROL: the WRITEs and SENDs that ended with them were executed.
void on_executed(CoreState& s, uint32_t channel, const tp::Acknowledged& acknowledged);
// A TPACK or TPNAK on a channel of ROL, or one with a status on another channel.
void on_fused_ack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp);

}  // namespace ub::ta
