// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/path_fault.h"

#include <array>

#include "tests/sim/world.h"

namespace ub::sim {

void fault_path_of(World& world, Prng& rng) {
  using PathFault = Network::PathFault;
  const auto a = static_cast<uint32_t>(rng.below(world.node_count()));
  auto b = static_cast<uint32_t>(rng.below(world.node_count()));
  if (a == b) b = (b + 1) % world.node_count();
  const auto number = static_cast<uint32_t>(rng.below(world.options.net.paths));
  constexpr std::array kFaults{PathFault::kCut, PathFault::kCut, PathFault::kLoses, PathFault::kSlow};
  const PathFault fault = kFaults[rng.below(kFaults.size())];
  const uint64_t most_ns = rng.chance(0.5) ? 1'000'000 : 50'000'000;
  const auto length = nanoseconds(static_cast<int64_t>(1 + rng.below(most_ns)));
  const bool both = rng.chance(0.5);
  world.trace("path %u of %u-%u has a fault for %lld us", number, a, b, static_cast<long long>(length.us()));
  Network& net = world.network;
  net.begin_path_fault(a, b, number, fault);
  if (both) net.begin_path_fault(b, a, number, fault);
  world.after(length, [&net, a, b, number, both] {
    net.end_path_fault(a, b, number);
    if (both) net.end_path_fault(b, a, number);
  });
}

}  // namespace ub::sim
