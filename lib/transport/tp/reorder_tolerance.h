// SPDX-License-Identifier: Apache-2.0
//
// How many packets that were sent after another may arrive before it is taken for lost. It begins with the limit of the
// configuration, follows what the network does and never exceeds that limit, unless the network proves it too small.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ub::tp {

struct ReorderTolerance {
  static constexpr uint16_t kLeastPackets = 3;
  static constexpr uint16_t kMostPackets = 512;
  static constexpr uint32_t kTrialPackets = 1024;

  uint16_t packets = 0;
  uint16_t latest = 0;     ///< the largest distance of this trial
  uint16_t in_trial = 0;   ///< packets that were acknowledged in this trial

  bool keeps_order() const { return packets <= kLeastPackets; }
  void begin(uint32_t limit) { *this = {static_cast<uint16_t>(limit)}; }
  /// A packet that was sent once arrived when `distance` packets that were sent after it had.
  void came_late(uint32_t distance) {
    latest = static_cast<uint16_t>(std::max<uint32_t>(latest, std::min<uint32_t>(distance, kMostPackets)));
    packets = std::max(packets, latest);
  }
  /// A packet was sent again that had arrived.
  void was_too_small() { packets = static_cast<uint16_t>(std::min<uint32_t>(packets * 2u, kMostPackets)); }
  /// Packets were acknowledged. If none of a trial was late by half as much, half of it is enough.
  void acknowledged(uint32_t count) {
    in_trial = static_cast<uint16_t>(in_trial + count);
    if (in_trial < kTrialPackets) return;
    if (2 * latest <= packets) packets = std::max<uint16_t>(packets / 2, kLeastPackets);
    latest = 0;
    in_trial = 0;
  }
};

}  // namespace ub::tp
