// SPDX-License-Identifier: Apache-2.0
//
// What passes through the seam of congestion control: what a sender is told of its network, and what it is then allowed.
// Values alone; who measures and who obeys is in flow.h. UB Base Specification Rev 2.0, 6.6.
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/base/time.h"

namespace ub::cc {

inline constexpr uint16_t kNoWindow = UINT16_MAX;

/// What stays the same while a flow lives. Its owner knows it, and says it with every signal.
struct Path {
  uint16_t most_packets = kNoWindow;             ///< in flight that its sender can keep track of
  uint32_t line_kbytes_per_second = UINT32_MAX;  ///< as fast as it may ever go; not zero
};

/// What a flow is allowed. Plain fields, so that to obey costs a comparison; whoever obeys copies what its packets touch
/// to where they touch it.
struct Verdict {
  Instant next_packet{};                ///< nothing leaves before
  Instant timer_at = Instant::never();  ///< timer() wants to be called then, whether anything happens or not
  uint32_t send_times = 0;              ///< block of SendTimes; 0: nobody wants round trips
  uint16_t window_packets = kNoWindow;  ///< in flight at most
  uint8_t ecn = 0;                      ///< code point of IP's ECN that its data leaves with
};

/// Packets are missing: the first of them, and the next new one. What is missing before `next` is of the same round trip.
struct Loss {
  Psn first, next;
};

/// A notification: packets of this flow met congestion (CNP of RoCEv2; CETPH of UB's CNP, 6.2.2).
struct Mark {
  bool severe = true;        ///< RoCE does not say
  bool at_last_hop = false;  ///< RoCE does not say
};

/// What the receiver says beside its acknowledgements (CETPH of LDCP and CAQM, 6.2.2). Totals run on, modulo 2^32.
struct Feedback {
  uint32_t received_words = 0;  ///< in all; a word is 2 bytes, each packet rounded up
  uint32_t marked_words = 0;    ///< LDCP: of them in marked packets, in all
  uint32_t granted_bytes = 0;   ///< CAQM: hints of switches since the last feedback
  uint8_t marked_packets = 0;   ///< CAQM: since the last feedback
  bool may_increase = false;    ///< CAQM: `granted_bytes` counts
  bool at_last_hop = false;     ///< CAQM
};

}  // namespace ub::cc
