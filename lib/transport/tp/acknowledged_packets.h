// SPDX-License-Identifier: Apache-2.0
//
// Handles acknowledgements of the packets in flight (UB Base Specification Rev 2.0, 6.4.2): a range of packets is no
// longer in flight, others are lost and are sent again, the window moves. This file knows to which messages the packets
// belong, not what the messages mean: the caller visits them with acknowledged_messages(). Acknowledgements that this
// end owes to its peer are in owed_ack.h.
#pragma once

#include "lib/transport/tp/congestion.h"
#include "lib/transport/tp/recovery.h"
#include "lib/transport/tp/retransmission_timeout.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/response_status.h"
#include "lib/transport/wire/rtp_header.h"
#include "lib/transport/wire/sack.h"

namespace ub::tp {

// The result of an acknowledgement of any kind: the packets [from, to) are no longer in flight, and `lost` others will
// be sent again. The messages of the former are still in the channel's queue: the caller must call
// acknowledged_messages() next.
struct [[nodiscard]] Acknowledged {
  Psn from, to;
  uint32_t lost = 0;
};

// Does an acknowledgement of all packets up to `psn` fit what is in flight? If not, it is dropped and counted.
inline bool acceptable(State& s, const Channel& ch, Psn psn) {
  // oldest - 1 <= psn < next
  if ((psn + 1).distance(ch.oldest_unacked) <= ch.outstanding()) return true;
  s.drop(Counter::kTpRxStaleAck);
  return false;
}

// Is this acknowledgement a TPNAK, which says that everything from its PSN on is missing?
inline bool reports_gap(const wire::RtpHeader& rtp) {
  return rtp.rspst == wire::kRspError && rtp.rspinfo == wire::kErrPsn;
}
// acceptable() for a TPNAK: a packet that is missing must have been sent.
inline bool gap_acceptable(State& s, const Channel& ch, Psn missing) {
  return acceptable(s, ch, missing - 1) && missing != ch.next_psn;
}

// All packets before `to` were received. An acknowledgement of nothing new counts as progress, too: the peer received a
// packet and has no room for it yet.
inline Acknowledged acknowledge_until(State& s, uint32_t channel, Instant now, Psn to) {
  Channel& ch = s.channels[channel];
  ch.progress_at = now;
  const Psn from = ch.oldest_unacked;
  uint32_t packets = to.distance(from);
  UB_DCHECK(packets <= ch.outstanding());
  if (packets == 0) return {from, from};
  if (ch.timing && to.after(ch.timed_psn)) {
    measured(s, ch, now);
  }
  ch.oldest_unacked = to;
  s.note(Stage::kPacketsAcknowledged, channel, from.value(), (to - 1).value());
  if (ch.recovery != 0) forget_recovered(s, ch, from, to, now);
  ch.tolerance.acknowledged(packets);
  heard_news(s, channel, now);
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

// Calls fn(const TxMessage&, bool whole) for each message with packets in the acknowledged range, oldest first. If
// `whole`, all its packets are acknowledged, and the message is taken off the queue after the call.
template <class Fn>
void acknowledged_messages(State& s, Channel& ch, const Acknowledged& a, Fn fn) {
  if (a.to == a.from) return;
  while (!ch.in_flight.empty()) {
    const TxMessage& m = ch.in_flight.front(s.messages);
    const uint32_t packets = a.to.distance(m.first_psn);  // how many PSNs from its first on are acknowledged
    if (packets == 0) return;
    const bool whole = m.complete && m.packets <= packets;
    fn(m, whole);
    if (!whole) return;
    ch.in_flight.pop(s.messages);
  }
}

}  // namespace ub::tp
