// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/apertures.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "lib/transport/wire/bypass_packet.h"
#include "tests/sim/world.h"

namespace ub::sim {
namespace {

constexpr uint64_t kTimeoutNs = 4'000'000'000;
constexpr uint64_t kLine = 64;
constexpr uint32_t kMostPerRound = 16;  // requests that a NIC takes from a ring at once

Duration ns(uint64_t n) { return nanoseconds(static_cast<int64_t>(n)); }

// The complete frame of an access, as it goes into a lane.
std::vector<std::byte> frame_of(const Access& a, uint16_t number) {
  wire::BypassPacket p{};
  std::array<std::byte, wire::BeetahView::kMaxEnables / 8> bits{};
  p.tassn = Tassn(number);
  p.tv = true;
  p.token_value = a.token;
  const auto code = static_cast<uint8_t>(std::countr_zero(a.bytes / kLine));
  p.ma = {a.address, 0, false, code, a.region->registered.token_id};
  p.opcode = a.is_load() ? wire::TaOpcode::kRead : wire::TaOpcode::kWrite;
  if (!a.enables.empty()) {
    p.opcode = wire::TaOpcode::kWriteByteEnable;
    p.has_be = true;
    p.be = {bits.data(), wire::BeetahView::enables_of(a.bytes)};
    for (uint32_t i = 0; i < p.be.enables / 64; ++i)
      wire::BeetahView::store_word(bits.data(), p.be.enables, i, a.enables[i]);
  }
  std::vector<std::byte> frame(wire::bypass_header_size(p));
  wire::write_bypass_headers(p, frame.data());
  frame.insert(frame.end(), a.data.begin(), a.data.end());
  return frame;
}

}  // namespace

Apertures::Apertures(World& world) : model(world), world_(world), rng_(world.options.seed * 4 + 0xa9e27) {}
Apertures::~Apertures() = default;

void Apertures::plan(uint64_t mean_ns, std::function<void()> what) {
  world_.after(ns(1 + rng_.below(2 * mean_ns)), std::move(what));
}

uint64_t Apertures::delay_or_stall(uint64_t mean_ns) {
  const ApertureOptions& o = world_.options.aperture;
  return !stopped_ && rng_.chance(o.stall) ? std::max(mean_ns, rng_.below(o.stall_ns)) : mean_ns;
}

// ---- memory ------------------------------------------------------------------------------------------------------

// The region of this life of a node that programs are told of: the newest one.
Region* Apertures::region_of(Node& node) {
  for (auto it = regions_.rbegin(); it != regions_.rend(); ++it) {
    Region* r = it->get();
    if (r->node == node.index() && r->epoch == node.epoch() && r->state == Region::State::kLive) return r;
  }
  auto made = std::make_unique<Region>(world_.next_uid(), 9000 + rng_.below(12'000), false);
  made->direct = true;
  made->address = (rng_.next_u64() >> 8) + 4096;
  made->token = Token{true, rng_.next_u32()};
  static constexpr uint8_t kBoth = kAccessRead | kAccessWrite;
  static constexpr uint8_t kOther[] = {kAccessRead, kAccessWrite};
  made->access = !stopped_ && rng_.chance(world_.options.aperture.wrong) ? kOther[rng_.below(2)] : kBoth;
  node.enroll(*made, 0, 0);
  model.add_region(made.get());
  regions_.push_back(std::move(made));
  return regions_.back().get();
}

void Apertures::plan_fault() {
  world_.after(ns(rng_.below(world_.options.fault.span_ns)), [this] {
    if (!stopped_) fault();
  });
}

void Apertures::fault() {
  Node& node = world_.node(static_cast<uint32_t>(rng_.below(world_.node_count())));
  if (!node.up()) return;
  Region* r = region_of(node);
  if (rng_.chance(0.5)) {
    model.region_leaving(r);
    node.unregister(r);
    return;
  }
  r->token.value = rng_.next_u32();
  if (node.core().set_segment_token(r->registered.handle, r->token.value, r->token.value) != Status::kOk)
    world_.model.fail("a segment takes no other token");
  model.token_replaced(r);
}

// ---- programs ----------------------------------------------------------------------------------------------------

void Apertures::start() {
  const ApertureOptions& o = world_.options.aperture;
  for (uint32_t user = 0; user < world_.node_count(); ++user)
    for (uint32_t server = 0; server < world_.node_count(); ++server)
      for (uint32_t n = 0; user != server && n < o.handles; ++n) add_handle(user, server, o.calls);
  for (uint32_t i = 0; i < o.faults; ++i) plan_fault();
}

void Apertures::add_handle(uint32_t user, uint32_t server, uint32_t calls) {
  handles_.push_back(std::make_unique<Handle>());
  Handle& h = *handles_.back();
  h.uid = static_cast<uint32_t>(handles_.size());
  h.user = user;
  h.server = server;
  h.left = calls;
  plan_step(h);
}

void Apertures::stop() {
  stopped_ = true;
  for (auto& h : handles_) h->left = 0;
}

void Apertures::probe() {
  for (auto& h : handles_) close(*h);
  for (uint32_t user = 0; user < world_.node_count(); ++user) {
    for (uint32_t server = 0; server < world_.node_count(); ++server) {
      if (user == server) continue;
      add_handle(user, server, 20);
      handles_.back()->strict = true;
    }
  }
}

bool Apertures::probes_done() const {
  const auto done = [](const auto& h) { return h->left == 0; };
  return at_rest() && std::all_of(handles_.begin(), handles_.end(), done);
}

void Apertures::tear_down() {
  for (auto& h : handles_) close(*h);
  for (auto& lane : lanes_) lane->notice_hang_up();
  for (auto& r : regions_) {
    Node& node = world_.node(r->node);
    if (r->state != Region::State::kLive || !node.up() || r->epoch != node.epoch()) continue;
    model.region_leaving(r.get());
    node.unregister(r.get());
  }
}

void Apertures::plan_step(Handle& h) {
  plan(world_.options.aperture.gap_ns, [this, &h] { step(h); });
}

void Apertures::step(Handle& h) {
  if (is_open(h) && h.lane->oldest_call_ns() < world_.now().ns - kTimeoutNs) close(h);
  if (h.left != 0 && (is_open(h) || try_open(h))) call_some(h);
  const bool waits = is_open(h) && h.lane->unanswered() != 0;
  if (h.left == 0 && !waits) return close(h);
  // With nothing to call, it looks at the time now and then.
  h.left != 0 ? plan_step(h) : plan(kTimeoutNs / 8, [this, &h] { step(h); });
}

bool Apertures::is_open(const Handle& h) const { return h.lane != nullptr && !h.lane->hung_up(); }

bool Apertures::try_open(Handle& h) {
  Node& user = world_.node(h.user);
  Node& server = world_.node(h.server);
  if (!user.up() || !server.up()) return false;
  h.region = region_of(server);
  lanes_.push_back(std::make_unique<SimLane>(world_, model, server));
  h.lane = lanes_.back().get();
  return !world_.failed();
}

void Apertures::close(Handle& h) {
  if (!is_open(h)) return;
  if (h.strict && h.lane->unanswered() != 0) world_.model.fail("liveness: loads or stores of a probe hang");
  SimLane* lane = std::exchange(h.lane, nullptr);
  lane->hang_up();
  plan(world_.options.aperture.serve_ns, [lane] { lane->notice_hang_up(); });
}

void Apertures::node_stopped(const Node& node) {
  for (const auto& r : regions_)
    if (r->node == node.index() && r->epoch == node.epoch()) model.region_leaving(r.get());
  for (auto& h : handles_)
    if (h->user == node.index() || h->server == node.index()) close(*h);
}

void Apertures::call_some(Handle& h) {
  const uint64_t calls = 1 + rng_.below(world_.options.aperture.burst);
  if (h.region->state != Region::State::kLive && (h.strict || rng_.chance(0.5)))
    h.region = region_of(world_.node(h.server));
  for (uint64_t i = 0; i < calls && h.left != 0 && !world_.failed(); ++i)
    if (call(h, draw(h))) --h.left;
  plan_serving(*h.lane);
}

// ---- accesses ----------------------------------------------------------------------------------------------------

std::shared_ptr<Access> Apertures::draw(Handle& h) {
  const ApertureOptions& o = world_.options.aperture;
  auto a = std::make_shared<Access>();
  a->handle = h.uid;
  a->region = h.region;
  a->kind = rng_.chance(o.load) ? Access::Kind::kLoad : Access::Kind::kStore;
  const bool large = rng_.chance(o.large);
  if (large && (a->is_load() || !h.strict)) a->bytes = kLine << rng_.below(8);
  a->token = h.region->token.value;
  const bool wrong = rng_.chance(o.wrong) && !h.strict;
  if (wrong && rng_.chance(0.3)) a->token ^= 1u << rng_.below(32);
  draw_place(*h.region, wrong, a.get());
  if (!a->is_load()) draw_store(a.get());
  if (!h.strict) return a;
  a->enables.assign(a->bytes / kLine, 0);  // a probe stores what lies in the region, and no other bytes
  for (uint64_t i = 0; i < a->bytes; ++i)
    if (a->address + i - h.region->address < h.region->length) a->enables[i / 64] |= uint64_t{1} << i % 64;
  if (a->is_load()) a->enables.clear();
  return a;
}

// Some lines are used more than others, and those at the ends lie partly outside.
void Apertures::draw_place(const Region& r, bool wrong, Access* a) {
  const uint64_t first = r.address & ~(kLine - 1), lines = (r.address + r.length - first + kLine - 1) / kLine;
  const uint64_t room = lines - std::min(lines - 1, a->bytes / kLine - 1);
  const uint64_t at = rng_.chance(0.5) ? rng_.below(4) : rng_.below(room);
  a->address = first + at * kLine;
  if (!wrong && !rng_.chance(0.1)) return;
  static constexpr int kNear[] = {-2, -1, 0, 1, 2};
  const uint64_t line = wrong ? static_cast<uint64_t>(kNear[rng_.below(5)]) : 0;
  a->address = first + (rng_.chance(0.5) ? line : room - 1 + line) * kLine;
}

void Apertures::draw_store(Access* a) {
  a->data.resize(a->bytes);
  for (std::byte& b : a->data) b = static_cast<std::byte>(rng_.next_u32());
  const Region& r = *a->region;
  const auto inside = [&](uint64_t i) { return a->address + i - r.address < r.length; };
  const bool crosses = !inside(0) || !inside(a->bytes - 1);
  if (!rng_.chance(crosses ? 0.9 : 0.4)) return;
  // Bits of BEETAH are for the first KiB only; what lies behind is stored.
  a->enables.assign(a->bytes / kLine, ~uint64_t{0});
  const uint64_t bits = std::min<uint64_t>(a->bytes, wire::BeetahView::kMaxEnables);
  const uint64_t pattern = rng_.below(3);
  for (uint64_t w = 0; w < bits / 64; ++w)
    a->enables[w] = pattern == 0 ? rng_.next_u64() : pattern == 1 ? uint64_t{0xff} << rng_.below(57) : 0;
  if (!crosses || rng_.chance(world_.options.aperture.wrong)) return;
  for (uint64_t i = 0; i < bits; ++i)
    if (!inside(i)) a->enables[i / 64] &= ~(uint64_t{1} << i % 64);
}

bool Apertures::call(Handle& h, const std::shared_ptr<Access>& a) {
  if (!h.lane->has_room(*a)) return false;
  std::vector<std::byte> frame = frame_of(*a, h.lane->next_number(*a));
  model.called(a);
  h.lane->call(a, std::move(frame));
  return true;
}

// ---- lanes -------------------------------------------------------------------------------------------------------

SimLane* Apertures::lane_of(const Node& node, uint32_t link) {
  for (auto it = lanes_.rbegin(); it != lanes_.rend(); ++it)
    if ((*it)->link() == link && (*it)->served_by(node)) return it->get();
  return nullptr;
}

void Apertures::plan_serving(SimLane& lane) {
  if (!lane.has_requests() || std::exchange(lane.serving_planned, true)) return;
  plan(delay_or_stall(world_.options.aperture.serve_ns), [this, &lane] {
    lane.serving_planned = false;
    if (!lane.served_by(lane.server())) return;
    if (lane.server().held_until() <= world_.now())
      lane.serve(static_cast<uint32_t>(1 + rng_.below(kMostPerRound)));
    plan_look(lane);
    plan_serving(lane);
  });
}

void Apertures::plan_look(SimLane& lane) {
  if (std::exchange(lane.looking_planned, true)) return;
  plan(delay_or_stall(world_.options.aperture.serve_ns / 4 + 1), [&lane] {
    lane.looking_planned = false;
    if (!lane.hung_up()) lane.look();
  });
}

}  // namespace ub::sim
