// SPDX-License-Identifier: Apache-2.0
//
// The percentiles that reports of latencies have besides the usual ones, so that they can be drawn as a distribution:
// from the 0.1th one on, and closer to each other where few are slow.
#pragma once

namespace ub::tools {

constexpr double kDrawnPercents[] = {0.1, 1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 99.999};

}  // namespace ub::tools
