// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/hostile.h"

#include <algorithm>

namespace ub::sim {
namespace {

constexpr uint32_t kRegionBytes = 16384;  // so that its longest requests do not fill the wire for seconds

Mode draw_mode(Prng& rng) {
  static constexpr Mode kModes[] = {Mode::kRm, Mode::kRm, Mode::kRc, Mode::kRc, Mode::kUm};
  return kModes[rng.below(5)];
}

}  // namespace

Hostile::Hostile(World& world, Node& node, uint32_t number, const std::vector<std::unique_ptr<Hostile>>& others)
    : world_(world),
      node_(node),
      others_(others),
      rng_(world.rng.next_u64()),
      owner_(static_cast<Owner>(kFirstHostileOwner + number)),
      app_(world.next_uid()),
      epoch_(node.epoch()) {
  create();
}

Hostile::~Hostile() = default;

// ---- objects -----------------------------------------------------------------------------------------------------

void Hostile::create() {
  while (jfcs_.size() < 2) create_jfc();
  while (jfrs_.size() < 2) create_jfr();
  while (queues_.size() < 3) create_queue();
  while (regions_.size() < 2) create_region();
  while (targets_.size() < 4) create_target();
}

// The Core has room for them: whatever the application did before, creating succeeds.
void Hostile::expect(Status got, bool free, const char* what) {
  if (got != (free ? Status::kOk : Status::kBusy))
    world_.model.fail("node %u: %s of the hostile application gave status %u", node_.index(), what,
                      static_cast<unsigned>(got));
}

void Hostile::create_jfc() {
  auto c = std::make_unique<CompletionRing>();
  c->slots.resize(size_t{1} << rng_.below(7));
  auto slots = static_cast<uint32_t>(c->slots.size());
  expect(core().create_jfc({.slots = c->slots.data(),
                            .slot_count = slots,
                            .depth = static_cast<uint32_t>(rng_.between(1, slots)),
                            .indices = c->indices.get(),
                            .cookie = 0,
                            .owner = owner_},
                           &c->handle),
         true, "create_jfc");
  if (jfcs_.empty()) {
    expect(core().moderate_jfc(world_.now(), c->handle, {uint16_t{3}, microseconds(50)}), true, "moderate_jfc");
  }
  jfcs_.push_back(std::move(c));
}

void Hostile::create_jfr() {
  auto r = std::make_unique<ReceiveRing>();
  r->slots.resize(size_t{1} << rng_.between(0, 6));
  r->jfc = any(jfcs_);
  expect(core().create_jfr({.wanted_id = 0,
                            .mode = draw_mode(rng_),
                            .slots = r->slots.data(),
                            .slot_count = static_cast<uint32_t>(r->slots.size()),
                            .indices = r->indices.get(),
                            .jfc = r->jfc->handle,
                            .token = {},
                            .min_rnr_timer = 13,
                            .user_data = 0,
                            .owner = owner_},
                           &r->id),
         true, "create_jfr");
  jfrs_.push_back(std::move(r));
}

void Hostile::create_queue() {
  auto q = std::make_unique<SendRing>();
  q->slots.resize(size_t{1} << rng_.between(2, 7));
  q->source.resize(q->slots.size());
  auto depth = static_cast<uint32_t>(rng_.between(1, 16));
  q->work = make_bytes(SimCore::send_queue_work_bytes(depth), true);
  q->jfc = any(jfcs_);
  q->jfr = rng_.chance(0.8) ? any(jfrs_) : nullptr;
  q->recv_jfc = q->jfr != nullptr && rng_.chance(0.5) ? any(jfcs_) : nullptr;
  JettyConfig c;
  c.kind = q->jfr != nullptr ? ObjectKind::kJetty : ObjectKind::kJfs;
  c.mode = draw_mode(rng_);
  c.sq = {.slots = q->slots.data(),
          .source = q->source.data(),
          .slot_count = static_cast<uint32_t>(q->slots.size()),
          .depth = depth,
          .indices = q->indices.get(),
          .work = q->work.get(),
          .jfc = q->jfc->handle,
          .rnr_retry = static_cast<uint8_t>(rng_.below(8)),
          .err_timeout = static_cast<uint8_t>(rng_.below(32)),
          .suspends = rng_.chance(0.3),
          .completes_early = rng_.chance(0.3)};
  c.jfr = q->jfr != nullptr ? q->jfr->id : 0;
  c.recv_jfc = q->recv_jfc != nullptr ? q->recv_jfc->handle : 0;
  c.lower_layer_order = rng_.chance(0.5);
  c.target_order = rng_.chance(0.5);
  c.owner = owner_;
  expect(core().create_jetty(c, &q->id), true, "create_jetty");
  node_.hostile_rings.push_back(std::as_bytes(std::span(q->slots)));
  queues_.push_back(std::move(q));
}

void Hostile::create_region() {
  auto r = std::make_unique<Region>(world_.next_uid(), kRegionBytes, true);
  r->hostile = true;
  r->app = app_;
  r->address = r->va();
  r->access = kAccessRead | kAccessWrite | kAccessAtomic;
  std::memset(r->memory(), 0xee, r->length);
  regions_.push_back(node_.adopt(std::move(r), owner_, 0));
}

// One of its own kind, or somebody who does not know it.
void Hostile::create_target() {
  TargetConfig c;
  uint32_t peer = node_.index();
  Hostile* other = others_.empty() ? nullptr : others_[rng_.below(others_.size())].get();
  if (other != nullptr && other->alive() && !other->queues_.empty() && rng_.chance(0.7)) {
    peer = other->node_.index();
    const SendRing& q = *other->queues_[rng_.below(other->queues_.size())];
    c.id = rng_.chance(0.3) && q.jfr != nullptr ? q.jfr->id : q.id;
    c.kind = c.id == q.id ? ObjectKind::kJetty : ObjectKind::kJfr;
  } else {
    const Queue& q = *world_.queues[rng_.below(world_.queues.size())];
    if (q.epoch == world_.node(q.node).epoch()) peer = q.node;
    c.id = rng_.chance(0.5) || q.jfr == nullptr ? q.id : q.jfr->id;
    c.kind = ObjectKind::kJetty;
  }
  c.instance = world_.instance_id(peer, world_.node(peer).epoch());
  c.mode = draw_mode(rng_);
  c.token = {true, rng_.next_u32()};
  c.path = {.link = node_.link(), .local = node_.at(), .remote = world_.node(peer).at()};
  c.owner = owner_;
  uint32_t target = 0;
  expect(core().add_target(world_.now(), c, &target), true, "add_target");
  targets_.push_back(target);
}

bool Hostile::destroy(size_t queue) {
  if (queue >= queues_.size()) return false;
  expect(core().destroy_jetty(world_.now(), queues_[queue]->id), true, "destroy_jetty");
  auto* ring = reinterpret_cast<const std::byte*>(queues_[queue]->slots.data());
  std::erase_if(node_.hostile_rings, [&](std::span<const std::byte> r) { return r.data() == ring; });
  queues_.erase(queues_.begin() + static_cast<ptrdiff_t>(queue));
  return true;
}

void Hostile::destroy_jfr(size_t jfr) {
  if (jfr >= jfrs_.size()) return;
  const ReceiveRing* r = jfrs_[jfr].get();
  bool unused = std::none_of(queues_.begin(), queues_.end(), [&](const auto& q) { return q->jfr == r; });
  expect(core().destroy_jfr(world_.now(), r->id), unused, "destroy_jfr");
  if (unused) jfrs_.erase(jfrs_.begin() + static_cast<ptrdiff_t>(jfr));
}

void Hostile::destroy_jfc(size_t jfc) {
  if (jfc >= jfcs_.size()) return;
  const CompletionRing* c = jfcs_[jfc].get();
  bool unused = std::none_of(queues_.begin(), queues_.end(),
                             [&](const auto& q) {
                               return q->jfc == c || q->recv_jfc == c ||
                                      (q->jfr != nullptr && q->recv_jfc == nullptr && q->jfr->jfc == c);
                             }) &&
                std::none_of(jfrs_.begin(), jfrs_.end(), [&](const auto& r) { return r->jfc == c; });
  expect(core().destroy_jfc(c->handle), unused, "destroy_jfc");
  if (unused) jfcs_.erase(jfcs_.begin() + static_cast<ptrdiff_t>(jfc));
}

void Hostile::destroy_one() {
  switch (rng_.below(5)) {
    case 0:
      destroy(rng_.below(3));
      break;
    case 1:
      destroy_jfr(rng_.below(2));
      break;
    case 2:
      destroy_jfc(rng_.below(2));
      break;
    case 3:
      node_.unregister(regions_.back());
      regions_.pop_back();
      break;
    default:
      replace_target();
      break;
  }
}

// The queue it names may have gone meanwhile.
void Hostile::replace_target() {
  std::swap(targets_[rng_.below(targets_.size())], targets_.back());
  expect(core().remove_target(targets_.back()), true, "remove_target");
  targets_.pop_back();
  create_target();
}

void Hostile::replace_broken() {
  for (size_t i = 0; i < queues_.size(); ++i)
    if (core().state(queues_[i]->id) == QueueState::kError && rng_.chance(0.5)) destroy(i);
  create();
}

void Hostile::end() {
  for (const Region* r : regions_)
    if (!r->guards_intact()) world_.model.fail("guard zone of hostile region %u was written", r->uid);
  if (!alive()) return;
  while (!queues_.empty() || !jfrs_.empty() || !jfcs_.empty()) {
    destroy(rng_.below(queues_.size() + 1));
    destroy_jfr(rng_.below(jfrs_.size() + 1));
    destroy_jfc(rng_.below(jfcs_.size() + 1));
    if (world_.failed()) return;
  }
  for (uint32_t target : targets_) expect(core().remove_target(target), true, "remove_target");
  for (Region* r : regions_) node_.unregister(r);
  targets_.clear();
  regions_.clear();
  core().close_owner(world_.now(), owner_);
  node_.drive();
}

// ---- what it writes ----------------------------------------------------------------------------------------------

const Region* Hostile::draw_remote() {
  std::vector<const Region*> all;
  bool own = rng_.chance(0.8);
  for (const auto& r : world_.regions)
    if (r->hostile == own && r->state == Region::State::kLive) all.push_back(r.get());
  return all.empty() ? nullptr : all[rng_.below(all.size())];
}

// Own memory, or that of somebody else in this node.
Sge Hostile::draw_range() {
  const Region* r = regions_[rng_.below(regions_.size())];
  if (rng_.chance(0.1)) {
    const Region* other = world_.regions[rng_.below(world_.regions.size())].get();
    if (other->node == node_.index() && other->epoch == epoch_) r = other;
  }
  uint64_t offset = rng_.below(r->length);
  Sge sge{r->va() + offset, static_cast<uint32_t>(rng_.below(r->length - offset + 1)), r->registered.handle};
  if (rng_.chance(0.1)) sge.length = rng_.next_u32();
  if (rng_.chance(0.1)) sge.address = rng_.next_u64();
  if (rng_.chance(0.05)) sge.segment = rng_.next_u32();
  return sge;
}

// An element that is nearly right, somewhere in the ring.
void Hostile::write_element(SendRing& q, uint32_t at) {
  uint64_t slots = q.source.size();
  at %= slots;
  if (rng_.chance(0.02)) {
    rng_.fill(reinterpret_cast<std::byte*>(&q.source[at]), sizeof(Wqe));
    return;
  }
  bool mostly = rng_.chance(0.8);  // right
  Wqe raw[8]{};
  Wqe& e = raw[0];
  e.op = static_cast<WrOp>(rng_.chance(0.97) ? rng_.below(15) : 0xff);
  if (rng_.chance(0.3)) e.op = rng_.chance(0.7) ? WrOp::kSend : WrOp::kSendInvalidate;
  e.flags = static_cast<uint8_t>(rng_.chance(0.5) ? kWrSignaled | kWrToken : rng_.next_u32());
  if ((e.flags & kWrDead) != 0 && rng_.chance(0.8)) e.flags &= static_cast<uint8_t>(~kWrDead);
  e.sge_count = static_cast<uint8_t>(rng_.chance(0.8) ? rng_.between(0, 3) : rng_.below(mostly ? 17 : 18));
  for (uint32_t i = 0; i < e.sge_count; ++i) {
    Sge& sge = const_cast<Sge&>(sge_of(e, i));
    if (reinterpret_cast<Wqe*>(&sge + 1) > raw + 8) break;
    sge = draw_range();
    e.length += sge.length;
  }
  if (is_atomic(e.op) && (mostly || rng_.chance(0.5))) e.length = 4u << rng_.below(3);
  if ((e.flags & kWrInline) != 0 && (mostly || rng_.chance(0.5))) e.length = static_cast<uint32_t>(rng_.below(200));
  if (!mostly && rng_.chance(0.3)) e.length = rng_.chance(0.5) ? 1u << 30 : rng_.next_u32();
  e.target = rng_.chance(0.8) && !targets_.empty() ? targets_[rng_.below(targets_.size())]
                                                   : static_cast<uint32_t>(rng_.below(100));
  if (rng_.chance(0.02)) e.target = rng_.next_u32();
  e.place_order = static_cast<uint8_t>(rng_.chance(0.9) ? rng_.below(3) : rng_.next_u32());
  e.hint = static_cast<uint8_t>(rng_.next_u32());
  e.user_ctx = rng_.next_u64();
  e.immediate = rng_.next_u64();
  if (const Region* r = draw_remote(); r != nullptr) {
    e.token_id = r->registered.token_id;
    e.token_value = rng_.next_u32();
    e.remote_address = r->address + (rng_.chance(0.9) ? rng_.below(r->length) & ~uint64_t{7} : rng_.next_u64());
    if (has_extra(e.op)) {
      auto& x = const_cast<WqeExtra&>(extra_of(e));
      x = WqeExtra{.compare = rng_.next_u64(),
                   .notify_address = r->address + rng_.below(r->length),
                   .notify_token_id = r->registered.token_id,
                   .notify_token_value = rng_.next_u32(),
                   .operand_high = rng_.next_u64(),
                   .compare_high = rng_.next_u64(),
                   .pad = {}};
    }
  }
  uint32_t inlined = (e.flags & kWrInline) != 0 ? e.length : 0;
  uint32_t right = wqe_slots(e.op, inlined != 0 ? 0 : e.sge_count, inlined);
  e.slots = static_cast<uint8_t>(mostly || rng_.chance(0.7) ? right : rng_.below(10));
  for (uint32_t i = 0; i < std::max<uint32_t>(e.slots, 1) && i < 8; ++i) q.source[(at + i) % slots] = raw[i];
}

void Hostile::write_receive(ReceiveRing& r, uint32_t at) {
  uint64_t slots = r.slots.size();
  at %= slots;
  if (rng_.chance(0.02)) {
    rng_.fill(reinterpret_cast<std::byte*>(&r.slots[at]), sizeof(Rqe));
    return;
  }
  Rqe raw[5]{};
  Rqe& e = raw[0];
  e.user_ctx = rng_.next_u64();
  e.sge_count = static_cast<uint8_t>(rng_.chance(0.8) ? rng_.between(0, 3) : rng_.below(18));
  for (uint32_t i = 0; i < e.sge_count && i < 16; ++i) {
    const_cast<Sge&>(sge_of(e, i)) = draw_range();
    e.length += sge_of(e, i).length;
  }
  if (rng_.chance(0.1)) e.length = rng_.next_u32();
  if (rng_.chance(0.3)) {  // one that most messages fit into
    e.sge_count = 1;
    e.length = kRegionBytes;
    const Region* own = regions_[rng_.below(regions_.size())];
    e.sge[0] = {own->va(), e.length, own->registered.handle};
  }
  e.slots = static_cast<uint8_t>(rng_.chance(0.9) ? rqe_slots(e.sge_count) : rng_.below(7));
  e.skip = rng_.chance(0.05) ? 1 : 0;
  for (uint32_t i = 0; i < std::max<uint32_t>(e.slots, 1) && i < 5; ++i) r.slots[(at + i) % slots] = raw[i];
}

uint32_t Hostile::jumped(uint32_t index, uint32_t slots) {
  switch (rng_.below(6)) {
    case 0:
      return index + slots;
    case 1:
      return index - slots;
    case 2:
      return index - 1;
    case 3:
      return rng_.next_u32();
    default:
      return index + static_cast<uint32_t>(rng_.below(slots + 1));
  }
}

void Hostile::scribble_indices(QueueIndices& i, uint32_t slots) {
  std::atomic<uint32_t>* words[] = {&i.produced, &i.consumed, &i.retired, &i.armed};
  std::atomic<uint32_t>& word = *words[rng_.below(4)];
  word.store(jumped(word.load(), slots));
}

void Hostile::scribble() {
  SendRing* q = any(queues_);
  ReceiveRing* r = any(jfrs_);
  CompletionRing* c = any(jfcs_);
  switch (rng_.below(7)) {
    case 0:
      if (q != nullptr) write_element(*q, rng_.next_u32());
      break;
    case 1:
      if (q != nullptr) scribble_indices(*q->indices, static_cast<uint32_t>(q->slots.size()));
      break;
    case 2:
      if (r != nullptr) write_receive(*r, rng_.next_u32());
      break;
    case 3:
      if (r != nullptr) scribble_indices(*r->indices, static_cast<uint32_t>(r->slots.size()));
      break;
    case 4:
      if (c != nullptr) rng_.fill(reinterpret_cast<std::byte*>(&c->slots[rng_.below(c->slots.size())]), sizeof(Cqe));
      break;
    case 5:
      if (c != nullptr) scribble_indices(*c->indices, static_cast<uint32_t>(c->slots.size()));
      break;
    default:
      if (q != nullptr) q->source[rng_.below(q->source.size())].flags ^= static_cast<uint8_t>(rng_.next_u32());
      break;
  }
}

// ---- what it does ------------------------------------------------------------------------------------------------

// Is there room for another element? Mostly it keeps to that, and comes back after a jump, or nothing of it would be
// done ever after.
bool Hostile::go_on(QueueIndices& i, uint32_t slots) {
  uint32_t used = i.produced.load() - i.consumed.load();
  if (used > slots && rng_.chance(0.7)) i.produced.store(i.consumed.load());
  return used + 4 <= slots || rng_.chance(0.05);
}

void Hostile::post() {
  SendRing* q = any(queues_);
  for (uint64_t n = rng_.between(1, 4); n != 0; --n) {
    if (!go_on(*q->indices, static_cast<uint32_t>(q->source.size()))) break;
    uint32_t at = q->indices->produced.load();
    Wqe& e = q->source[at % q->source.size()];
    write_element(*q, at);
    uint32_t tail = static_cast<uint32_t>(q->source.size()) - at % static_cast<uint32_t>(q->source.size());
    if (e.slots > tail && rng_.chance(0.9)) {
      e.op = WrOp::kSkip;
      e.slots = static_cast<uint8_t>(tail);
    }
    q->indices->produced.store(at + e.slots, std::memory_order_release);
  }
  core().on_posted(world_.now(), q->id);
}

void Hostile::post_receive() {
  ReceiveRing* r = any(jfrs_);
  for (uint64_t n = rng_.between(1, 4); n != 0; --n) {
    if (!go_on(*r->indices, static_cast<uint32_t>(r->slots.size()))) break;
    uint32_t at = r->indices->produced.load();
    Rqe& e = r->slots[at % r->slots.size()];
    write_receive(*r, at);
    uint32_t tail = static_cast<uint32_t>(r->slots.size()) - at % static_cast<uint32_t>(r->slots.size());
    if (e.slots > tail && rng_.chance(0.9)) {
      e.skip = 1;
      e.slots = static_cast<uint8_t>(tail);
    }
    r->indices->produced.store(at + e.slots, std::memory_order_release);
  }
}

void Hostile::consume() {
  CompletionRing* c = any(jfcs_);
  c->indices->consumed.store(c->indices->produced.load(), std::memory_order_release);
  core().on_completions_read(world_.now(), c->handle);
}

void Hostile::call() {
  core().on_posted(world_.now(), any(queues_)->id);
  CompletionRing* c = any(jfcs_);
  if (rng_.chance(0.5)) core().on_completions_read(world_.now(), c->handle);
  if (rng_.chance(0.5)) core().on_armed(world_.now(), c->handle);
}

void Hostile::control() {
  static constexpr QueueState kStates[] = {QueueState::kReset, QueueState::kReady, QueueState::kSuspended,
                                           QueueState::kError};
  SendRing* q = any(queues_);
  ReceiveRing* r = any(jfrs_);
  Cqe out[4];
  switch (rng_.below(7)) {
    case 0:
      core().set_state(world_.now(), q->id, kStates[rng_.below(4)]);
      break;
    case 1:
      core().set_state(world_.now(), r->id, kStates[rng_.below(4)]);
      break;
    case 2:
      core().take_unhandled(q->id, out, static_cast<uint32_t>(rng_.below(5)));
      break;
    case 3:
      core().set_receive_threshold(r->id, static_cast<uint32_t>(rng_.below(8)));
      break;
    case 4:
      core().bind(world_.now(), q->id, targets_[rng_.below(targets_.size())]);
      break;
    case 5:
      core().unbind(q->id);
      break;
    default:
      destroy_one();
      create();
  }
}

void Hostile::act() {
  if (!alive()) return;
  uint64_t what = rng_.below(20);
  if (what < 8)
    post();
  else if (what < 13)
    post_receive();
  else if (what < 16)
    consume();
  else if (what < 18)
    control();
  else
    call();
  if (rng_.chance(0.3)) scribble();
  if (rng_.chance(0.2)) replace_target();
  replace_broken();
  node_.drive();
}

}  // namespace ub::sim
