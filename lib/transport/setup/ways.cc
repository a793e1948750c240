// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/setup/ways.h"

#include <algorithm>

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

}  // namespace ub::setup
