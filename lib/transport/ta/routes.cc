// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ta/routes.h"

#include <algorithm>

namespace ub::ta {

namespace {

// Does nothing but its target decide which channel carries its straight requests, and when?
bool may_have_routes(const SendQueue& q) {
  return !keeps_order(q) && !q.takes_other_turns && q.limits == nullptr;
}

// May shorter requests than the one that was chosen for take this channel, too? Where there is CTP, they go by that.
bool carries_all(const CoreState& s, const SendQueue& q, const tp::Channel& ch) {
  return ch.compact ? ch.repeats == 0 : !is_bulk(ch.lane) && !(q.compact && s.peers[ch.peer].compact_mtu != 0);
}

}  // namespace

void note_route(CoreState& s, const SendQueue& q, const Wqe& wqe, uint32_t channel) {
  const tp::Channel& ch = s.channels[channel];
  const uint32_t most = std::min<uint32_t>(ch.mtu, s.config.lane_bulk_bytes);
  if (!s.config.straight || !ch.is_up() || wqe.length > most) return;
  if (!may_have_routes(q) || !carries_all(s, q, ch)) return;
  const auto queue = static_cast<uint32_t>(&q - &s.queues[0]);
  route_of(s, queue, wqe.target) = {s.route_epoch, queue, wqe.target, channel, most};
}

}  // namespace ub::ta
