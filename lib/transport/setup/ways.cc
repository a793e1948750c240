// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/ways.h"

#include <algorithm>
#include <iterator>

#include "lib/transport/tp/paths.h"

namespace ub::setup {
namespace {

// Is the path one between these hosts, and does it choose this peer?
bool concerns(const ExtraPath& extra, const PeerAddress& usual) {
  if (extra.peer != wire::IpAddress{}) return extra.peer == usual.remote.ip;
  return extra.local.ip == usual.local.ip;
}

}  // namespace

bool offers_paths(const CoreState& s, const LinkConfig& link, uint32_t lane) {
  return s.config.most_paths > 1 && !link.lossless && !is_compact(lane);
}

bool Ways::has(const Arrival& from) const {
  if (from.remote.ip == ways_[0].remote.ip) return true;
  const auto leads = [&](const Way& w) { return w.remote.ip == from.remote.ip && w.local == from.local; };
  return std::ranges::any_of(all(), leads);
}

void Ways::add(const Way& way) {
  const auto is_it = [&](const Way& w) { return w.local == way.local && w.remote == way.remote; };
  if (count_ != std::size(ways_) && !std::ranges::any_of(all(), is_it)) ways_[count_++] = way;
}

namespace {

// What other channels to the same instance have found to work. In a daemon each application has peers and channels of
// its own, of which only the peer may know more than one path.
void add_those_of_channels(const CoreState& s, const Peer& peer, Ways* ways) {
  if (s.path_blocks.in_use() == 0) return;
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    const tp::Channel& ch = s.channels[i];
    if (!ch.is_up() || !ch.several_paths || ch.link != peer.path.link) continue;
    if (s.peers[ch.peer].instance != peer.instance) continue;
    for (const tp::Path& p : tp::paths_of(s, ch))
      if (p.live) ways->add({p.local, p.remote});
  }
}

}  // namespace

Ways ways_to(const CoreState& s, const PeerAddress& usual, uint32_t lane) {
  Ways ways;
  ways.add({usual.local, usual.remote});
  if (!offers_paths(s, s.links[usual.link].config, lane)) return ways;
  for (const ExtraPath& extra : std::span(s.extra_paths, s.extra_path_count)) {
    if (!concerns(extra, usual)) continue;
    wire::Endpoint remote = usual.remote;
    if (extra.remote != wire::IpAddress{}) remote.ip = extra.remote;
    ways.add({extra.local, remote});
  }
  return ways;
}

Ways ways_to(const CoreState& s, const Peer& peer, uint32_t lane) {
  Ways ways = ways_to(s, peer.path, lane);
  if (offers_paths(s, s.links[peer.path.link].config, lane)) add_those_of_channels(s, peer, &ways);
  return ways;
}

}  // namespace ub::setup
