// SPDX-License-Identifier: Apache-2.0
//
// What several paths are measured by: one host writes to another one, and each pair of their addresses is a path
// through a queue of the hop of its own (virtual_fabric.h). The paths have 100 Gb/s together, and an empty one takes 10
// us there and back, besides the time that its packets take to be sent.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/time.h"
#include "lib/transport/core_types.h"
#include "tests/bench/congestion_scenarios.h"

namespace ub::bench {

struct PathSpec {
  uint32_t paths = 4;
  Duration jitter{};        ///< of each path; its own order stays
  uint32_t window = 512;    ///< of the channel, packets
  Spread spread = Spread::kPackets;
  uint64_t seed = 1;
};

/// Goodput is that of WRITEs of 64 KiB that completed, 32 under way; bits per second.
struct PathResult {
  double whole = 0;            ///< with all paths
  double degraded = 0;         ///< the second path has a tenth of its rate
  double degraded_healed = 0;  ///< 10 ms after it has its rate again
  double cut = 0;              ///< the second path is cut, in both directions
  double cut_healed = 0;       ///< 100 ms after it is whole again
  Duration round_trip{};       ///< of the channel before the cut, with what waits in queues
  Duration stall{};            ///< after the cut: the longest time in which nothing completed
  uint64_t again = 0;          ///< packets that were sent again, in all
  uint64_t deaths = 0, lives = 0;  ///< of paths, in all, at the sender
  bool operator==(const PathResult&) const = default;
};
PathResult run_paths(const Algorithm& algorithm, const PathSpec& spec);

/// Bytes of completed WRITEs in the time that ends then.
struct PathPoint {
  Duration at{};               ///< since the curve began
  double bits_per_second = 0;
};
/// A point each 500 us: after 2 ms the second path has a tenth of its rate, after 5 ms all of it, after 8 ms it is cut,
/// and after 11 ms it is whole. The curve ends after 16 ms.
std::vector<PathPoint> path_curve(const Algorithm& algorithm, const PathSpec& spec);

}  // namespace ub::bench
