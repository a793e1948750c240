// SPDX-License-Identifier: Apache-2.0
//
// Acknowledgements that are answers (UB Base Specification Rev 2.0, 6.8.2): on a channel of ROL a TPACK that covers the
// last packet of a WRITE or SEND says that it was executed. So an acknowledgement stops short of the last packet of the
// oldest message that has not executed; the bits of a TPSACK say what was received beyond.
//
// Acknowledgements are neither repeated nor kept, and success is cumulative. A failure that was said once and lost
// would become a success. So the channel freezes: every acknowledgement has the last PSN, the number and the status of
// the failed message until a fake packet with the same three confirms them. That packet takes no PSN of its own, so
// that it can leave at once, whatever is in flight or half sent. If it is lost, the next acknowledgement asks for it
// again. So that reports and confirmations do not multiply on a wire that doubles packets, neither side answers a copy
// with more than the other needs: a confirmation of what was confirmed before is not acknowledged, and one that leaves
// takes no acknowledgement along that nobody waits for.
#pragma once

#include "lib/transport/tp/owed_ack.h"
#include "lib/transport/tp/state.h"

namespace ub::tp {

// ---- receiving -------------------------------------------------------------------------------------------------

// A message failed. False: the channel is frozen for an earlier one, and this one has to wait.
[[nodiscard]] bool freeze(State& s, uint32_t channel, Instant now, const MessageStatus& failed);
// A fake packet arrived under a PSN that was accepted before. Does it confirm the failure that the channel is frozen
// for? Then it is frozen no more.
bool thaw(Channel& ch, const wire::RtpHeader& rtp);
// Is this packet, which was accepted before, a confirmation?
inline bool is_confirmation(const Channel& ch, const wire::RtpHeader& rtp) {
  return ch.rol && rtp.fake && rtp.rspst != 0;
}

// What the next acknowledgement says.
struct FusedAck {
  AckContent content;
  MessageStatus status;
};
FusedAck make_fused_ack(State& s, const Channel& ch);

// ---- sending ---------------------------------------------------------------------------------------------------

// The peer reported a failure: it is confirmed at once.
void confirm(State& s, uint32_t channel, Instant now, const wire::RtpHeader& report);

}  // namespace ub::tp
