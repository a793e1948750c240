// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/tp/acknowledged_packets.h"

#include <algorithm>

namespace ub::tp {

namespace {

Acknowledged nothing_new(const Channel& ch) { return {ch.oldest_unacked, ch.oldest_unacked}; }

// Records which packets the peer has beyond the first gap.
void note_received(State& s, uint32_t channel, Instant now, Psn base, const wire::SackView& sack) {
  Channel& ch = s.channels[channel];
  RecoveryBlock& r = recovery_block(s, ch);
  const uint32_t last_bit = std::min(sack.bit_count() - 1, ch.outstanding());  // bit i: PSN base + i, base = oldest - 1
  bool news = false;
  for (uint32_t bit = 1; bit <= last_bit; ++bit) {
    if (!sack.test(bit)) continue;
    const Psn p = base + bit;
    if (!note_arrived(r, ch, p)) continue;
    news = true;
    if (ch.timing && p == ch.timed_psn) measured(s, ch, now);
    if (ch.flow.send_times != 0 || ch.several_paths) tell_arrived(s, channel, now, p);
  }
  const Psn highest = sack.max_rcv_psn;
  if (highest.distance(base) <= ch.outstanding() && highest.after(r.reach)) r.reach = highest;
  if (!news) return;
  heard_news(s, channel, now);
  activate(s, channel);  // what has arrived is no longer on its way, so the window may be open again
}

}  // namespace

Acknowledged on_nak(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp) {
  s.count(Counter::kTpRxNak);
  Channel& ch = s.channels[channel];
  if (!gap_acceptable(s, ch, rtp.psn)) return nothing_new(ch);
  Acknowledged result = acknowledge_until(s, channel, now, rtp.psn);
  if (!ch.fast) return result;
  RecoveryBlock& r = recovery_block(s, ch);
  if (r.nak_seen && rtp.psn == r.nak) return result;  // go back only once for each reported PSN
  r.nak = rtp.psn;
  r.nak_seen = true;
  result.lost = queue_all(s, ch, rtp.psn);
  s.note(Stage::kPacketsLost, channel, result.lost, rtp.psn.value());
  lost_fast(s, channel, now, result.lost, rtp.psn, ChannelCount::kAgainNak);
  return result;
}

Acknowledged on_sack(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp, const wire::SackView& sack) {
  s.count(Counter::kTpRxSack);
  Channel& ch = s.channels[channel];
  if (!acceptable(s, ch, rtp.psn)) return nothing_new(ch);
  Acknowledged result = acknowledge_until(s, channel, now, rtp.psn + 1);
  if (ch.outstanding() == 0) return result;
  note_received(s, channel, now, rtp.psn, sack);
  if (!ch.fast) {
    if (ch.several_paths) tell_acknowledged(s, channel, now, result.to, result.to);  // what arrived beyond the gap
    return result;
  }
  Psn first;
  result.lost = judge(s, ch, rtp.psn + sack.bit_count(), now, &first);
  if (result.lost != 0) lost_fast(s, channel, now, result.lost, first, ChannelCount::kAgainDistance);
  release_recovery(s, ch);
  return result;
}

}  // namespace ub::tp
