// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a channel (UB Base Specification Rev 2.0, 6.4.1): which PSNs were accepted, which packets are
// kept until they can be delivered, and what the acknowledgement says. This file does not know what a packet means.
#pragma once

#include <span>

#include "lib/transport/tp/state.h"
#include "lib/transport/wire/rtp_header.h"

namespace ub::tp {

enum class RxVerdict : uint8_t {
  kInOrder,       // the packet that is expected next
  kAhead,         // inside the window, beyond a gap
  kDuplicate,     // accepted before
  kBeyondWindow,  // too far ahead
};

RxVerdict classify(State& s, const Channel& ch, Psn psn);

// `waiting` says how an accepted packet waits for its delivery: it is the index of a KeptPacket with its bytes, or, if
// its bytes were placed into application memory already, kPlaced and the number of its message.
constexpr uint32_t kPlaced = 1u << 31;
constexpr uint32_t placed(Tpmsn message) { return kPlaced | message.value(); }
constexpr bool is_placed(uint32_t waiting) { return (waiting & kPlaced) != 0; }

// Accepts a packet whose verdict is kAhead.
void accept_ahead(State& s, Channel& ch, Psn psn, uint32_t waiting);
// Moves `expected` over everything that was accepted behind a gap.
void accept_what_follows(State& s, Channel& ch);
// Accepts the packet at `expected`. The cursor moves over it and over everything that was accepted behind it.
inline void accept_in_order(State& s, Channel& ch) {
  UB_DCHECK(ch.expected.distance(ch.delivered) < s.config.window_packets);
  if (ch.expected.after(ch.highest_seen)) ch.highest_seen = ch.expected;
  ++ch.expected;
  if (ch.reorder != 0) accept_what_follows(s, ch);
}

// Copies `rest`, the bytes behind the transport header, into a KeptPacket and returns its index; 0: they are too many,
// or the channel has its share of kept packets.
uint32_t keep_packet(State& s, Channel& ch, const wire::RtpHeader& rtp, std::span<const std::byte> rest);

// Frees a kept packet that is no longer needed.
void release_kept(State& s, Channel& ch, uint32_t index);

// Was the packet at the cursor `delivered` accepted earlier? Then `*waiting` says how it waits.
bool accepted_at_cursor(State& s, const Channel& ch, uint32_t* waiting);
// delivered_one() for a channel with a reorder block.
void delivered_before_gap(State& s, Channel& ch);
// The packet at the cursor `delivered` was delivered: the cursor moves on.
inline void delivered_one(State& s, Channel& ch) {
  UB_DCHECK(ch.delivered != ch.expected);  // a packet is accepted before it is delivered
  if (ch.reorder != 0) return delivered_before_gap(s, ch);
  ++ch.delivered;
}

// From now on the channel owes an acknowledgement.
void begin_to_owe(State& s, uint32_t channel, Instant now);
// A packet was accepted, or it is a duplicate: the channel owes an acknowledgement for it.
inline void note_for_ack(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp, RxVerdict verdict) {
  Channel& ch = s.channels[channel];
  ++ch.unacknowledged;
  ch.ack_wanted |= rtp.ack_req || verdict != RxVerdict::kInOrder;
  if (!ch.on_ack_list) begin_to_owe(s, channel, now);
}

// May the acknowledgement that is owed be delayed to cover more packets? Not if one is demanded, if it covers
// kPacketsPerAck packets already, or if kAckDelay has passed.
constexpr uint32_t kPacketsPerAck = 8;
constexpr Duration kAckDelay = microseconds(100);  // far below any retransmission timeout
inline bool ack_may_wait(const Channel& ch, Instant now) {
  return !ch.ack_wanted && ch.unacknowledged < kPacketsPerAck && now < ch.ack_due;
}

// The acknowledgement to send now.
struct AckContent {
  bool selective;
  Psn cumulative;     // highest PSN before the first gap
  uint8_t size_code;  // size of the bitmap, as SAETPH has it
  Psn highest;        // highest PSN accepted
  uint64_t bitmap[16];
};
AckContent make_ack(State& s, const Channel& ch);
void ack_sent(Channel& ch);

void release_reorder(State& s, Channel& ch);

}  // namespace ub::tp
