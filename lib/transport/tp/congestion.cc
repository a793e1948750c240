// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/congestion.h"

#include <algorithm>

#include "lib/transport/cc/rate.h"
#include "lib/transport/tp/owed_ack.h"
#include "lib/transport/tp/transmit_state.h"

namespace ub::tp {
namespace {

cc::Path path_of(const State& s) {
  return {.most_packets = kMaxWindow,
          .line_kbytes_per_second = cc::kbytes_per_second(s.config.line_bytes_per_second),
          .constants = &s.config.congestion};
}

// Copies the flow's verdict into the fields that packets read. A channel that may send more than before is activated.
void heed(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  UB_DCHECK(ch.flow.window_packets != 0);
  const uint32_t window_before = ch.send_window;
  ch.paced = !cc::may_leave(ch.flow, now);
  ch.send_window = ch.paced ? 0 : std::min<uint32_t>(ch.agreed_window, ch.flow.window_packets);
  if (ch.send_window > window_before) activate(s, channel);
  s.timers.arm(s.timer_of_channel(channel), cc::deadline(ch.flow, now));
}

}  // namespace

cc::Algorithm algorithm_for(const State& s, wire::CcAlgorithm agreed, bool lossless) {
  if (agreed == wire::CcAlgorithm::kDcqcn) return cc::Algorithm::kDcqcn;
  if (!lossless && s.config.loss_window) return cc::Algorithm::kLossWindow;
  return s.config.listen_to_network ? cc::Algorithm::kListener : cc::Algorithm::kNone;
}

void begin_flow(State& s, Channel& ch, cc::Algorithm algorithm) {
  cc::begin(ch.flow, s.send_times, algorithm, path_of(s), ch.next_psn);
  ch.tells_sent = cc::hears_packets(ch.flow) || ch.flow.ecn != wire::kEcnNotCapable;
  ch.send_window = std::min<uint32_t>(ch.agreed_window, ch.flow.window_packets);
}

void tell_sent(State& s, uint32_t channel, Instant now, Psn psn, std::span<std::byte> frame, bool again) {
  Channel& ch = s.channels[channel];
  if (ch.flow.ecn != wire::kEcnNotCapable) ch.headers.write(frame.data(), frame.size() - ch.headers.size, ch.flow.ecn);
  cc::sent(ch.flow, s.send_times, path_of(s), now, psn, static_cast<uint32_t>(frame.size()), again);
  heed(s, channel, now);
}

void tell_arrived(State& s, uint32_t channel, Instant now, Psn psn) {
  cc::arrived(s.channels[channel].flow, s.send_times, path_of(s), now, psn);
  heed(s, channel, now);
}

void tell_acknowledged(State& s, uint32_t channel, Instant now, Psn from, Psn to) {
  Channel& ch = s.channels[channel];
  cc::acknowledged(ch.flow, s.send_times, path_of(s), now, from, to);
  heed(s, channel, now);
}

void tell_lost(State& s, uint32_t channel, Instant now, Psn first) {
  Channel& ch = s.channels[channel];
  cc::lost(ch.flow, path_of(s), now, {first, next_new_psn(ch)});
  heed(s, channel, now);
}

void tell_timed_out(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  cc::timed_out(ch.flow, path_of(s), now, next_new_psn(ch));
  heed(s, channel, now);
}

void on_notification(State& s, uint32_t channel, Instant now, std::span<const std::byte> cetph) {
  Channel& ch = s.channels[channel];
  cc::Mark mark;
  bool any;
  const wire::Drop drop = cc::read_notification(cetph, &mark, &any);
  if (drop != wire::Drop::kNone) return s.drop(wire::drop_counter(drop));
  s.count(Counter::kTpRxCnp);
  if (!any) return;
  cc::marked(ch.flow, path_of(s), now, mark);
  heed(s, channel, now);
}

void tell_fed_back(State& s, uint32_t channel, Instant now, const cc::Feedback& feedback) {
  cc::fed_back(s.channels[channel].flow, path_of(s), now, feedback);
  heed(s, channel, now);
}

void on_mark(State& s, uint32_t channel, Instant now, uint8_t ecn) {
  Channel& ch = s.channels[channel];
  s.count(channel, ChannelCount::kMarked);
  if (ch.feedback != wire::CcAlgorithm::kDcqcn) return;
  if (!cc::is_to_be_told(s.config.congestion.dcqcn, ch.next_cnp, now)) return;
  ch.owed_cnp = ecn;
  demand_ack(s, channel, now);
}

void look_at_flow(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  cc::timer(ch.flow, path_of(s), now);
  heed(s, channel, now);
}

}  // namespace ub::tp
