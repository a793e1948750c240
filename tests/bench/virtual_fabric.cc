// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/virtual_fabric.h"

#include <algorithm>
#include <utility>

#include "lib/base/assert.h"
#include "lib/impair/congestion_mark.h"
#include "lib/impair/queue_rules.h"
#include "lib/transport/core_impl.h"
#include "lib/transport/wire/cna_packet.h"
#include "lib/transport/wire/network_header.h"

template class ub::Core<ub::bench::FabricPort>;
template class ub::roce::Engine<ub::bench::FabricPort>;

namespace ub::bench {
namespace {

constexpr uint32_t kNetwork = 0x0a000000;  // 10.path.0.number, of which UB's own network header has the last 24 bits
constexpr size_t kBudget = 64;             // frames of one poll

Instant after(Instant now, Duration most, Prng& random) {
  return now + nanoseconds(static_cast<int64_t>(random.below(static_cast<uint64_t>(most.ns) + 1)));
}

CoreConfig config_of(CoreConfig config, uint32_t number) {
  config.self = emu::instance_of(number);
  config.incarnation = 0x1000 + number;
  config.seed = number;
  return config;
}

}  // namespace

// ---- ports ------------------------------------------------------------------------------------------------------

Duration FabricPort::room() const {
  return nanoseconds(
      static_cast<int64_t>(uint64_t{spec_.waiting_frames} * kLongestFrame * 8'000'000'000 / spec_.bits_per_second));
}

std::byte* FabricPort::tx_begin(uint32_t, size_t bytes) {
  UB_ASSERT(open_ == nullptr);
  if (line_.free_at() > fabric_.now_ + room()) {
    refused_ = true;
    return nullptr;
  }
  open_ = fabric_.take_frame(bytes);
  return open_->bytes.data();
}

void FabricPort::tx_commit(uint32_t, std::byte* frame, size_t bytes) {
  UB_ASSERT(open_ != nullptr && open_->bytes.data() == frame);
  open_->bytes.resize(bytes);
  const Instant left = line_.send(fabric_.now_, bytes, spec_.bits_per_second);
  fabric_.put({.at = left + spec_.cable, .order = 0, .kind = VirtualFabric::Kind::kAtHop, .frame = open_});
  open_ = nullptr;
}

void FabricPort::tx_abort(uint32_t, std::byte*) { fabric_.give_back(std::exchange(open_, nullptr)); }

Instant FabricPort::take_room_at() {
  return std::exchange(refused_, false) ? line_.free_at() - room() : Instant::never();
}

// ---- hosts ------------------------------------------------------------------------------------------------------

VirtualHost::VirtualHost(VirtualFabric& fabric, uint32_t its_number, const CoreConfig& config, const PortSpec& its_port)
    : number(its_number),
      arena(Core<FabricPort>::arena_bytes(config)),
      port(fabric, its_port),
      core(config, arena.data(), port),
      fabric_(fabric) {
  LinkConfig wire;
  wire.mtu = kFabricMtu;
  wire.link_frames = config.rtp_over_cna;
  wire.icrc_optional = true;  // nothing corrupts packets, and to seal them would take most of the time
  link = core.add_link(wire);
  UB_ASSERT(link != 0);
}

Endpoint VirtualHost::address(uint32_t path) const {
  return {wire::IpAddress::from_v4(kNetwork | path << 16 | number), wire::kUbUdpPort};
}

void VirtualHost::posted(uint32_t jetty) {
  core.on_posted(fabric_.now_, jetty);
  if (!driven_) fabric_.wake_at(*this, fabric_.now_);
}

// ---- the hop ----------------------------------------------------------------------------------------------------

VirtualFabric::HopQueue::HopQueue(const QueueSpec& its_spec, uint64_t seed)
    : spec(its_spec),
      caqm(its_spec.bits_per_second, {.target_bytes = impair::kUsualCaqmPackets * kLongestFrame}, seed) {}

VirtualHost& VirtualFabric::add_host(CoreConfig config, const PortSpec& port, const std::vector<QueueSpec>& queues) {
  const auto number = static_cast<uint32_t>(hosts_.size() + 1);
  Place& place = hosts_.emplace_back();
  place.host = std::make_unique<VirtualHost>(*this, number, config_of(config, number), port);
  for (const QueueSpec& spec : queues) place.queues.emplace_back(spec, random_.next_u64());
  return *place.host;
}

FabricFrame* VirtualFabric::take_frame(size_t bytes) {
  if (free_frames_.empty()) free_frames_.push_back(&frames_.emplace_back());
  FabricFrame* frame = free_frames_.back();
  free_frames_.pop_back();
  frame->bytes.resize(bytes);
  return frame;
}

VirtualFabric::Way VirtualFabric::way_of(const FabricFrame& frame) {
  if (!wire::has_link_header(frame.bytes)) {
    wire::NetHeader net;
    UB_ASSERT(wire::parse_network(frame.bytes, net) == wire::Drop::kNone);
    return {(net.dst.ip.v4() & 0xFFFF) - 1, net.dst.ip.v4() >> 16 & 0xFF, net.dscp() == kBulkDscp};
  }
  wire::CnaPacket packet;
  UB_ASSERT(wire::parse_cna(frame.bytes, packet) == wire::Drop::kNone);
  return {(packet.dcna & 0xFFFF) - 1, packet.dcna >> 16, packet.sl == wire::service_level(kBulkDscp)};
}

void VirtualFabric::enter_hop(FabricFrame* frame) {
  const Way way = way_of(*frame);
  HopQueue& queue = queue_at(way);
  ClassQueue* its_class = queue.spec.by_class ? &queue.classes[way.bulk] : nullptr;
  const size_t bytes = frame->bytes.size();
  const uint64_t queued = queue.line.queued_bytes(now_) + (its_class == nullptr ? 0 : its_class->bytes);
  if (queue.spec.down || (queue.spec.limit_bytes != 0 && queued + bytes > queue.spec.limit_bytes)) {
    ++queue.counts.dropped;
    return give_back(frame);
  }
  mark(queue, *frame, queued);
  if (its_class == nullptr) {
    leave(way, frame);
    return;
  }
  its_class->frames.push_back(frame);
  its_class->bytes += bytes;
  if (!queue.sends) serve_classes(way);
}

/// The frame goes to the line, and over the cable to its host. Returns when the line is free again.
Instant VirtualFabric::leave(Way way, FabricFrame* frame) {
  HopQueue& queue = queue_at(way);
  const Instant left = queue.line.send(now_, frame->bytes.size(), queue.spec.bits_per_second);
  queue.last_arrival = later(queue.last_arrival, after(left + queue.spec.cable, queue.spec.jitter, random_));
  put({.at = queue.last_arrival,
       .order = 0,
       .kind = Kind::kAtHost,
       .where = way.where,
       .path = way.path,
       .frame = frame});
  return left;
}

/// The line is free: the first frame of the first class that has one leaves.
void VirtualFabric::serve_classes(Way way) {
  HopQueue& queue = queue_at(way);
  queue.sends = false;
  for (ClassQueue& c : queue.classes) {
    if (c.frames.empty()) continue;
    FabricFrame* frame = c.frames.front();
    c.frames.pop_front();
    c.bytes -= frame->bytes.size();
    queue.sends = true;
    put({.at = leave(way, frame), .order = 0, .kind = Kind::kLineFree, .where = way.where, .path = way.path});
    return;
  }
}

void VirtualFabric::mark(HopQueue& queue, FabricFrame& frame, uint64_t queued) {
  if (queue.spec.speaks_caqm) {
    queue.counts.marked += queue.caqm.pass(queued, frame.bytes) == impair::CaqmAnswer::kMark;
  } else {
    const double chance = impair::mark_chance(queue.spec.marks, queued);
    queue.counts.marked += random_.chance(chance) && mark_congestion(frame.bytes);
  }
}

// ---- time -------------------------------------------------------------------------------------------------------

void VirtualFabric::put(Happening h) {
  h.order = order_++;
  ahead_.push(h);
}

void VirtualFabric::call_at(Instant at, std::function<void()> what) {
  put({.at = at, .order = 0, .kind = Kind::kCall, .where = static_cast<uint32_t>(calls_.size())});
  calls_.push_back(std::move(what));
}

void VirtualFabric::run_until(Instant end) {
  while (!ahead_.empty() && ahead_.top().at < end) {
    const Happening h = ahead_.top();
    ahead_.pop();
    now_ = later(now_, h.at);
    happen(h);
  }
  now_ = end;
}

void VirtualFabric::happen(const Happening& h) {
  switch (h.kind) {
    case Kind::kAtHop:
      return enter_hop(h.frame);
    case Kind::kLineFree:
      return serve_classes({h.where, h.path});
    case Kind::kAtHost:
      return arrive(h);
    case Kind::kWake:
      return wake(*hosts_[h.where].host);
    case Kind::kCall:
      std::exchange(calls_[h.where], {})();
      return;
  }
}

void VirtualFabric::arrive(const Happening& h) {
  VirtualHost& host = *hosts_[h.where].host;
  const size_t bytes = h.frame->bytes.size();
  if (bytes >= kPayloadFrameBytes) hosts_[h.where].queues[h.path].counts.payload_bytes += bytes;
  host.core.on_packet(now_, host.link, h.frame->bytes);
  give_back(h.frame);
  drive(host);
}

/// One round of a driver. Acknowledgements may wait: it comes again when they are due.
void VirtualFabric::drive(VirtualHost& host) {
  host.driven_ = true;
  if (host.core.next_deadline() <= now_) host.core.on_timer(now_);
  host.on_turn();
  while (host.core.poll_packets(now_, kBudget, Acks::kMayWait) != 0) {
  }
  Event events[16];
  while (host.core.poll_events(events) != 0) {
  }
  host.driven_ = false;
  host.wanted_at_ = Instant::never();
  wake_at(host, earlier(host.port.take_room_at(), later(host.core.next_deadline(), now_ + nanoseconds(1))));
}

void VirtualFabric::wake_at(VirtualHost& host, Instant at) {
  host.wanted_at_ = earlier(host.wanted_at_, at);
  if (host.event_at_ <= host.wanted_at_) return;
  host.event_at_ = host.wanted_at_;
  put({.at = host.event_at_, .order = 0, .kind = Kind::kWake, .where = host.number - 1});
}

/// Events that another one has overtaken, and those that come too early because something came first, drive nobody.
void VirtualFabric::wake(VirtualHost& host) {
  if (now_ != host.event_at_) return;
  host.event_at_ = Instant::never();
  if (host.wanted_at_ <= now_) return drive(host);
  wake_at(host, host.wanted_at_);
}

}  // namespace ub::bench
