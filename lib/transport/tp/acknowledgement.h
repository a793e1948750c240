// SPDX-License-Identifier: Apache-2.0
//
// What the peer says of the packets in flight (UB Base Specification Rev 2.0, 6.4.2), and what comes of it: a range that
// is acknowledged, some that are lost and go again, a window that moved. What messages these packets belong to is known
// here, what they mean is not: whoever put them in walks them.
#pragma once

#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/recovery.h"
#include "lib/transport/tp/retransmission_timeout.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/sack.h"

namespace ub::tp {

// What came of an acknowledgement of any kind: the packets in [from, to) are no longer in flight, and so many go again.
// The messages of the former are still in the channel's queue: acknowledged_messages() walks them, at once.
struct [[nodiscard]] Acknowledged {
  Psn from, to;
  uint32_t lost = 0;
};

inline bool acceptable(State& s, const Channel& ch, Psn psn) {
  // oldest - 1 <= psn < next
  if ((psn + 1).distance(ch.oldest_unacked) <= ch.outstanding()) return true;
  s.drop(Counter::kTpRxStaleAck);
  return false;
}

// Is it a TPNAK: everything from its PSN on is missing?
inline bool reports_gap(const wire::RtpHeader& rtp) {
  return rtp.rspst == wire::kRspError && rtp.rspinfo == wire::kErrPsn;
}
// acceptable() for those: it is missing, so it has left.
inline bool gap_acceptable(State& s, const Channel& ch, Psn missing) {
  return acceptable(s, ch, missing - 1) && missing != ch.next_psn;
}

// What was noted of packets that are in flight no longer.
void forget_recovered(State& s, Channel& ch, Psn from, Psn to);

// All packets before `to` were received. Nothing new: the peer got something and has no room for it yet.
inline Acknowledged acknowledge_until(State& s, uint32_t channel, Instant now, Psn to) {
  Channel& ch = s.channels[channel];
  ch.progress_at = now;
  const Psn from = ch.oldest_unacked;
  uint32_t packets = to.distance(from);
  UB_DCHECK(packets <= ch.outstanding());
  if (packets == 0) return {from, from};
  if (ch.timing && to.after(ch.timed_psn)) {
    ch.timing = false;
    ch.srtt = smoothed(ch.srtt, now - ch.timed_at);
    ch.rto = rto_of(ch.srtt, rto_limits(s));
  }
  ch.oldest_unacked = to;
  s.note(Stage::kPacketsAcknowledged, channel, from.value(), (to - 1).value());
  if (ch.recovery != 0) forget_recovered(s, ch, from, to);
  ch.timeouts = 0;
  restart_rto(s, channel, now);
  activate(s, channel);
  if (has_flow(ch)) [[unlikely]]
    tell_acknowledged(s, channel, now, from, to);
  return {from, to};
}

inline Acknowledged on_ack(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp) {
  s.count(Counter::kTpRxAck);
  Channel& ch = s.channels[channel];
  if (!acceptable(s, ch, rtp.psn)) return {ch.oldest_unacked, ch.oldest_unacked};
  return acknowledge_until(s, channel, now, rtp.psn + 1);
}
Acknowledged on_sack(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp, const wire::SackView& sack);
Acknowledged on_nak(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp);

// Calls fn(const TxMessage&, bool whole) for each message with packets among those acknowledged, oldest first. `whole`:
// none is left, and the message leaves the queue after the call.
template <class Fn>
void acknowledged_messages(State& s, Channel& ch, const Acknowledged& a, Fn fn) {
  if (a.to == a.from) return;
  while (!ch.in_flight.empty()) {
    const TxMessage& m = ch.in_flight.front(s.messages);
    const uint32_t packets = a.to.distance(m.first_psn);  // of it, received by now
    if (packets == 0) return;
    const bool whole = m.complete && m.packets <= packets;
    fn(m, whole);
    if (!whole) return;
    ch.in_flight.pop(s.messages);
  }
}

}  // namespace ub::tp
