// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/apertures.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "lib/transport/wire/bypass_packet.h"
#include "lib/transport/wire/compact_packet.h"
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

bypass::Requester<SimHost>& requester_of(Node& node) {
  return node.core().engine<bypass::Engine<SimHost>>().requester();
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

void Apertures::reach(ReachedState state, bool yes) {
  if (world_.reached) world_.reached->reach(state, yes);
}

// ---- memory ------------------------------------------------------------------------------------------------------

// The region of this life of a node that programs are told of: the newest one. Probes need one with all rights.
Region* Apertures::region_of(Node& node) {
  static constexpr uint8_t kBoth = kAccessRead | kAccessWrite;
  for (auto it = regions_.rbegin(); it != regions_.rend(); ++it) {
    Region* r = it->get();
    if (r->node != node.index() || r->epoch != node.epoch() || r->state != Region::State::kLive) continue;
    if (!stopped_ || r->access == kBoth) return r;
  }
  auto made = std::make_unique<Region>(world_.next_uid(), 9000 + rng_.below(12'000), false);
  made->direct = true;
  made->address = (rng_.next_u64() >> 8) + 4096;
  made->token = Token{true, rng_.next_u32()};
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
  h.user = user;
  h.server = server;
  h.left = calls;
  h.frames = rng_.chance(world_.options.aperture.frames);
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

// The longer there is no room, the less often it tries: a stall may last for millions of the usual gaps.
void Apertures::plan_step(Handle& h) {
  plan(world_.options.aperture.gap_ns << std::min(h.vain_steps, 8u), [this, &h] { step(h); });
}

void Apertures::step(Handle& h) {
  if (is_open(h) && timed_out(h)) {
    reach(ReachedState::kLaneGivenUp, !h.frames);
    close(h);
  }
  const bool called = h.left != 0 && (is_open(h) || try_open(h)) && call_some(h);
  h.vain_steps = called ? 0 : h.vain_steps + 1;
  if (h.left == 0 && !waits(h)) return close(h);
  // With nothing to call, it looks at the time now and then.
  h.left != 0 ? plan_step(h) : plan(kTimeoutNs / 8, [this, &h] { step(h); });
}

bool Apertures::is_open(const Handle& h) const {
  return h.frames ? h.opened != 0 : h.lane != nullptr && !h.lane->hung_up();
}
bool Apertures::waits(const Handle& h) const {
  return is_open(h) && (h.frames ? !h.asked.empty() : h.lane->unanswered() != 0);
}
// The program of a lane looks at the time; a requester does so by itself.
bool Apertures::timed_out(const Handle& h) const {
  if (!h.frames) return Instant{h.lane->oldest_call_ns()} + ns(kTimeoutNs) <= world_.now();
  return requester_of(world_.node(h.user)).is_broken(h.opened);
}

bool Apertures::try_open(Handle& h) {
  Node& user = world_.node(h.user);
  Node& server = world_.node(h.server);
  if (!user.up() || !server.up()) return false;
  h.region = region_of(server);
  h.uid = ++opened_;
  if (h.frames) return try_open_frames(h, user, server);
  lanes_.push_back(std::make_unique<SimLane>(world_, model, server));
  h.lane = lanes_.back().get();
  return !world_.failed();
}

void Apertures::close(Handle& h) {
  if (h.frames) return close_frames(h);
  if (!is_open(h)) return;
  SimLane* lane = std::exchange(h.lane, nullptr);
  lane->hang_up();
  plan(world_.options.aperture.serve_ns, [lane] { lane->notice_hang_up(); });
}

void Apertures::node_stopped(const Node& node) {
  for (const auto& r : regions_)
    if (r->node == node.index() && r->epoch == node.epoch()) model.region_leaving(r.get());
  for (auto& h : handles_) {
    const bool user = h->user == node.index(), server = h->server == node.index();
    reach(h->frames ? ReachedState::kAskedOwnerDies : ReachedState::kLaneOwnerDies, server && waits(*h));
    reach(ReachedState::kLaneProgramDies, user && !h->frames && waits(*h));
    if (h->frames && user) give_up_frames(*h);
    if (!h->frames && (user || server)) close(*h);
  }
}

bool Apertures::call_some(Handle& h) {
  const bool outdated = h.region->state != Region::State::kLive || h.shown != h.region->token.value;
  if (h.frames && outdated && h.asked.empty() && rng_.chance(0.5)) {
    close_frames(h);
    return true;
  }
  const uint64_t calls = 1 + rng_.below(world_.options.aperture.burst);
  if (!h.frames && h.region->state != Region::State::kLive && rng_.chance(0.5))
    h.region = region_of(world_.node(h.server));
  const uint32_t left = h.left;
  for (uint64_t i = 0; i < calls && h.left != 0 && !world_.failed(); ++i)
    if (call(h, draw(h))) --h.left;
  h.frames ? plan_taking(h) : plan_serving(*h.lane);
  return h.left != left;
}

// ---- accesses ----------------------------------------------------------------------------------------------------

std::shared_ptr<Access> Apertures::draw(Handle& h) {
  const ApertureOptions& o = world_.options.aperture;
  auto a = std::make_shared<Access>();
  a->handle = h.uid;
  a->region = h.region;
  a->strict = h.strict;
  a->kind = rng_.chance(o.load) ? Access::Kind::kLoad : Access::Kind::kStore;
  const bool large = rng_.chance(o.large);
  const uint64_t sizes = h.frames ? static_cast<uint64_t>(std::bit_width(world_.options.mtu / kLine)) : 8;
  if (large && (a->is_load() || !h.strict)) a->bytes = static_cast<uint32_t>(kLine << rng_.below(sizes));
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
  if (h.frames) return call_by_frames(h, a);
  if (!h.lane->has_room(*a)) {
    reach(ReachedState::kLaneFull);
    return false;
  }
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
    if (lane.server().held_until() <= world_.now()) lane.serve(static_cast<uint32_t>(1 + rng_.below(kMostPerRound)));
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

// ---- frames ------------------------------------------------------------------------------------------------------

bool Apertures::try_open_frames(Handle& h, Node& user, Node& server) {
  if (h.server_epoch != server.epoch()) close_frames(h);  // it is the target of a former life
  h.server_epoch = server.epoch();
  if (h.target == 0) h.target = user.import_instance(server);
  bypass::OpenConfig config;
  config.target = h.target;
  config.token_id = h.region->registered.token_id;
  h.shown = h.region->token.value ^ (!h.strict && rng_.chance(world_.options.aperture.wrong) ? 1 : 0);
  config.token = {true, h.shown};
  const Status status = requester_of(user).open(user.turn(), config, &h.opened);
  user.drive();
  if (status == Status::kOk) return true;
  if (status != Status::kBusy) world_.model.fail("node %u opens no handle: %u", h.user, static_cast<unsigned>(status));
  return false;
}

bool Apertures::call_by_frames(Handle& h, const std::shared_ptr<Access>& a) {
  Node& user = world_.node(h.user);
  const bypass::Block block{a->address, static_cast<uint8_t>(std::countr_zero(a->bytes / kLine))};
  a->token = h.shown;
  if (a->is_load()) a->data.resize(a->bytes);
  uint32_t ticket = 0;
  Status status;
  if (a->is_load()) {
    status = requester_of(user).load(user.turn(), h.opened, block, a->data.data(), &ticket);
  } else {
    const bypass::StoreRequest store{block, a->data.data(), a->enables.empty() ? nullptr : a->enables.data(),
                                     rng_.chance(0.2)};
    status = requester_of(user).store(user.turn(), h.opened, store, &ticket);
  }
  reach(ReachedState::kAskedRefused, status == Status::kBusy);
  if (status != Status::kOk) return false;
  if (rng_.chance(0.05)) (void)requester_of(user).prefetch(user.turn(), h.opened, block);
  model.called(a);
  by_frames_.push_back(a);
  if (!h.asked.emplace(ticket, a).second) world_.model.fail("a ticket is given out twice");
  return true;
}

void Apertures::take_outcomes(Handle& h) {
  using bypass::Outcome;
  for (auto it = h.asked.begin(); it != h.asked.end() && !world_.failed();) {
    Access& a = *it->second;
    const Outcome outcome = requester_of(world_.node(h.user)).take(h.opened, it->first);
    if (outcome == Outcome::kOk || outcome == Outcome::kRefused) model.answered(a, outcome == Outcome::kOk, a.data);
    if (outcome == Outcome::kUnanswered) give_up(a);
    reach(ReachedState::kAskedUnanswered, outcome == Outcome::kUnanswered);
    it = outcome == Outcome::kPending ? std::next(it) : h.asked.erase(it);
  }
}

// Nobody waits for it. As it does not go again, it is carried out while its first frame is under way or never.
void Apertures::give_up(Access& a) {
  const uint64_t last = a.issued_ns + static_cast<uint64_t>(bypass::kFrameLife.ns);
  model.given_up(a, last - std::min(last, world_.now().ns));
}

void Apertures::give_up_frames(Handle& h) {
  for (auto& [ticket, access] : h.asked) give_up(*access);
  h.asked.clear();
  h.target = h.opened = 0;
}

void Apertures::close_frames(Handle& h) {
  Node& user = world_.node(h.user);
  if (h.opened != 0) {
    take_outcomes(h);
    requester_of(user).close(user.turn(), h.opened);
  }
  if (h.target != 0 && user.core().remove_target(h.target) != Status::kOk)
    world_.model.fail("a target of a handle is not removed");
  give_up_frames(h);
}

void Apertures::plan_taking(Handle& h) {
  if (h.asked.empty() || std::exchange(h.taking_planned, true)) return;
  plan_lateness(h);
  // The longer nothing comes, the less often it looks.
  constexpr uint64_t kLongest = 500'000'000;  // or it would be taken for an access that never ends
  const uint64_t pause = delay_or_stall(world_.options.aperture.serve_ns << std::min(h.vain_looks, 8u));
  plan(std::min(pause, kLongest), [this, &h] {
    h.taking_planned = false;
    if (!is_open(h)) return;
    const size_t waiting = h.asked.size();
    take_outcomes(h);
    h.vain_looks = h.asked.size() == waiting ? h.vain_looks + 1 : 0;
    plan_taking(h);
  });
}

void Apertures::plan_lateness(const Handle& h) {
  const ApertureOptions& o = world_.options.aperture;
  if (stopped_ || !rng_.chance(o.stall)) return;
  if (shuts_ < o.shuts && rng_.chance(0.5)) return shut_port(world_.node(h.server));
  const bool there = rng_.chance(0.5);
  Instant& late = there ? late_[h.user][h.server] : late_[h.server][h.user];
  late = later(late, world_.now() + ns(rng_.below(std::min<uint64_t>(o.stall_ns, 1'900'000'000))));
}

void Apertures::shut_port(const Node& node) {
  constexpr uint64_t kLongest = 10'000'000;  // short for requests of queues, which wait for the port, too
  ++shuts_;
  shut_until_[node.index()] = world_.now() + ns(rng_.below(std::min(world_.options.aperture.stall_ns, kLongest)));
}

bool Apertures::port_is_shut(const Node& node) const { return world_.now() < shut_until_[node.index()]; }

void Apertures::frame_arrives(const Node& at, std::span<const std::byte> frame) {
  wire::BypassPacket p;
  if (!wire::has_link_header(frame) || !wire::is_bypass(frame)) return;
  if (wire::parse_bypass(frame, p) != wire::Drop::kNone || p.is_response) return;
  const auto asks = [&](const std::shared_ptr<Access>& a) {
    if (a->region->node != at.index() || a->address != p.ma.address || a->bytes != p.ma.length()) return false;
    if (a->is_load() || p.opcode == wire::TaOpcode::kRead) return a->is_load() && p.opcode == wire::TaOpcode::kRead;
    return p.payload_len == a->bytes && std::memcmp(a->data.data(), p.payload, a->bytes) == 0;
  };
  const auto found = std::find_if(by_frames_.rbegin(), by_frames_.rend(), asks);
  model.arrives(found == by_frames_.rend() ? nullptr : found->get());
}

}  // namespace ub::sim
