// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/congestion.h"

#include <algorithm>

#include "lib/transport/tp/transmit_state.h"

namespace ub::tp {
namespace {

// No peer says how fast its line is.
cc::Path path_of(const Channel& ch) { return {.mtu_bytes = ch.mtu, .most_packets = kMaxWindow}; }

// Copies the verdict to where packets look.
void heed(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  UB_DCHECK(ch.flow.window_packets != 0);
  const bool was_paced = ch.paced;
  ch.paced = !cc::may_leave(ch.flow, now);
  ch.send_window = ch.paced ? 0 : std::min<uint32_t>(ch.agreed_window, ch.flow.window_packets);
  if (was_paced && !ch.paced) activate(s, channel);
  s.timers.arm(s.timer_of_channel(channel), cc::deadline(ch.flow, now));
}

}  // namespace

cc::Algorithm algorithm_for(const State& s, bool lossless) {
  if (!lossless) return cc::Algorithm::kLossWindow;
  return s.config.listen_to_network ? cc::Algorithm::kListener : cc::Algorithm::kNone;
}

void begin_flow(State& s, Channel& ch, cc::Algorithm algorithm) {
  cc::begin(ch.flow, s.send_times, algorithm, path_of(ch), ch.next_psn);
  ch.tells_sent = cc::hears_packets(ch.flow) || ch.flow.ecn != wire::kEcnNotCapable;
  ch.send_window = std::min<uint32_t>(ch.agreed_window, ch.flow.window_packets);
}

void tell_sent(State& s, uint32_t channel, Instant now, Psn psn, std::span<std::byte> frame, bool again) {
  Channel& ch = s.channels[channel];
  if (ch.flow.ecn != wire::kEcnNotCapable) ch.headers.write(frame.data(), frame.size() - ch.headers.size, ch.flow.ecn);
  cc::sent(ch.flow, s.send_times, path_of(ch), now, psn, static_cast<uint32_t>(frame.size()), again);
  heed(s, channel, now);
}

void tell_arrived(State& s, Channel& ch, Instant now, Psn psn) {
  cc::arrived(ch.flow, s.send_times, path_of(ch), now, psn);
}

void tell_acknowledged(State& s, uint32_t channel, Instant now, Psn from, Psn to) {
  Channel& ch = s.channels[channel];
  cc::acknowledged(ch.flow, s.send_times, path_of(ch), now, from, to);
  heed(s, channel, now);
}

void tell_lost(State& s, uint32_t channel, Instant now, Psn first) {
  Channel& ch = s.channels[channel];
  cc::lost(ch.flow, path_of(ch), now, {first, next_new_psn(ch)});
  heed(s, channel, now);
}

void tell_timed_out(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  cc::timed_out(ch.flow, path_of(ch), now, next_new_psn(ch));
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
  cc::marked(ch.flow, path_of(ch), now, mark);
  heed(s, channel, now);
}

wire::Drop on_feedback(State& s, uint32_t channel, Instant now, std::span<const std::byte> cetph, size_t* size) {
  Channel& ch = s.channels[channel];
  *size = cc::feedback_size(ch.feedback);
  cc::Feedback feedback;
  const wire::Drop drop = cc::read_feedback(ch.feedback, cetph, &feedback);
  if (drop != wire::Drop::kNone) return drop;
  cc::fed_back(ch.flow, path_of(ch), now, feedback);
  heed(s, channel, now);
  return drop;
}

void look_at_flow(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  cc::timer(ch.flow, path_of(ch), now);
  heed(s, channel, now);
}

}  // namespace ub::tp
