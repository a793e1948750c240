// SPDX-License-Identifier: Apache-2.0
//
// Counts of one channel (channel_counts.def). They lie beside its record, which has no room for what is rare, and begin
// at 0 with each channel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/counters.h"

namespace ub {

enum class ChannelCount : uint8_t {
#define UB_CHANNEL_COUNT(id, name, total) id,
#include "lib/base/channel_counts.def"
#undef UB_CHANNEL_COUNT
};

inline constexpr const char* kChannelCountNames[] = {
#define UB_CHANNEL_COUNT(id, name, total) name,
#include "lib/base/channel_counts.def"
#undef UB_CHANNEL_COUNT
};
inline constexpr size_t kChannelCounts = sizeof kChannelCountNames / sizeof kChannelCountNames[0];

// The counter of all channels together.
constexpr Counter total_of(ChannelCount c) {
  constexpr Counter kTotals[] = {
#define UB_CHANNEL_COUNT(id, name, total) Counter::total,
#include "lib/base/channel_counts.def"
#undef UB_CHANNEL_COUNT
  };
  return kTotals[static_cast<size_t>(c)];
}

struct ChannelCounts {
  uint64_t v[kChannelCounts] = {};

  uint64_t operator[](ChannelCount c) const { return v[static_cast<size_t>(c)]; }
  bool operator==(const ChannelCounts&) const = default;
};

}  // namespace ub
