// SPDX-License-Identifier: Apache-2.0
//
// Connects the messages that a channel sent (tp/) with their transactions. Requests and READ jobs are told that their
// packets were acknowledged. The channel is told that a request or READ ended before all its packets were sent.
#pragma once

#include <span>

#include "lib/transport/core_state.h"
#include "lib/transport/ta/fused_answer.h"
#include "lib/transport/tp/acknowledged_packets.h"

namespace ub::ta {

// Packets were acknowledged: requests make progress, and READ jobs whose response has arrived end.
void on_acknowledged(CoreState& s, uint32_t channel, const tp::Acknowledged& acknowledged);

// A TPACK, TPNAK or TPSACK arrived (6.2.1, 6.2.3). `rest`: the bytes behind the transport header.
inline void on_ack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp) {
  if (rtp.rspst != wire::kRspOk || s.channels[channel].rol) [[unlikely]]
    return on_fused_ack(s, channel, rtp);
  on_acknowledged(s, channel, tp::on_ack(s, channel, s.now, rtp));
}
inline void on_acknowledged_beyond_gap(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp,
                                       const wire::SackView& sack) {
  const tp::Acknowledged a = tp::on_sack(s, channel, s.now, rtp, sack);
  s.channels[channel].rol ? on_executed(s, channel, a) : on_acknowledged(s, channel, a);
}
inline void on_sack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
  wire::SackView sack;
  const wire::Drop drop = wire::SackView::read(rest.data(), rest.size(), sack);
  if (drop != wire::Drop::kNone) return s.drop(wire::drop_counter(drop));
  on_acknowledged_beyond_gap(s, channel, rtp, sack);
}
// A packet with feedback of the network arrived (6.2.2): a CNP, or an acknowledgement with a CETPH in front. The
// channel's flow is told of it.
[[gnu::cold]] void on_congestion(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp,
                                 const wire::NetHeader& net);

// If the message of this request (or the response of this READ job) is half sent on the channel, it ends with a fake
// packet.
void stop_request(CoreState& s, uint32_t channel, uint32_t queue, uint32_t number);
void stop_response(CoreState& s, uint32_t channel, uint32_t job);

}  // namespace ub::ta
