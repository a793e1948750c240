// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a channel (UB Base Specification Rev 2.0, 6.4.1): which PSNs were accepted, what is kept
// ahead of what can be delivered, and the acknowledgement that says so. What a packet means is not known here.
#pragma once

#include <span>

#include "lib/transport/tp/state.h"
#include "lib/transport/wire/rtp_header.h"

namespace ub::tp {

enum class RxVerdict : uint8_t {
  kInOrder,       // the next one
  kAhead,         // inside the window, beyond a gap
  kDuplicate,     // accepted before
  kBeyondWindow,  // too far ahead
};

RxVerdict classify(State& s, const Channel& ch, Psn psn);

// How an accepted packet waits for its delivery: kept with its bytes (their index), or, when its bytes are already
// where they belong, as the number of its message.
constexpr uint32_t kPlaced = 1u << 31;
constexpr uint32_t placed(Tpmsn message) { return kPlaced | message.value(); }
constexpr bool is_placed(uint32_t waiting) { return (waiting & kPlaced) != 0; }

void accept_ahead(State& s, Channel& ch, Psn psn, uint32_t waiting);
// Moves `expected` over everything that was accepted behind a gap.
void accept_what_follows(State& s, Channel& ch);
// The packet at `expected` was accepted; `expected` moves over everything accepted behind it.
inline void accept_in_order(State& s, Channel& ch) {
  UB_DCHECK(ch.expected.distance(ch.delivered) < s.config.window_packets);
  if (ch.expected.after(ch.highest_seen)) ch.highest_seen = ch.expected;
  ++ch.expected;
  if (ch.reorder != 0) accept_what_follows(s, ch);
}

// Copies what lies behind the transport header into a kept packet; 0: the channel has its share of them.
uint32_t keep_packet(State& s, Channel& ch, const wire::RtpHeader& rtp, std::span<const std::byte> rest);

// A kept packet that nobody needs any more.
void release_kept(State& s, Channel& ch, uint32_t index);

// Is the packet at the delivery cursor one that was accepted earlier?
bool accepted_at_cursor(State& s, const Channel& ch, uint32_t* waiting);
// delivered_one() where packets are missing, or were.
void delivered_before_gap(State& s, Channel& ch);
// The packet at the delivery cursor is done with.
inline void delivered_one(State& s, Channel& ch) {
  UB_DCHECK(ch.delivered != ch.expected);  // what was not accepted is not delivered
  if (ch.reorder != 0) return delivered_before_gap(s, ch);
  ++ch.delivered;
}

// An acknowledgement is owed from now on.
void begin_to_owe(State& s, uint32_t channel, Instant now);
// An acknowledgement is owed for a packet that was accepted or seen before.
inline void note_for_ack(State& s, uint32_t channel, Instant now, const wire::RtpHeader& rtp, RxVerdict verdict) {
  Channel& ch = s.channels[channel];
  ++ch.unacknowledged;
  ch.ack_wanted |= rtp.ack_req || verdict != RxVerdict::kInOrder;
  if (!ch.on_ack_list) begin_to_owe(s, channel, now);
}

// May the acknowledgement that is owed wait for more packets? Not when one is demanded, eight packets are owed one, or
// its time has come.
constexpr uint32_t kPacketsPerAck = 8;
constexpr Duration kAckDelay = microseconds(100);  // far below any retransmission timeout
inline bool ack_may_wait(const Channel& ch, Instant now) {
  return !ch.ack_wanted && ch.unacknowledged < kPacketsPerAck && now < ch.ack_due;
}

// The acknowledgement to send now.
struct AckContent {
  bool selective;
  Psn cumulative;  // highest PSN before the first gap
  uint8_t size_code;
  Psn highest;
  uint64_t bitmap[16];
};
AckContent make_ack(State& s, const Channel& ch);
void ack_sent(Channel& ch);

void release_reorder(State& s, Channel& ch);

}  // namespace ub::tp
