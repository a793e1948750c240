// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/wire/compact_packet.h"
#include "tests/sim/congestion_mark.h"
#include "tests/sim/world.h"

namespace ub::sim {
namespace {

// A frame of so many bytes leaves on the path behind those before it. Returns when it has left.
uint64_t leave(auto& path, const NetworkOptions& o, uint64_t now, size_t bytes) {
  const auto takes = static_cast<uint64_t>(o.ns_per_byte * static_cast<double>(bytes));
  path.busy_ns += takes;
  return path.free_at = std::max(now, path.free_at) + takes;
}

}  // namespace

Network::Network(World& world, uint64_t seed) : world_(world), rng_(seed), paths_(kMaxNodes * kMaxNodes) {}

void Network::add_node(uint32_t node, const wire::Endpoint& at) {
  routes_.emplace_back(at, node);
  if (at.port == wire::kUbUdpPort) routes_.emplace_back(wire::Endpoint{at.ip, roce::kUdpPort}, node);
}

// A frame without IP finds its way by its Ethernet address.
uint32_t Network::route(std::span<const std::byte> frame) const {
  if (wire::has_link_header(frame)) {
    for (const auto& [at, node] : routes_) {
      const wire::MacAddress mac = wire::stand_in_mac(at);
      if (std::memcmp(mac.data(), frame.data(), mac.size()) == 0) return node;
    }
    return UINT32_MAX;
  }
  wire::NetHeader net;
  if (wire::parse_network(frame, net) != wire::Drop::kNone) return UINT32_MAX;
  for (const auto& [at, node] : routes_)
    if (at == net.dst) return node;
  return UINT32_MAX;
}

Frame Network::copy(const Frame& f) {
  Frame c{std::make_unique<std::byte[]>(f.bytes), f.bytes};
  std::memcpy(c.data.get(), f.data.get(), f.bytes);
  return c;
}

bool Network::lost(Path& p) {
  const NetworkOptions& o = world_.options.net;
  if (p.burst > 0) {
    --p.burst;
    return true;
  }
  if (rng_.chance(o.burst_start))
    p.burst = 1 + static_cast<uint32_t>(rng_.below(2 * static_cast<uint64_t>(o.burst_packets)));
  return rng_.chance(o.loss);
}

void Network::damage(uint32_t from, Frame& f) {
  uint64_t flips = rng_.between(1, 3);
  for (uint64_t i = 0; i < flips; ++i) {
    uint64_t at = rng_.between(wire::kEthSize, f.bytes - 1);
    f.data[at] ^= static_cast<std::byte>(1u << rng_.below(8));
  }
  // No sum over IPv6 covers the ECN bits, so damage may read as congestion.
  wire::NetHeader net;
  if (wire::parse_network(f.span(), net) == wire::Drop::kNone && net.met_congestion())
    departures.marked(from, world_.node(from).epoch(), f.span());
}

// Only what its sender says may be marked.
void Network::mark(uint32_t from, Frame& f) {
  if (!mark_congestion({f.data.get(), f.bytes})) return;
  ++marked_;
  departures.marked(from, world_.node(from).epoch(), f.span());
}

// From now until arrival, without reordering of its own.
uint64_t Network::travel_time(Path& p, size_t bytes) {
  const NetworkOptions& o = world_.options.net;
  uint64_t now = world_.now().ns;
  uint64_t at = leave(p, o, now, bytes) + o.delay_ns + (o.jitter_ns == 0 ? 0 : rng_.below(o.jitter_ns));
  at = std::max(at, p.last_at);  // jitter alone keeps the order
  p.last_at = at;
  return at - now;
}

bool Network::full(uint32_t from) const {
  for (uint32_t to = 0; world_.options.net.port_ns != 0 && to < kMaxNodes; ++to)
    if (paths_[from * kMaxNodes + to].free_at > world_.now().ns + world_.options.net.port_ns) return true;
  if (!world_.options.lossless) return false;
  uint32_t queued = 0;
  for (uint32_t to = 0; to < kMaxNodes; ++to) queued = std::max(queued, paths_[from * kMaxNodes + to].queued);
  return queued >= world_.options.net.queue_frames;
}

void Network::send(uint32_t from, Frame f) {
  uint32_t to = route(f.span());
  world_.trace_frame("tx", from, to, f.span());
  if (to == UINT32_MAX) return world_.model.fail("node %u sent a frame that no instance is meant to get", from);
  departures.left(from, world_.node(from).epoch(), f.span());
  if (f.bytes - wire::kEthSize > world_.options.net.path_mtu) return;
  const TamperRule* rule = tamper.armed() ? tamper.decide(inspect(from, to, f.span())) : nullptr;
  carry(from, to, std::move(f), rule);
}

void Network::inject(uint32_t from, std::span<const std::byte> bytes) {
  Frame f{std::make_unique<std::byte[]>(bytes.size()), static_cast<uint32_t>(bytes.size())};
  std::memcpy(f.data.get(), bytes.data(), bytes.size());
  uint32_t to = route(f.span());
  world_.trace_frame("inject", from, to, f.span());
  carry(from, to, std::move(f), nullptr);
}

void Network::carry(uint32_t from, uint32_t to, Frame f, const TamperRule* rule) {
  using Action = TamperRule::Action;
  const NetworkOptions& o = world_.options.net;
  Path& p = path(from, to);
  uint64_t now = world_.now().ns;
  Action action = rule == nullptr ? Action::kPass : rule->action;
  if (p.cut || action == Action::kDrop) return;
  if (action == Action::kCorrupt) damage(from, f);
  if (action == Action::kRewrite) {
    rule->rewrite({f.data.get(), f.bytes});
    reseal({f.data.get(), f.bytes});
  }
  if (action == Action::kDelay) {
    deliver_at(now + static_cast<uint64_t>(rule->delay.ns), from, to, std::move(f));
    return;
  }
  if (action == Action::kDuplicate) deliver_at(now + static_cast<uint64_t>(rule->delay.ns), from, to, copy(f));
  if (action == Action::kSwap && p.swapped.data == nullptr) {
    p.swapped = std::move(f);
    return;
  }
  Frame swapped = std::exchange(p.swapped, {});
  if (!healed_) {
    if (!world_.options.lossless && p.queued >= o.queue_frames) return;
    if (lost(p)) {  // behind the port
      leave(p, o, now, f.bytes);
      return;
    }
    if (rng_.chance(o.mark)) mark(from, f);
    if (rng_.chance(o.corrupt)) damage(from, f);
    if (rng_.chance(o.duplicate)) {
      uint64_t extra = rng_.chance(o.lifetime * 10) ? rng_.below(o.lifetime_ns) : rng_.below(2 * o.reorder_ns);
      deliver_at(now + std::min(o.lifetime_ns, o.delay_ns + extra), from, to, copy(f));
    }
  }
  uint64_t travel = travel_time(p, f.bytes);
  if (!healed_) {
    if (rng_.chance(o.reorder)) travel += rng_.below(o.reorder_ns);
    if (rng_.chance(o.lifetime)) travel += rng_.below(o.lifetime_ns);
  }
  if (!healed_ && o.late_packets != 0) return deliver_late(now + travel, from, to, std::move(f));
  deliver_at(now + std::min(travel, o.lifetime_ns), from, to, std::move(f));
  if (swapped.data != nullptr) deliver_at(now + std::min(travel + 1, o.lifetime_ns), from, to, std::move(swapped));
}

// Every second frame arrives behind up to `late_packets` of those that leave after it. If fewer come, it arrives when
// they would have, were they as long as can be.
void Network::deliver_late(uint64_t when_ns, uint32_t from, uint32_t to, Frame f) {
  const NetworkOptions& o = world_.options.net;
  Path& p = path(from, to);
  const uint64_t behind = p.carried++ % 2 == 0 ? 0 : rng_.between(1, o.late_packets);
  const uint64_t ticket = deliver_at(when_ns + behind * o.late_packet_ns, from, to, std::move(f));
  overtake(p, when_ns);
  if (behind != 0) p.late.push_back({ticket, behind});
}

// A frame arrives then, and passes all that are late.
void Network::overtake(Path& p, uint64_t when_ns) {
  std::erase_if(p.late, [&](Late& late) {
    if (--late.overtaken_by != 0) return false;
    world_.plan_delivery(when_ns, late.ticket);
    return true;
  });
}

uint64_t Network::deliver_at(uint64_t when_ns, uint32_t from, uint32_t to, Frame f) {
  uint32_t slot;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  Slot& s = slots_[slot];
  s = {std::move(f), from, to, s.number + 1};
  ++path(from, to).queued;
  least_travel_ns_ = std::min(least_travel_ns_, when_ns - world_.now().ns);
  const uint64_t ticket = uint64_t{s.number} << 32 | slot;
  world_.plan_delivery(when_ns, ticket);
  return ticket;
}

Frame Network::take(uint64_t ticket, uint32_t* to) {
  const auto slot = static_cast<uint32_t>(ticket);
  Slot& s = slots_[slot];
  *to = s.to;
  if (s.frame.data == nullptr || s.number != ticket >> 32) return {};
  --path(s.from, s.to).queued;
  free_slots_.push_back(slot);
  return std::move(s.frame);
}

void Network::cut(uint32_t a, uint32_t b, bool cut) {
  path(a, b).cut = cut;
  path(b, a).cut = cut;
}

void Network::heal() {
  healed_ = true;
  for (Path& p : paths_) p.cut = false;
}

}  // namespace ub::sim
