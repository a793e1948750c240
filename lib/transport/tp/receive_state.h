// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a channel (UB Base Specification Rev 2.0, 6.4.1): which PSNs were accepted, and which packets
// are kept until they can be delivered. This file does not know what a packet means; owed_ack.h acknowledges it.
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

// The slot of a PSN in the bitmap of a reorder block.
inline uint32_t slot_of(const State& s, Psn psn) { return psn.value() & (s.config.window_packets - 1); }

RxVerdict classify(State& s, const Channel& ch, Psn psn);

// Accepts a packet whose verdict is kAhead. It was kept until its delivery (keep_until_delivery()), or its bytes were
// placed into application memory.
void accept_ahead(State& s, Channel& ch, Psn psn);
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
// The same for a packet that is to be accepted, and that kept_at_cursor() finds. False: it was not kept.
bool keep_until_delivery(State& s, Channel& ch, const wire::RtpHeader& rtp, std::span<const std::byte> rest);

// Was the packet at the cursor `delivered` accepted earlier?
inline bool accepted_at_cursor(const Channel& ch) { return ch.delivered != ch.expected; }
// The index of the packet at the cursor, if it was kept until its delivery; 0: its bytes were placed.
inline uint32_t kept_at_cursor(const State& s, const Channel& ch) {
  return s.kept_by_psn.find(number_of(s, ch), ch.delivered);
}
// The packet at the cursor was delivered: the cursor moves on.
inline void delivered_one(Channel& ch) {
  UB_DCHECK(ch.delivered != ch.expected);  // a packet is accepted before it is delivered
  ++ch.delivered;
}
// delivered_one() for a packet that was kept, which is freed.
void delivered_kept(State& s, Channel& ch, uint32_t kept);

// Gives back the reorder block of the channel, if it has one, and all packets that were kept until their delivery.
void release_reorder(State& s, Channel& ch);

}  // namespace ub::tp
