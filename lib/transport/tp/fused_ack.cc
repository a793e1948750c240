// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/fused_ack.h"

#include "lib/transport/wire/response_status.h"

namespace ub::tp {

bool freeze(State& s, uint32_t channel, Instant now, const MessageStatus& failed) {
  FusedState& f = s.channels[channel].fused;
  if (f.frozen) return false;
  f.frozen = true;
  f.failed = failed;
  s.note(Stage::kChannelFrozen, channel, failed.message.value(), failed.rspst);
  demand_ack(s, channel, now);
  return true;
}

bool thaw(Channel& ch, const wire::RtpHeader& rtp) {
  FusedState& f = ch.fused;
  const bool confirms = f.frozen && rtp.psn == f.failed.last && rtp.tpmsn == f.failed.message &&
                        rtp.rspst == f.failed.rspst && rtp.rspinfo == f.failed.rspinfo;
  if (confirms) f.frozen = false;
  return confirms;
}

FusedAck make_fused_ack(State& s, const Channel& ch) {
  const FusedState& f = ch.fused;
  FusedAck ack;
  if (f.frozen) {
    ack.status = f.failed;
    ack.content.selective = false;
    ack.content.cumulative = ack.content.highest = f.failed.last;
    return ack;
  }
  ack.status = {{}, (f.holds ? f.unexecuted_message : ch.message) - 1, wire::kRspFused, wire::kFusedOk};
  describe_received(s, ch, (f.holds ? f.unexecuted : ch.delivered) - 1, &ack.content);
  if (ack.content.selective) ack.status.rspst = ack.status.rspinfo = 0;  // 6.2.1: a TPSACK has no status
  return ack;
}

void confirm(State& s, uint32_t channel, Instant now, const wire::RtpHeader& report) {
  FusedState& f = s.channels[channel].fused;
  f.confirmed = {report.psn, report.tpmsn, report.rspst, report.rspinfo};
  f.confirm_owed = true;
  owe_sooner(s, channel, now, {});
}

}  // namespace ub::tp
