// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/sent_messages.h"

#include "lib/transport/ta/read_jobs.h"
#include "lib/transport/ta/request_state.h"

namespace ub::ta {

void on_acknowledged(CoreState& s, uint32_t channel, const tp::Acknowledged& acknowledged) {
  tp::acknowledged_messages(s, s.channels[channel], acknowledged, [&s](const tp::TxMessage& m, bool whole) {
    if (m.kind == tp::MessageKind::kRequest) return on_progress(s, m);
    if (whole && m.kind == tp::MessageKind::kReadResponse) finish_read_job(s, m);
  });
  if (acknowledged.to != acknowledged.from) begin_turn_of_next(s, s.channels[channel]);
}

void on_congestion(CoreState& s, uint32_t channel, const wire::RtpHeader& rtp, const wire::NetHeader& net) {
  const std::span<const std::byte> rest(net.tph + wire::RtpHeader::kSize, net.end);
  if (rtp.opcode == wire::TpOpcode::kCnp) return tp::on_notification(s, channel, s.now, rest);
  const bool selective = rtp.opcode == wire::TpOpcode::kSackCc;
  if (!selective && rtp.opcode != wire::TpOpcode::kAckCc) return s.drop(Counter::kRxDropBadTpOpcode);
  const tp::Channel& ch = s.channels[channel];
  cc::Feedback feedback;
  wire::Drop drop = cc::read_feedback(ch.feedback, rest, &feedback);
  wire::SackView sack;
  if (selective && drop == wire::Drop::kNone) {
    const auto behind = rest.subspan(cc::feedback_size(ch.feedback));
    drop = wire::SackView::read(behind.data(), behind.size(), sack);
  }
  if (drop != wire::Drop::kNone) return s.drop(wire::drop_counter(drop));
  const bool gap = !selective && tp::reports_gap(rtp);
  if (!(gap ? tp::gap_acceptable(s, ch, rtp.psn) : tp::acceptable(s, ch, rtp.psn))) return;
  tp::tell_fed_back(s, channel, s.now, feedback);
  if (!selective) return on_ack(s, channel, rtp);
  on_acknowledged_beyond_gap(s, channel, rtp, sack);
}

void stop_request(CoreState& s, uint32_t channel, uint32_t queue, uint32_t number) {
  const tp::TxMessage* m = tp::half_sent(s, s.channels[channel]);
  if (m == nullptr || m->kind != tp::MessageKind::kRequest || m->source != queue) return;
  if (m->work_request == number && m->generation == s.queues[queue].generation) tp::stop_half_sent(s, channel);
}

void stop_response(CoreState& s, uint32_t channel, uint32_t job) {
  const tp::TxMessage* m = tp::half_sent(s, s.channels[channel]);
  if (m != nullptr && m->kind == tp::MessageKind::kReadResponse && m->source == job) tp::stop_half_sent(s, channel);
}

}  // namespace ub::ta
