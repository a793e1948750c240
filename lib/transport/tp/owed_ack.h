// SPDX-License-Identifier: Apache-2.0
//
// The acknowledgement that a channel owes its peer (UB Base Specification Rev 2.0, 6.2.1, 6.2.3, 6.4.2): when it is
// owed, how long it may be delayed, and what it says. Nothing is sent here; transmitter.h builds the packet and sends
// it.
#pragma once

#include <algorithm>

#include "lib/transport/tp/receive_state.h"
#include "lib/transport/tp/state.h"
#include "lib/transport/wire/rtp_header.h"

namespace ub::tp {

constexpr uint32_t kPacketsPerAck = 8;
constexpr Duration kAckDelay = microseconds(100);  // far below any retransmission timeout
constexpr Duration kAckDelayAtGap = microseconds(1);  // while packets are missing, at which the peer's window stands
constexpr Duration kMostAckDelayIfAsked = microseconds(8);  // as long as it takes a kernel to send a datagram or two

// From now on the channel owes an acknowledgement, which leaves after the delay at the latest.
void begin_to_owe(State& s, uint32_t channel, Instant now, Duration delay = kAckDelay);
// The same, and what was owed before is hurried.
void owe_sooner(State& s, uint32_t channel, Instant now, Duration delay);
// Something has changed that the peer waits for: an acknowledgement leaves at once.
inline void demand_ack(State& s, uint32_t channel, Instant now) {
  Channel& ch = s.channels[channel];
  ch.ack_wanted = true;
  if (!ch.on_ack_list) begin_to_owe(s, channel, now);
}

constexpr uint16_t low_bits(Psn psn) { return static_cast<uint16_t>(psn.value()); }

// How long the acknowledgement of a packet that asks for one may take. Where packets may be lost, most packets of short
// flights ask; so that nobody waits for acknowledgements who waits for answers, that of a single one leaves behind the
// next packet, which is the answer to it, or the next request. A sender that waits for what we report of the network is
// not kept waiting.
inline Duration delay_if_asked(const Channel& ch) {
  if (!ch.asks_soon || ch.feeds_back || ch.unacknowledged > 1) return {};
  return std::min(kMostAckDelayIfAsked, ch.round_trip.smoothed / 2);
}

// A packet was accepted, or it is a duplicate: the channel owes an acknowledgement for it. A packet ahead of a gap gets
// none at once, even if it asks: one for each of them would be more to send than they are where they are small, and
// kAckDelayAtGap is soon enough.
inline void note_for_ack(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp, RxVerdict verdict) {
  Channel& ch = s.channels[channel];
  ++ch.unacknowledged;
  const Duration if_asked = delay_if_asked(ch);
  const bool demanded = verdict == RxVerdict::kInOrder ? rtp.ack_req && if_asked.ns == 0 : verdict != RxVerdict::kAhead;
  ch.ack_wanted |= demanded;
  if (ch.reorder != 0) [[unlikely]]
    return owe_sooner(s, channel, now, kAckDelayAtGap);
  if (rtp.ack_req && if_asked.ns != 0) {
    if (!ch.peer_asked) ch.ack_follows = low_bits(ch.next_psn);
    ch.peer_asked = true;
    return owe_sooner(s, channel, now, if_asked);
  }
  if (!ch.on_ack_list) begin_to_owe(s, channel, now);
}

// May the acknowledgement that is owed be delayed to cover more packets? Not if one is demanded, if it covers
// kPacketsPerAck packets already, if its delay has passed, or if the packet that it follows has left.
inline bool ack_may_wait(const Channel& ch, Instant now) {
  if (ch.ack_wanted || ch.unacknowledged >= kPacketsPerAck || now >= ch.ack_due) return false;
  return !ch.peer_asked || low_bits(ch.next_psn) == ch.ack_follows;
}

// Does the peer wait for an acknowledgement? If not, the channel is on the list to confirm a failure (fused_ack.h).
inline bool is_owed(const Channel& ch) { return ch.ack_wanted || ch.unacknowledged != 0; }

// The acknowledgement to send now.
struct AckContent {
  bool selective;
  Psn cumulative;     // highest PSN before the first gap; on ROL before what has not executed (fused_ack.h); of a TPNAK
                      // the PSN behind that one (gap_report.h)
  uint8_t size_code;  // size of the bitmap, as SAETPH has it
  Psn highest;        // highest PSN accepted
  uint64_t bitmap[16];
};
AckContent make_ack(State& s, const Channel& ch);
// Sets the bitmap of an acknowledgement that is complete otherwise. One of Go-Back-N has none.
void fill_bitmap(State& s, const Channel& ch, AckContent* ack);
// Fills in an acknowledgement of all packets up to `cumulative`, and of what was received beyond.
inline void describe_received(State& s, const Channel& ch, Psn cumulative, AckContent* ack) {
  ack->size_code = 0;
  ack->cumulative = cumulative;
  ack->highest = ch.highest_seen;
  ack->selective = ch.highest_seen.after(cumulative);
  if (ack->selective) fill_bitmap(s, ch, ack);  // only then it travels
}
void ack_sent(Channel& ch);

}  // namespace ub::tp
