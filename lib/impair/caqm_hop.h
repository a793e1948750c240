// SPDX-License-Identifier: Apache-2.0
//
// The rule of a hop that speaks C-AQM (UB Base Specification Rev 2.0, 5.3.5 and 6.6, which leaves thresholds to the
// vendor). A sender asks for so many bytes more (CCI: I and Hint), for one packet more (the two-bit form over the ECN
// code point of IP: 01), or for nothing (10). congestion_mark.h makes one of both forms.
//
// The hop grants of each wish what lies between its queue and the target, in units of a hint and rounded up. From there
// on it refuses all (I is taken away, 01 becomes 10). Two bits have no parts: some of a packet is the whole of it. From
// a somewhat shorter queue on it marks packets by chance (C, 11), so that it grants and marks at the same time. The
// chance is the excess of the queue over that length, as a part of what is under way: what the hop sends in a round
// trip, and the queue. Each mark takes half a packet from its sender, so the marks of a round trip take half of the
// excess, and do not empty the queue while their effect is still on its way. All flows are granted equally often, but
// marked as often as they send, so a flow with more than its share loses more than it wins.
//
// It reads no clock. The same seed and packets give the same results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/prng.h"
#include "lib/impair/congestion_mark.h"
#include "lib/impair/spec.h"
#include "lib/transport/wire/congestion_header.h"
#include "lib/transport/wire/link_header.h"

namespace ub::impair {

/// What a hop says to a packet.
enum class CaqmAnswer : uint8_t {
  kNothing,  ///< it asks for nothing, was marked before, or belongs to a sender who does not want to know
  kGrant,    ///< of all that it asks for, or of a part
  kRefusal,
  kMark,
};

/// So many packets are the target of the public ns-3 model of UB.
inline constexpr uint32_t kUsualCaqmPackets = 10;

class CaqmHop {
 public:
  explicit CaqmHop(uint64_t seed) : prng_(seed) {}
  CaqmHop(uint64_t bits_per_second, const CaqmTarget& target, uint64_t seed) : prng_(seed) {
    set(bits_per_second, target);
  }

  /// Another rate or target. Random numbers go on.
  void set(uint64_t bits_per_second, const CaqmTarget& target) {
    grants_below_ = target.target_bytes;
    // Six tenths: of the lengths below the target this one keeps the line full and is fair.
    marks_above_ = static_cast<double>(target.target_bytes * 3 / 5);
    round_trip_bytes_ = static_cast<double>(bits_per_second) / 8e9 * static_cast<double>(target.round_trip.ns);
  }

  /// A packet finds so many bytes in front of it; its CCI becomes what it leaves with.
  CaqmAnswer pass(uint64_t queued_bytes, wire::Cci& cci) {
    const uint8_t code = congestion_code(cci);
    if (code == wire::kEcnNotCapable || code == wire::kEcnCe) return CaqmAnswer::kNothing;
    if (prng_.chance(mark_chance(queued_bytes))) {
      set_congestion_code(cci, wire::kEcnCe);
      return CaqmAnswer::kMark;
    }
    // Where the mode is not that of C-AQM, 01 is light congestion.
    if (cci.mode != wire::CciMode::kCaqm || code != wire::kEcnEct1) return CaqmAnswer::kNothing;
    cci.hint = static_cast<uint8_t>(std::min<uint64_t>(cci.hint, room(queued_bytes)));
    cci.increase = cci.hint != 0;
    return cci.increase ? CaqmAnswer::kGrant : CaqmAnswer::kRefusal;
  }
  /// The same of a frame with a CCI or a code point; others pass as they are.
  CaqmAnswer pass(uint64_t queued_bytes, std::span<std::byte> frame) {
    CaqmAnswer answer = CaqmAnswer::kNothing;
    change_congestion(frame, [&](wire::Cci& cci) {
      answer = pass(queued_bytes, cci);
      return answer != CaqmAnswer::kNothing;
    });
    return answer;
  }

  /// At most 1; negative if the queue is so short that nothing is marked.
  double mark_chance(uint64_t queued_bytes) const {
    const auto queued = static_cast<double>(queued_bytes);
    return (queued - marks_above_) / (queued + round_trip_bytes_);
  }

 private:
  /// What may be granted, as a hint.
  uint64_t room(uint64_t queued_bytes) const {
    const uint64_t bytes = grants_below_ - std::min(queued_bytes, grants_below_);
    return (bytes + wire::kCaqmHintUnitBytes - 1) / wire::kCaqmHintUnitBytes;
  }

  uint64_t grants_below_ = 0;    ///< bytes in the queue
  double marks_above_ = 0;       ///< bytes in the queue
  double round_trip_bytes_ = 0;  ///< what the hop sends in a round trip
  Prng prng_;
};

}  // namespace ub::impair
