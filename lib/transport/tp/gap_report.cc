// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/gap_report.h"

#include "lib/transport/wire/response_status.h"

namespace ub::tp {

void note_gap(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  s.count(channel, ChannelCount::kDiscarded);
  if (!ch.fast) return;
  if (ch.gap_report != GapReport::kNone && ch.missing == ch.expected) return;
  ch.gap_report = GapReport::kOwed;
  ch.missing = ch.expected;
  demand_ack(s, channel, now);
}

bool report_gap(const Channel& ch, FusedAck* ack) {
  if (ch.gap_report != GapReport::kOwed || ch.missing != ch.expected || ch.fused.frozen) return false;
  ++ack->content.cumulative;  // the PSN of a TPNAK is that of the packet behind those that are acknowledged
  ack->status.rspst = wire::kRspError;
  ack->status.rspinfo = wire::kErrPsn;
  return true;
}

void gap_report_sent(Channel& ch, bool gap) {
  if (gap) {
    ch.gap_report = GapReport::kSent;
  } else if (!ch.fused.frozen) {
    ch.gap_report = GapReport::kNone;
  }
}

}  // namespace ub::tp
