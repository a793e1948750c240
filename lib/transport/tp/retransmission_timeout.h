// SPDX-License-Identifier: Apache-2.0
//
// How long a sender waits for an acknowledgement before it sends again (UB Base Specification Rev 2.0, 6.4.2.1): a
// multiple of the smoothed round trip within limits, doubled with each timeout.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.h"

namespace ub::tp {

struct RtoLimits {
  uint32_t round_trips;  // length of the timeout, in smoothed round trips
  Duration min, max;
};

// The smoothed round trip after one more sample; `srtt` is zero if there was none yet.
constexpr Duration smoothed(Duration srtt, Duration sample) {
  return srtt.ns == 0 ? sample : Duration{srtt.ns + (sample.ns - srtt.ns) / 8};
}
constexpr Duration rto_of(Duration srtt, const RtoLimits& limits) {
  return std::clamp(srtt * limits.round_trips, limits.min, limits.max);
}
// The timeout after another one has expired.
constexpr Duration backed_off(Duration rto, const RtoLimits& limits) { return std::min(rto * 2, limits.max); }

}  // namespace ub::tp
