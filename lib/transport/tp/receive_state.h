// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a channel (UB Base Specification Rev 2.0, 6.4.1): which PSNs were accepted, and which packets
// are kept until they can be delivered. This file does not know what a packet means; send_ack.h acknowledges it.
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

// The slot of a PSN in the bitmap and the table of a reorder block.
inline uint32_t slot_of(const State& s, Psn psn) { return psn.value() & (s.config.window_packets - 1); }

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

// KeptPackets::keep() for a packet of the channel.
uint32_t keep_packet(State& s, Channel& ch, const wire::RtpHeader& rtp, std::span<const std::byte> rest);

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

// Gives back the reorder block of the channel, if it has one, with all packets that are kept in it.
void release_reorder(State& s, Channel& ch);

}  // namespace ub::tp
