// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the messages of a channel means something for the transactions that they are part of, and the other
// way round: packets acknowledged, and requests and READs that end before all of their packets were sent.
#pragma once

#include <span>

#include "lib/transport/core_state.h"
#include "lib/transport/tp/acknowledgement.h"

namespace ub::ta {

// A request gets on; a READ that was served is done with.
void on_acknowledged(CoreState& s, uint32_t channel, const tp::Acknowledged& acknowledged);

// An acknowledgement of any kind came (6.2.2). `rest`: behind the transport header.
inline void on_ack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp) {
  on_acknowledged(s, channel,
                  tp::reports_gap(rtp) ? tp::on_nak(s, channel, s.now, rtp) : tp::on_ack(s, channel, s.now, rtp));
}
inline void on_sack(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp, std::span<const std::byte> rest) {
  wire::SackView sack;
  const wire::Drop drop = wire::SackView::read(rest.data(), rest.size(), sack);
  if (drop != wire::Drop::kNone) return s.drop(wire::drop_counter(drop));
  on_acknowledged(s, channel, tp::on_sack(s, channel, s.now, rtp, sack));
}
// One of those that tell what networks say, alone (CNP) or before an acknowledgement. That is for the channel's flow.
[[gnu::cold]] void on_congestion(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp,
                                 const wire::NetHeader& net);

// If a message of this request, or the response of this READ, is half sent, it ends here with a fake packet.
void stop_request(CoreState& s, uint32_t channel, uint32_t queue, uint32_t number);
void stop_response(CoreState& s, uint32_t channel, uint32_t job);

}  // namespace ub::ta
