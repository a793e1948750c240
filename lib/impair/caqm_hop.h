// SPDX-License-Identifier: Apache-2.0
//
// The rule of a hop that speaks C-AQM in its two-bit form, over the ECN code point of IP (UB Base Specification Rev
// 2.0, 5.3.5 and 6.6, which leaves thresholds to the vendor). A sender wants one packet more (01) or nothing (10).
//
// The hop grants every wish while its queue is shorter than the target, and refuses all others (01 becomes 10). From a
// somewhat shorter queue on it marks packets by chance (11), so that it grants and marks at the same time. The chance
// is the excess of the queue over that length, as a part of what is under way: what the hop sends in a round trip, and
// the queue. Each mark takes half a packet from its sender, so the marks of a round trip take half of the excess, and
// do not empty the queue while their effect is still on its way. All flows are granted equally often, but marked as
// often as they send, so a flow with more than its share loses more than it wins.
//
// It reads no clock. The same seed and packets give the same results.
#pragma once

#include <cstdint>

#include "lib/base/prng.h"
#include "lib/base/time.h"
#include "lib/transport/wire/network_header.h"

namespace ub::impair {

struct CaqmHopConstants {
  uint64_t bits_per_second = 0;       ///< of the hop
  uint32_t packet_bytes = 4096 + 62;  ///< longest packet, with its headers
  /// No wish is granted from such a queue on. Source: the public ns-3 model of UB.
  uint32_t target_queue_packets = 10;
  /// Nothing is marked up to such a queue. Of the lengths below the target this one keeps the line full and is fair.
  uint32_t unmarked_queue_packets = 6;
  /// About that of the flows, without queues. Too small a value leaves a part of the line unused. With too large a one
  /// the shares become equal more slowly.
  Duration round_trip = microseconds(10);
};

class CaqmHop {
 public:
  CaqmHop(const CaqmHopConstants& constants, uint64_t seed)
      : grants_below_(bytes(constants.target_queue_packets, constants)),
        marks_above_(static_cast<double>(bytes(constants.unmarked_queue_packets, constants))),
        round_trip_bytes_(static_cast<double>(constants.bits_per_second) / 8e9 *
                          static_cast<double>(constants.round_trip.ns)),
        prng_(seed) {}

  /// A packet finds so many bytes in front of it. Returns the code point that it leaves with.
  uint8_t pass(uint64_t queued_bytes, uint8_t ecn) {
    if (ecn == wire::kEcnNotCapable) return ecn;
    if (prng_.chance(mark_chance(queued_bytes))) return wire::kEcnCe;
    if (ecn != wire::kEcnEct1) return ecn;
    return queued_bytes < grants_below_ ? ecn : wire::kEcnEct0;
  }

  /// At most 1; negative if the queue is so short that nothing is marked.
  double mark_chance(uint64_t queued_bytes) const {
    const auto queued = static_cast<double>(queued_bytes);
    return (queued - marks_above_) / (queued + round_trip_bytes_);
  }

 private:
  static uint64_t bytes(uint64_t packets, const CaqmHopConstants& constants) {
    return packets * constants.packet_bytes;
  }

  uint64_t grants_below_;    ///< bytes in the queue
  double marks_above_;       ///< bytes in the queue
  double round_trip_bytes_;  ///< what the hop sends in a round trip
  Prng prng_;
};

}  // namespace ub::impair
