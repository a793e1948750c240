// SPDX-License-Identifier: Apache-2.0
//
// What the senders of packets of CTP have in common (compact_sender.h, straight_sender.h).
#pragma once

#include "lib/transport/core_state.h"
#include "lib/transport/wire/compact_packet.h"

namespace ub::ta {

// The sum over everything behind LPH; if both ends agreed to leave it out, a zero takes its place.
struct CompactIcrc {
  bool wanted;
  uint32_t operator()(const std::byte* lph, size_t bytes) const {
    if (!wanted) return 0;
    return wire::icrc_compute_nth24(lph + wire::LinkHeader::kSize, bytes - wire::LinkHeader::kSize);
  }
};

// A packet has left. Packets are counted like those of RTP, so that both ends can be compared when all is quiet.
inline void count_compact(CoreState& s, tp::Channel& ch) {
  ch.oldest_unacked = ++ch.next_psn;
  ++ch.next_tpmsn;
  ++ch.tx_packets;
  s.count(Counter::kCtpTx);
}

// The message found the port full.
inline void let_wait(CoreState& s, tp::Channel& ch, const tp::TxMessage& message) {
  tp::TxMessage* m = ch.in_flight.push(s.messages);
  UB_ASSERT(m != nullptr);  // the pool holds a full window for every channel
  *m = message;
}

}  // namespace ub::ta
