// SPDX-License-Identifier: Apache-2.0
//
// SCNA and DCNA of TP bypass over frames are the indices of the two ends of a channel, which are TPNs without their
// generations. So identity, restart and death of the peer are the channel's, and neither end keeps anything else.
//
// An index alone does not tell the lives of its record apart: frames that were sent in the former one may still come.
// No frame is under way for longer than kFrameLife, so a record that rested for so long is safe, and so is a channel
// that is that old. Only where all records are used up is one taken that has not rested (setup/channel_life.cc).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/tp/channel.h"
#include "lib/transport/wire/control_record.h"

namespace ub::bypass {

// A link that carries TP bypass delivers a frame within so much time or never.
constexpr Duration kFrameLife = seconds(2);

constexpr uint16_t cna_of(uint32_t tpn) { return static_cast<uint16_t>(tpn); }
static_assert(tp::kTpnIndexBits == 16);

// Can no frame of a former life of this channel's record come any more?
inline bool has_no_past(const CoreState& s, const tp::Channel& ch) {
  if (s.now - ch.created_at >= kFrameLife) return true;
  return s.config.id_rest >= kFrameLife && s.channels.high_water() < s.channels.capacity();
}

// Do the links at both of its ends carry loads and stores?
inline bool carries_bypass(const tp::Channel& ch) { return (ch.record_flags & wire::kRecordBypass) != 0; }

// The channel that a frame which came by `link` names with these addresses; 0: there is none.
inline uint32_t channel_of_pair(const CoreState& s, uint32_t link, uint16_t dcna, uint16_t scna) {
  if (dcna == 0 || dcna > s.channels.high_water()) return 0;
  const tp::Channel& ch = s.channels[dcna];
  const bool lives = ch.state == tp::ChannelState::kOpen || ch.state == tp::ChannelState::kHalfOpen;
  const bool fits = lives && ch.link == link && cna_of(ch.peer_tpn) == scna;
  return fits && carries_bypass(ch) && has_no_past(s, ch) ? dcna : 0;
}

}  // namespace ub::bypass
