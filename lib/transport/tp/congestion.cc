// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/congestion.h"

#include <algorithm>

#include "lib/transport/cc/rate.h"
#include "lib/transport/tp/owed_ack.h"
#include "lib/transport/tp/paths.h"
#include "lib/transport/tp/receive_state.h"
#include "lib/transport/tp/transmit_state.h"
#include "lib/transport/wire/rtp_header.h"

namespace ub::tp {

cc::Path terms_of_flow(const State& s, const Channel& ch, uint32_t in_flight) {
  constexpr uint32_t kMostHeaderBytes = 64;  // between the network headers and the payload, and the ICRC
  return {.most_packets = kMaxWindow,
          .packet_bytes = static_cast<uint16_t>(ch.headers.size + kMostHeaderBytes + ch.offered_mtu),
          .line_kbytes_per_second = cc::kbytes_per_second(s.config.line_bytes_per_second),
          .has_hints = ch.cna,
          .in_flight = in_flight,
          .constants = &s.config.congestion};
}

namespace {

cc::Path path_of(const State& s, const Channel& ch) { return terms_of_flow(s, ch, ch.outstanding()); }

// The A bit of a data packet that is about to be sent.
bool asks_for_acknowledgement(const Channel& ch, std::span<const std::byte> frame) {
  wire::RtpHeader rtp;
  const auto transport = frame.subspan(ch.headers.size);
  return wire::RtpHeader::read(transport.data(), transport.size(), rtp) == wire::Drop::kNone && rtp.ack_req;
}

// Writes what the flow says to the network into the headers of a data packet.
void stamp(const Channel& ch, std::span<std::byte> frame) {
  if (ch.cna && ch.feedback == wire::CcAlgorithm::kCaqm) {
    const bool asks = ch.flow.ecn == wire::kEcnEct1;
    return wire::write_cci(frame.data(), {.enable = true, .increase = asks, .hint = ch.flow.caqm.hint});
  }
  ch.headers.write(frame.data(), frame.size() - ch.headers.size, ch.flow.ecn);
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
  if (agreed == wire::CcAlgorithm::kCaqm) return cc::Algorithm::kCaqm;
  if (agreed == wire::CcAlgorithm::kLdcp) return cc::Algorithm::kLdcp;
  if (s.config.congestion_control == cc::Control::kSwift) return cc::Algorithm::kSwift;
  if (!lossless && s.config.loss_window) return cc::Algorithm::kLossWindow;
  return s.config.listen_to_network ? cc::Algorithm::kListener : cc::Algorithm::kNone;
}

void begin_flow(State& s, Channel& ch, cc::Algorithm algorithm) {
  cc::begin(ch.flow, s.send_times, algorithm, path_of(s, ch), ch.next_psn);
  ch.tells_sent = cc::hears_packets(ch.flow) || ch.flow.ecn != wire::kEcnNotCapable;
  ch.send_window = std::min<uint32_t>(ch.agreed_window, ch.flow.window_packets);
}

void end_flow(State& s, Channel& ch) {
  end_paths(s, ch);
  cc::end(ch.flow, s.send_times);
}

void tell_sent(State& s, uint32_t channel, Instant now, const TxMessage& m, Psn psn, std::span<std::byte> frame,
               bool again) {
  Channel& ch = s.channels[channel];
  if (ch.several_paths) return depart(s, channel, now, m, psn, frame, again);
  if (ch.flow.ecn != wire::kEcnNotCapable) stamp(ch, frame);
  const cc::Departure departure{.again = again, .asked = asks_for_acknowledgement(ch, frame)};
  cc::sent(ch.flow, s.send_times, path_of(s, ch), now, psn, static_cast<uint32_t>(frame.size()), departure);
  heed(s, channel, now);
}

void tell_arrived(State& s, uint32_t channel, Instant now, Psn psn) {
  Channel& ch = s.channels[channel];
  if (ch.several_paths) return arrived_by_path(s, ch, psn, now);
  cc::arrived(ch.flow, s.send_times, path_of(s, ch), now, psn);
  heed(s, channel, now);
}

void tell_acknowledged(State& s, uint32_t channel, Instant now, Psn from, Psn to) {
  Channel& ch = s.channels[channel];
  if (ch.several_paths) return acknowledged_by_paths(s, channel, now, from, to);
  cc::acknowledged(ch.flow, s.send_times, path_of(s, ch), now, from, to);
  heed(s, channel, now);
}

void tell_lost(State& s, uint32_t channel, Instant now, Psn first) {
  Channel& ch = s.channels[channel];
  if (ch.several_paths) return ch.go_back_n ? lost_by_paths(s, channel, now, first) : void();  // judged by path
  cc::lost(ch.flow, path_of(s, ch), now, {first, next_new_psn(ch)});
  heed(s, channel, now);
}

void tell_timed_out(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  if (ch.several_paths) return lost_by_paths(s, channel, now, ch.oldest_unacked);
  cc::timed_out(ch.flow, path_of(s, ch), now, next_new_psn(ch));
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
  s.count(channel, ChannelCount::kMarks);
  if (ch.several_paths) return marked_on_path(s, channel, now, mark);
  cc::marked(ch.flow, path_of(s, ch), now, mark);
  heed(s, channel, now);
}

void tell_fed_back(State& s, uint32_t channel, Instant now, const cc::Feedback& feedback) {
  Channel& ch = s.channels[channel];
  if (ch.several_paths) return fed_back_on_path(s, channel, now, feedback);
  s.count(channel, ChannelCount::kMarks, cc::new_marks(ch.flow, feedback));
  cc::fed_back(ch.flow, path_of(s, ch), now, feedback);
  heed(s, channel, now);
}

namespace {

// A packet that is accepted by its PSN. Whether there is room to keep it, nobody knows yet.
bool is_accepted(State& s, const Channel& ch, Psn psn) {
  const RxVerdict verdict = classify(s, ch, psn);
  return verdict == RxVerdict::kInOrder || (verdict == RxVerdict::kAhead && !ch.go_back_n);
}

void owe_notification(State& s, uint32_t channel, Instant now, uint8_t ecn) {
  Channel& ch = s.channels[channel];
  if (ch.several_paths && ch.owed_cnp != 0) return;  // that of another path has not left
  Instant& next_cnp = ch.several_paths ? heard_from(s, ch).next_cnp : ch.next_cnp;
  if (!cc::is_to_be_told(s.config.congestion.dcqcn, next_cnp, now)) return;
  ch.owed_cnp = ecn;
  if (ch.several_paths) block_of(s, ch).cnp_path = block_of(s, ch).heard_from;
  demand_ack(s, channel, now);
}

}  // namespace

void on_ecn(State& s, uint32_t channel, Instant now, Psn psn, uint8_t ecn, uint32_t bytes) {
  Channel& ch = s.channels[channel];
  const bool caqm = ch.feedback == wire::CcAlgorithm::kCaqm;
  const bool met_congestion = caqm ? ecn == wire::kEcnCe : (ecn & 1) != 0;
  if (met_congestion) s.count(channel, ChannelCount::kMarked);
  cc::Heard& heard = ch.several_paths ? heard_from(s, ch).heard : ch.heard;
  if (ch.feeds_back && is_accepted(s, ch, psn)) heard.accepted(ch.feedback, bytes, ecn);
  if (caqm) heard.told(ecn, ch.mtu);
  if (ch.feedback == wire::CcAlgorithm::kDcqcn && met_congestion) owe_notification(s, channel, now, ecn);
}

void on_cci(State& s, uint32_t channel, Instant now, Psn psn, uint16_t bits, uint32_t bytes) {
  Channel& ch = s.channels[channel];
  wire::Cci cci;
  if (!wire::Cci::unpack(bits, cci)) return;
  if (ch.feedback != wire::CcAlgorithm::kCaqm) {
    const bool marks_alike = ch.feedback == wire::CcAlgorithm::kLdcp;  // a little and severe congestion
    const uint8_t code = marks_alike && (cci.fecn & 1) != 0 ? wire::kEcnCe : cci.fecn;
    if (code != wire::kEcnNotCapable) on_ecn(s, channel, now, psn, code, bytes);
    return;
  }
  if (!cci.enable) return;
  if (cci.congested) s.count(channel, ChannelCount::kMarked);
  if (is_accepted(s, ch, psn)) ch.heard.accepted(ch.feedback, bytes, wire::kEcnNotCapable);
  ch.heard.told(cci);
}

void look_at_flow(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  if (ch.several_paths) return look_at_paths(s, channel, now);
  cc::timer(ch.flow, path_of(s, ch), now);
  heed(s, channel, now);
}

}  // namespace ub::tp
