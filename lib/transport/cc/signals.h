// SPDX-License-Identifier: Apache-2.0
//
// The values that pass the border of congestion control: what a sender is told of its network, and what it may then do.
// flow.h says who measures and who obeys. UB Base Specification Rev 2.0, 6.6.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/base/time.h"
#include "lib/transport/cc/constants.h"

namespace ub::cc {

inline constexpr uint16_t kNoWindow = UINT16_MAX;

/// What the owner of a flow knows of its way, and passes with every signal. All but `in_flight` stays the same while
/// the flow lives.
struct Path {
  uint16_t most_packets = kNoWindow;             ///< most packets in flight that the sender can keep track of
  uint16_t packet_bytes = 1024;                  ///< longest data packet, with all its headers
  uint32_t line_kbytes_per_second = UINT32_MAX;  ///< the highest rate that it may ever have; not zero
  bool has_hints = false;  ///< packets say how many bytes they ask for (CCI of C-AQM), and not only that they ask
  uint32_t in_flight = 0;  ///< packets: before one that leaves now, or after those that were acknowledged now
  const Constants* constants = &kUsualConstants;  ///< they outlive the flow
};

/// What a flow allows. It is a plain value, so that to obey it costs a comparison. The sender copies the fields that
/// each of its packets needs to where its packets look.
struct Verdict {
  Instant next_packet{};                ///< no packet leaves before
  Instant timer_at = Instant::never();  ///< timer() wants to be called then, whatever happens meanwhile
  uint32_t send_times = 0;              ///< its block of SendTimes; 0: it wants no round trips
  uint16_t window_packets = kNoWindow;  ///< most packets in flight
  uint8_t ecn = 0;                      ///< ECN code point of IP that its data leaves with
};

/// Packets are missing: the first of them, and the next new packet. All that is missing before `next` belongs to the
/// same round trip.
struct Loss {
  Psn first, next;
};

/// A notification: packets of this flow met congestion (CNP of RoCEv2; CETPH of UB's CNP, 6.2.2).
struct Mark {
  bool severe = true;        ///< RoCE does not say
  bool at_last_hop = false;  ///< RoCE does not say
};

/// What the receiver reports beside its acknowledgements (CETPH of LDCP and CAQM, 6.2.2). Totals wrap modulo 2^32.
struct Feedback {
  uint32_t received_words = 0;  ///< total; a word is 2 bytes, and each packet is rounded up
  uint32_t marked_words = 0;    ///< LDCP: total of the words in marked packets
  uint32_t granted_bytes = 0;   ///< CAQM: sum of the hints of switches since the last feedback
  uint8_t marked_packets = 0;   ///< CAQM: marked packets since the last feedback
  bool may_increase = false;    ///< CAQM: `granted_bytes` counts
  bool at_last_hop = false;     ///< CAQM
};

}  // namespace ub::cc
