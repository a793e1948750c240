// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/mappings.h"

#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace ub::sim {

Mappings::Mappings(World& world) : world_(world), rng_(world.options.seed ^ 0x3a99ed) {}

void Mappings::prepare(Node& node, Owner owner, Region& region) {
  constexpr double kShut = 0.05, kUnmapOpen = 0.02, kUnmapShut = 0.3, kMap = 0.5;
  Mapping& m = mappings_[{node.index(), node.epoch(), owner, region.uid}];
  if (!m.decided) m.wanted = rng_.chance(world_.options.core.mapped);
  m.decided = true;
  if (!m.wanted) return;
  if (m.handle != 0) {
    m.gate->unwanted |= rng_.chance(kShut);
    if (rng_.chance(m.gate->is_open() ? kUnmapOpen : kUnmapShut)) unmap(node, m);
  } else if (may_map(region) && rng_.chance(kMap)) {
    map(node, owner, region, m);
  }
}

bool Mappings::may_map(const Region& region) const {
  const Node& home = world_.node(region.node);
  return region.state == Region::State::kLive && home.up() && home.epoch() == region.epoch;
}

void Mappings::map(Node& node, Owner owner, Region& region, Mapping& m) {
  gates_.push_back({.region = &region, .token = region.token});
  m.gate = &gates_.back();
  const MappedConfig config{.instance = world_.instance_id(region.node, region.epoch),
                            .memory = region.memory(),
                            .gate = m.gate,
                            .address = region.address,
                            .length = region.length,
                            .token_id = region.registered.token_id,
                            .token = region.token,
                            .access = region.access,
                            .owner = owner};
  if (node.core().add_mapped(config, &m.handle) != Status::kOk) world_.model.fail("add_mapped was refused");
  world_.trace("node %u maps region %u for owner %u", node.index(), region.uid, owner);
}

void Mappings::unmap(Node& node, Mapping& m) {
  world_.trace("node %u unmaps region %u", node.index(), m.gate->region->uid);
  if (node.core().remove_mapped(m.handle) != Status::kOk) world_.model.fail("remove_mapped was refused");
  m.handle = 0;
}

}  // namespace ub::sim
