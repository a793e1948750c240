// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "lib/impair/congestion_mark.h"
#include "lib/transport/roce/wire/bth.h"
#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/compact_packet.h"
#include "tests/sim/apertures.h"
#include "tests/sim/world.h"

namespace ub::sim {

namespace {

constexpr uint32_t kNoLimit = UINT32_MAX;  // the queue is looked at here, as lossless wires wait instead

impair::Spec link_of(const NetworkOptions& o) {
  impair::Spec s;
  if (o.ns_per_byte != 0) s.rate = static_cast<uint64_t>(std::llround(8e9 / o.ns_per_byte));
  s.delay.ns = static_cast<int64_t>(std::min(o.delay_ns, o.lifetime_ns));
  s.jitter.ns = static_cast<int64_t>(o.jitter_ns);
  s.loss = o.loss;
  if (o.burst_start != 0) {
    s.burst = o.burst_packets;
    s.loss = std::min(0.5, o.loss + o.burst_start * o.burst_packets);
  }
  s.reorder = o.reorder_packets;
  s.wait.ns = static_cast<int64_t>(o.reorder_wait_ns);
  return s;
}

}  // namespace

Network::Network(World& world, uint64_t seed) : world_(world), rng_(seed) {
  const impair::Spec spec = link_of(world.options.net);
  for (uint32_t i = 0; i < kMaxNodes * kMaxNodes * kMaxPaths; ++i) {
    const uint64_t number = i / kMaxPaths + uint64_t{i % kMaxPaths} * kMaxNodes * kMaxNodes;
    paths_.push_back({.link = impair::Link(spec, seed * kMaxNodes * kMaxNodes + number, {}, kNoLimit), .swapped = {}});
  }
}

wire::Endpoint endpoint_of_path(const wire::Endpoint& usual, uint32_t path, bool by_address) {
  constexpr uint16_t kFirstPort = 30'000;
  if (path == 0) return usual;
  wire::Endpoint at = usual;
  if (by_address) {
    at.ip.bytes[13] = static_cast<uint8_t>(at.ip.bytes[13] + 16 * path);
  } else {
    at.port = static_cast<uint16_t>(kFirstPort + usual.port % 1000 * kMaxPaths + path);
  }
  return at;
}

void Network::add_node(uint32_t node, const wire::Endpoint& at) {
  const NetworkOptions& o = world_.options.net;
  for (uint32_t i = 0; i < o.paths; ++i) addresses_.push_back({endpoint_of_path(at, i, o.paths_by_address), node, i});
  if (at.port == wire::kUbUdpPort) addresses_.push_back({{at.ip, roce::kUdpPort}, node, 0});
}

const Network::Address* Network::address_of(const wire::Endpoint& at) const {
  const auto found = std::find_if(addresses_.begin(), addresses_.end(), [&](const Address& a) { return a.at == at; });
  return found == addresses_.end() ? nullptr : &*found;
}

// A frame without IP finds its way by its Ethernet address.
Network::Route Network::route(std::span<const std::byte> frame) const {
  if (wire::has_link_header(frame)) {
    for (const Address& a : addresses_) {
      const wire::MacAddress mac = wire::stand_in_mac(a.at);
      if (std::memcmp(mac.data(), frame.data(), mac.size()) == 0) return {a.node, 0};
    }
    return {};
  }
  wire::NetHeader net;
  if (wire::parse_network(frame, net) != wire::Drop::kNone) return {};
  const Address* to = address_of(net.dst);
  if (to == nullptr) return {};
  const Address* from = address_of(net.src);
  return {to->node, std::max(to->path, from == nullptr ? 0 : from->path)};
}

Frame Network::copy(std::span<const std::byte> bytes) {
  Frame c{std::make_unique<std::byte[]>(bytes.size()), static_cast<uint32_t>(bytes.size())};
  std::memcpy(c.data.get(), bytes.data(), bytes.size());
  return c;
}

void Network::damage(uint32_t from, Frame& f) {
  uint64_t flips = rng_.between(1, 3);
  for (uint64_t i = 0; i < flips; ++i) {
    uint64_t at = rng_.between(wire::kEthSize, f.bytes - 1);
    f.data[at] ^= static_cast<std::byte>(1u << rng_.below(8));
  }
  // No sum over IPv6 or a CCI covers the marks, so damage may read as congestion.
  wire::NetHeader net;
  if (read_network(f.span(), net) && net.met_congestion())
    departures.marked(from, world_.node(from).epoch(), f.span());
}

// What a C-AQM hop does that has no room for more.
void Network::refuse(Frame& f) {
  wire::NetHeader net;
  if (!read_network(f.span(), net) || net.ecn() != wire::kEcnEct1) return;
  mark_congestion({f.data.get(), f.bytes}, wire::kEcnEct0);
}

// Only what its sender says may be marked.
void Network::mark(uint32_t from, Frame& f) {
  if (!mark_congestion({f.data.get(), f.bytes})) return;
  ++marked_;
  departures.marked(from, world_.node(from).epoch(), f.span());
}

bool Network::full(uint32_t from) const {
  const Options& o = world_.options;
  const Instant until = world_.now() + Duration{static_cast<int64_t>(o.net.port_ns)};
  for (uint32_t to = 0; to < kMaxNodes; ++to) {
    const impair::Link& link = paths_[index_of(from, to, 0)].link;
    if (o.net.port_ns != 0 && link.line_free_at() > until) return true;
    if (o.lossless && link.under_way() >= o.net.queue_frames) return true;
  }
  return false;
}

void Network::send(uint32_t from, Frame f) {
  const Route way = route(f.span());
  const uint32_t to = way.to;
  world_.trace_frame("tx", from, to, f.span());
  if (to == UINT32_MAX) return world_.model.fail("node %u sent a frame that no instance is meant to get", from);
  const bool again = departures.left(from, world_.node(from).epoch(), f.span());
  if (again && world_.reached) world_.reached->sent_again(f.span());
  if (f.bytes - wire::kEthSize > world_.options.net.path_mtu) return;
  const TamperRule* rule = tamper.armed() ? tamper.decide(inspect(from, to, f.span())) : nullptr;
  carry(from, way, std::move(f), rule);
}

void Network::inject(uint32_t from, std::span<const std::byte> bytes) {
  Frame f = copy(bytes);
  const Route way = route(f.span());
  world_.trace_frame("inject", from, way.to, f.span());
  carry(from, way, std::move(f), nullptr);
}

void Network::carry(uint32_t from, Route way, Frame f, const TamperRule* rule) {
  using Action = TamperRule::Action;
  const uint32_t to = way.to;
  Path& p = path(from, to, way.path);
  uint64_t now = world_.now().ns;
  Action action = rule == nullptr ? Action::kPass : rule->action;
  if (p.cut || p.path_cut || action == Action::kDrop) return;
  if (action == Action::kCorrupt) damage(from, f);
  if (action == Action::kRewrite) {
    rule->rewrite({f.data.get(), f.bytes});
    reseal({f.data.get(), f.bytes});
  }
  if (action == Action::kDelay)
    return deliver_at(now + static_cast<uint64_t>(rule->delay.ns), now, from, to, std::move(f));
  if (action == Action::kDuplicate)
    deliver_at(now + static_cast<uint64_t>(rule->delay.ns), now, from, to, copy(f.span()));
  if (action == Action::kSwap && p.swapped.data == nullptr) {
    p.swapped = std::move(f);
    return;
  }
  Frame swapped = std::exchange(p.swapped, {});
  const bool drops = !healed_ && !world_.options.lossless;
  if (drops && p.link.under_way() >= world_.options.net.queue_frames) return;
  enter_link(p, f);
  if (swapped.data != nullptr) enter_link(p, swapped);
}

void Network::enter_link(Path& p, const Frame& f) {
  const Instant begins = later(p.link.line_free_at(), world_.now());
  in_links_ -= p.link.under_way();
  p.link.offer(world_.now(), f.span(), world_.now().ns);
  p.busy_ns += static_cast<uint64_t>(std::max(begins, p.link.line_free_at()).ns - begins.ns);
  in_links_ += p.link.under_way();
  plan_link(p);
}

void Network::plan_link(Path& p) {
  if (p.link.next_due() >= p.planned) return;
  p.planned = p.link.next_due();
  world_.plan_link(p.planned.ns, static_cast<uint32_t>(&p - paths_.data()));
}

void Network::leave_link(uint32_t path) {
  Path& p = paths_[path];
  if (p.planned <= world_.now()) p.planned = Instant::never();
  while (const std::optional<impair::Arrival> a = p.link.take(world_.now())) {
    --in_links_;
    const uint32_t pair = path / kMaxPaths;
    pass_on(pair / kMaxNodes, pair % kMaxNodes, a->tag, copy(a->frame));
    p.link.release(*a);
  }
  plan_link(p);
}

// What happens behind the link. No frame is longer under way than its lifetime, but for the link.
void Network::pass_on(uint32_t from, uint32_t to, uint64_t entered_ns, Frame f) {
  const NetworkOptions& o = world_.options.net;
  const uint64_t now = world_.now().ns;
  const uint64_t last = std::max(now, entered_ns + o.lifetime_ns);
  uint64_t at = now;
  if (!healed_) {
    if (o.refuse != 0 && rng_.chance(o.refuse)) refuse(f);
    if (rng_.chance(o.mark)) mark(from, f);
    if (rng_.chance(o.corrupt)) damage(from, f);
    if (rng_.chance(o.duplicate)) {
      const uint64_t extra = rng_.chance(o.lifetime * 10) ? rng_.below(o.lifetime_ns) : rng_.below(2 * o.reorder_ns);
      deliver_at(std::min(last, now + extra), entered_ns, from, to, copy(f.span()));
    }
    if (rng_.chance(o.reorder)) at += rng_.below(o.reorder_ns);
    if (rng_.chance(o.lifetime)) at += rng_.below(o.lifetime_ns);
  }
  if (world_.apertures && wire::has_link_header(f.span()) && wire::is_bypass(f.span()))
    at = std::max(at, world_.apertures->late_until(from, to).ns);
  deliver_at(std::min(last, at), entered_ns, from, to, std::move(f));
}

void Network::deliver_at(uint64_t when_ns, uint64_t entered_ns, uint32_t from, uint32_t to, Frame f) {
  uint32_t slot;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slots_[slot] = {std::move(f), from, to};
  least_travel_ns_ = std::min(least_travel_ns_, when_ns - entered_ns);
  world_.plan_delivery(when_ns, slot);
}

Frame Network::take(uint32_t slot, uint32_t* to) {
  Slot& s = slots_[slot];
  *to = s.to;
  free_slots_.push_back(slot);
  return std::move(s.frame);
}

void Network::cut(uint32_t a, uint32_t b, bool cut) {
  for (uint32_t i = 0; i < kMaxPaths; ++i) path(a, b, i).cut = path(b, a, i).cut = cut;
}

void Network::begin_path_fault(uint32_t from, uint32_t to, uint32_t number, PathFault fault) {
  if (healed_) return;
  Path& p = path(from, to, number);
  impair::Spec spec = link_of(world_.options.net);
  if (fault == PathFault::kCut) {
    p.path_cut = true;
    return;
  }
  if (fault == PathFault::kLoses) spec.loss = 0.5;
  if (fault == PathFault::kSlow) {
    spec.delay.ns *= 10;
    spec.rate /= 10;
  }
  p.link.set(world_.now(), spec);
  plan_link(p);
}

void Network::end_path_fault(uint32_t from, uint32_t to, uint32_t number) {
  if (healed_) return;
  Path& p = path(from, to, number);
  p.path_cut = false;
  p.link.set(world_.now(), link_of(world_.options.net));
  plan_link(p);
}

void Network::heal() {
  healed_ = true;
  impair::Spec spec = link_of(world_.options.net);
  spec.loss = spec.burst = 0;
  spec.reorder = 0;
  for (Path& p : paths_) {
    p.cut = p.path_cut = false;
    p.link.set(world_.now(), spec);
    plan_link(p);
  }
}

}  // namespace ub::sim
