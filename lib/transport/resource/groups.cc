// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/resource/groups.h"

#include <algorithm>
#include <utility>

#include "lib/transport/resource/objects.h"

namespace ub {

namespace {

// How much a jetty can receive now: ring slots with posted receives, plus 1 if receives were given back. 0: a message
// to it would be refused.
uint32_t receives_waiting(const CoreState& s, uint32_t jetty) {
  const Jetty& j = s.jettys[jetty];
  const Jfr& r = s.jfrs[j.jfr];
  const QueueState state = s.queues[j.queue].state;
  if (r.state != QueueState::kReady || state == QueueState::kReset || state == QueueState::kError) return 0;
  const uint32_t posted = r.indices->produced.load(std::memory_order_acquire) - r.consumed;
  return (posted > r.mask + 1 ? 0 : posted) + (r.returned.empty() ? 0 : 1);
}

uint32_t next_ready(const CoreState& s, const Group& g) {
  for (uint32_t i = 0; i < g.count; ++i) {
    const uint32_t at = (g.next + i) % g.count;
    if (receives_waiting(s, g.members[at]) != 0) return at;
  }
  return g.next % g.count;
}

uint32_t best_supplied(const CoreState& s, const Group& g) {
  return static_cast<uint32_t>(
      std::max_element(g.members, g.members + g.count,
                       [&](uint32_t a, uint32_t b) { return receives_waiting(s, a) < receives_waiting(s, b); }) -
      g.members);
}

}  // namespace

Status create_group(CoreState& s, const GroupConfig& config, uint32_t* id) {
  const uint32_t index = s.groups.alloc();
  if (index == 0) return Status::kNoMemory;
  const uint32_t new_id = allocate_id(s, config.wanted_id);
  if (new_id == 0) {
    s.groups.free(index);
    return Status::kNoId;
  }
  Group& g = s.groups[index];
  g = Group{};
  g.id = new_id;
  g.token = config.token;
  g.owner = config.owner;
  g.policy = config.policy;
  s.ids[new_id] = IdSlot{index, 0, ObjectKind::kGroup};
  *id = new_id;
  return Status::kOk;
}

Status destroy_group(CoreState& s, uint32_t id) {
  if (id >= kIdSpace || s.ids[id].kind != ObjectKind::kGroup) return Status::kInvalid;
  const uint32_t group = s.ids[id].record;
  if (s.groups[group].count != 0) return Status::kBusy;
  release_id(s, id);
  s.groups.free(group);
  return Status::kOk;
}

uint32_t find_group(const CoreState& s, uint32_t id, Owner owner) {
  if (id >= kIdSpace || s.ids[id].kind != ObjectKind::kGroup) return 0;
  const uint32_t group = s.ids[id].record;
  return s.groups[group].owner == owner ? group : 0;
}

void join_group(CoreState& s, uint32_t group, uint32_t jetty) {
  Group& g = s.groups[group];
  UB_DCHECK(g.count < kMaxGroupMembers && s.jettys[jetty].group == 0);
  g.members[g.count++] = jetty;
  s.jettys[jetty].group = group;
}

void leave_group(CoreState& s, uint32_t jetty) {
  const uint32_t group = std::exchange(s.jettys[jetty].group, 0);
  if (group == 0) return;
  Group& g = s.groups[group];
  const uint32_t* end = std::remove(g.members, g.members + g.count, jetty);
  UB_DCHECK(end == g.members + g.count - 1);  // the jetty was a member exactly once
  g.count = static_cast<uint32_t>(end - g.members);
}

uint32_t choose_member(CoreState& s, uint32_t group, uint8_t hint) {
  Group& g = s.groups[group];
  if (g.count == 0) return 0;
  switch (g.policy) {
    case GroupPolicy::kHint:
      return g.members[hint % g.count];
    case GroupPolicy::kQueueDepth:
      return g.members[best_supplied(s, g)];
    case GroupPolicy::kRoundRobin:
      break;
  }
  const uint32_t at = next_ready(s, g);
  g.next = at + 1;
  return g.members[at];
}

}  // namespace ub
