// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/resource/targets.h"

#include "lib/transport/resource/objects.h"
#include "lib/transport/setup/handshake.h"
#include "lib/transport/setup/peers.h"
#include "lib/transport/ta/request_state.h"

namespace ub {

Status add_target(CoreState& s, const TargetConfig& config, uint32_t* target) {
  if (config.path.link == 0 || config.path.link > s.links.high_water() || config.instance.uasid == 0) {
    return Status::kInvalid;
  }
  uint32_t index = s.targets.alloc();
  if (index == 0) return Status::kNoMemory;
  uint32_t peer = setup::find_or_add_peer(s, config);
  if (peer == 0) {
    s.targets.free(index);
    return Status::kNoMemory;
  }
  Target& t = s.targets[index];
  t = Target{};
  t.instance = config.instance;
  t.peer = peer;
  t.id = config.id;
  t.token = config.token;
  t.owner = config.owner;
  t.kind = config.kind;
  t.mode = config.mode;
  t.in_use = true;
  ++s.peers[peer].users;
  if (config.mode == Mode::kRm) setup::channel_to(s, peer, s.peers[peer].compact_mtu != 0 ? kCompactLane : kSmallLane);
  *target = index;
  return Status::kOk;
}

Status remove_target(CoreState& s, uint32_t target) {
  if (target == 0 || target > s.targets.high_water() || !s.targets[target].in_use) return Status::kInvalid;
  uint32_t peer = s.targets[target].peer;
  s.targets[target].in_use = false;
  forget_routes(s);
  s.targets.free(target);
  UB_DCHECK(s.peers[peer].users != 0);
  --s.peers[peer].users;
  setup::drop_unused_peer(s, peer);
  return Status::kOk;
}

Status bind_jetty(CoreState& s, uint32_t jetty, uint32_t target) {
  uint32_t record;
  Jetty* j = jetty_of(s, jetty, &record);
  if (j == nullptr || target == 0 || target > s.targets.high_water() || !s.targets[target].in_use) {
    return Status::kInvalid;
  }
  if (j->bound_target != 0 && j->bound_target != target) return Status::kExists;
  j->bound_target = target;
  const uint32_t peer = s.targets[target].peer;
  const SendQueue& q = s.queues[j->queue];
  const LaneKind lane = ta::compact_keeps_order(s, q, peer)
                            ? kOrderedCompactLane
                            : lane_kind(ta::ordered_by_channel(s, q, peer), q.pinned_bulk);
  setup::channel_to(s, peer, lane, ta::place_of(s, q, lane));
  return Status::kOk;
}

Status unbind_jetty(CoreState& s, uint32_t jetty) {
  uint32_t record;
  Jetty* j = jetty_of(s, jetty, &record);
  if (j == nullptr || j->bound_target == 0) return Status::kInvalid;
  j->bound_target = 0;
  return Status::kOk;
}

}  // namespace ub
