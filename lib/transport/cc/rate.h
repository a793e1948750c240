// SPDX-License-Identifier: Apache-2.0
//
// Rates, and the time that bytes take at a rate.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.h"

namespace ub::cc {

/// The nearest rate in whole kilobytes that is not zero.
constexpr uint32_t kbytes_per_second(uint64_t bytes_per_second) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(bytes_per_second / 1000, 1, UINT32_MAX));
}

/// `bytes_per_second` must not be zero. The result is rounded down.
constexpr Duration time_of(uint64_t bytes, uint64_t bytes_per_second) {
  constexpr unsigned __int128 kNsPerSecond = 1'000'000'000;
  return nanoseconds(static_cast<int64_t>(kNsPerSecond * bytes / bytes_per_second));
}

/// When the next packet may leave if one of so many bytes leaves now. `next`: when this packet might have left. A
/// packet that leaves later than that has saved nothing up.
constexpr Instant after_bytes(Instant next, Instant now, uint64_t bytes, uint64_t bytes_per_second) {
  return later(next, now) + time_of(bytes, bytes_per_second);
}

}  // namespace ub::cc
