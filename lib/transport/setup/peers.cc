// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/peers.h"

#include <algorithm>

#include "lib/base/fnv.h"
#include "lib/transport/setup/channel_life.h"
#include "lib/transport/setup/terms.h"
#include "lib/transport/ta/datagram_queue.h"

namespace ub::setup {

namespace {

uint32_t bucket_of(const Eid& local, const Eid& remote) {
  const uint64_t h = fnv1a(remote.bytes, fnv1a(local.bytes));
  // The last bytes hardly change the upper half of `h`, but they do change the lower one.
  return static_cast<uint32_t>(h ^ h >> 32) % kPeerBuckets;
}

void set_path(CoreState& s, Peer& peer, const PeerAddress& path) {
  forget_routes(s);
  peer.path = path;
  const LinkConfig& link = s.links[path.link].config;
  const bool compact = carries_compact(s, link) && !peer.refuses_compact;
  peer.compact_loses = needs_repeats(link, kCompactLane);
  peer.compact_mtu = compact ? static_cast<uint16_t>(link.mtu) : 0;
  peer.compact_rol = compact && keeps_order_compactly(s, link) && !peer.refuses_compact_rol;
}

// A path that an application named is better than one that a request came by, over the same wire: datagrams take it,
// and say by its address who sent them. Else the newest one counts, while no channel uses the former.
bool is_better(const Peer& peer, const PeerAddress& path, bool named) {
  if (peer.path.link == 0) return true;
  if (peer.named != named && peer.path.link == path.link) return named;
  return !has_channels(peer);
}

uint32_t find_or_add(CoreState& s, const TargetConfig& target, uint32_t visitor, bool named) {
  Eid local = target.local_eid == Eid{} ? s.config.self.eid : target.local_eid;
  uint32_t bucket = bucket_of(local, target.instance.eid);
  for (uint32_t i = s.peer_buckets[bucket]; i != 0; i = s.peers[i].next_in_bucket) {
    Peer& peer = s.peers[i];
    if (peer.local_eid != local || peer.instance != target.instance) continue;
    if (peer.owner != target.owner || peer.visitor != visitor) continue;
    if (is_better(peer, target.path, named)) {
      set_path(s, peer, target.path);
      peer.named = named;
    }
    return i;
  }
  uint32_t index = s.peers.alloc();
  if (index == 0) return 0;
  Peer& peer = s.peers[index];
  peer = Peer{};
  peer.local_eid = local;
  peer.instance = target.instance;
  peer.owner = target.owner;
  peer.visitor = visitor;
  set_path(s, peer, target.path);
  peer.named = named;
  peer.in_use = true;
  peer.next_in_bucket = s.peer_buckets[bucket];
  s.peer_buckets[bucket] = index;
  return index;
}

}  // namespace

uint32_t find_or_add_peer(CoreState& s, const TargetConfig& target) { return find_or_add(s, target, 0, true); }

uint32_t find_or_add_asking_peer(CoreState& s, const TargetConfig& sender, uint32_t visitor) {
  return find_or_add(s, sender, visitor, false);
}

void leave_compact(CoreState& s, uint32_t peer, uint32_t lane) {
  forget_routes(s);
  s.peers[peer].compact_rol = false;
  if (!is_ordered(lane)) s.peers[peer].compact_mtu = 0;
}

bool has_channels(const Peer& peer) {
  for (const Lane& lane : peer.lanes) {
    for (uint32_t channel : lane.channels) {
      if (channel != 0) return true;
    }
  }
  return false;
}

bool is_connected(const Peer& peer) {
  return has_channels(peer) || std::ranges::any_of(peer.lanes, [](const Lane& lane) {
           return std::ranges::any_of(lane.accepted, [](uint32_t channel) { return channel != 0; });
         });
}

void drop_unused_peer(CoreState& s, uint32_t index) {
  Peer& peer = s.peers[index];
  if (peer.users != 0) return;
  UB_DCHECK(peer.in_use && peer.contexts == 0);
  UB_DCHECK(std::ranges::all_of(peer.lanes, [](const Lane& lane) { return lane == Lane{}; }));
  uint32_t* link = &s.peer_buckets[bucket_of(peer.local_eid, peer.instance.eid)];
  while (*link != index) {
    UB_DCHECK(*link != 0);
    link = &s.peers[*link].next_in_bucket;
  }
  *link = peer.next_in_bucket;
  peer.in_use = false;
  s.peers.free(index);
}

bool is_self(const CoreState& s, const Peer& peer) {
  return peer.instance.uasid == s.config.self.uasid &&
         std::find(s.eids, s.eids + s.eid_count, peer.instance.eid) != s.eids + s.eid_count;
}

void link_down(CoreState& s, uint32_t link) {
  UB_DCHECK(!s.links[link].up);
  for (uint32_t i = 1; i <= s.peers.high_water(); ++i) {
    if (s.peers[i].in_use && s.peers[i].path.link == link) s.peers[i].path.link = 0;
  }
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    if (s.channels[i].link == link) kill_channel(s, i);
  }
  ta::leave_link(s, link);
}

}  // namespace ub::setup
