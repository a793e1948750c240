// SPDX-License-Identifier: Apache-2.0
//
// For directed tests of an application that cannot be trusted: one whose rings a test writes by hand.
#pragma once

#include <span>

#include "tests/sim/directed.h"

namespace ub::sim {

constexpr CrStatus kSuccess = CrStatus::kSuccess;

// An application whose rings a test writes by hand. The oracle does not follow it.
class Raw {
 public:
  static constexpr uint32_t kRegionBytes = 512 * 1024;
  static constexpr uint32_t kToken = 0x4321;

  Raw(Stage& stage, Node& node, uint32_t number, uint32_t slot_count = 16, uint8_t err_timeout = 17,
      OwnerLimits* limits = nullptr, uint32_t group = 0, Mode mode = Mode::kRm)
      : world_(stage.world),
        node_(node),
        owner_(static_cast<Owner>(kFirstHostileOwner + number)),
        mode_(mode),
        slots_(slot_count),
        source(slot_count),
        receives(16) {
    auto r = std::make_unique<Region>(world_.next_uid(), kRegionBytes, true);
    r->hostile = true;
    r->address = r->va();
    r->token = Token{true, kToken};
    r->access = kAccessRead | kAccessWrite | kAccessAtomic;
    for (uint64_t i = 0; i < kRegionBytes; ++i) r->memory()[i] = static_cast<std::byte>(i * 7 + i / 256 + number);
    region = node_.adopt(std::move(r), owner_, 0);
    must(core().create_jfc({.slots = completions_.data(),
                            .slot_count = 64,
                            .depth = 64,
                            .indices = &jfc_indices,
                            .cookie = 0,
                            .owner = owner_},
                           &jfc));
    JfrConfig jc;
    jc.slots = receives.data();
    jc.slot_count = static_cast<uint32_t>(receives.size());
    jc.indices = &jfr_indices;
    jc.mode = mode;
    jc.jfc = jfc;
    jc.owner = owner_;
    must(core().create_jfr(jc, &jfr));
    work_ = make_bytes(SimCore::send_queue_work_bytes(16), true);
    JettyConfig c;
    c.mode = mode;
    c.sq.slots = slots_.data();
    c.sq.source = source.data();
    c.sq.slot_count = slot_count;
    c.sq.depth = 16;
    c.sq.indices = &indices;
    c.sq.work = work_.get();
    c.sq.jfc = jfc;
    c.sq.err_timeout = err_timeout;
    c.sq.limits = limits;
    c.jfr = jfr;
    c.owner = owner_;
    c.group = group;
    must(core().create_jetty(c, &id));
    node_.hostile_rings.push_back(std::as_bytes(std::span(slots_)));
  }
  ~Raw() {
    must(core().destroy_jetty(world_.now(), id));
    must(core().destroy_jfr(world_.now(), jfr));
    must(core().destroy_jfc(jfc));
    node_.unregister(region);
    node_.hostile_rings.clear();
    EXPECT_TRUE(region->guards_intact());
  }

  SimCore& core() { return node_.core(); }
  Owner owner() const { return owner_; }

  uint32_t import(const Node& peer, ObjectKind kind, uint32_t queue) {
    TargetConfig c;
    c.instance = peer.id();
    c.kind = kind;
    c.id = queue;
    c.mode = mode_;
    c.path = {.link = node_.link(), .local = node_.at(), .remote = peer.at()};
    c.owner = owner_;
    uint32_t target = 0;
    must(core().add_target(world_.now(), c, &target));
    return target;
  }
  uint32_t import(Raw& other) { return import(other.node_, ObjectKind::kJetty, other.id); }

  // A request of this application that is as it should be.
  Wqe element(WrOp op, uint32_t length, uint32_t target, const Region* remote) {
    Wqe e{};
    e.op = op;
    e.flags = kWrSignaled | kWrToken;
    e.sge_count = 1;
    e.slots = static_cast<uint8_t>(wqe_slots(op, 1, 0));
    e.target = target;
    e.user_ctx = ++last_;
    e.length = length;
    if (remote != nullptr) {
      e.remote_address = remote->address + kRegionBytes / 2;
      e.token_id = remote->registered.token_id;
      e.token_value = remote->token.value;
    }
    e.sge = {region->va(), length, region->registered.handle};
    return e;
  }
  // Writes it wherever the index stands; a second slot is left as it is.
  Wqe& post(const Wqe& e) {
    uint32_t at = indices.produced.load();
    Wqe& slot = source[at % source.size()];
    slot = e;
    indices.produced.store(at + e.slots, std::memory_order_release);
    core().on_posted(world_.now(), id);
    node_.drive();
    return slot;
  }
  Rqe& post_receive(uint32_t bytes, const Region* where) {
    uint32_t at = jfr_indices.produced.load();
    Rqe& e = receives[at % receives.size()];
    e = Rqe{};
    e.user_ctx = ++last_;
    e.length = bytes;
    e.sge_count = e.slots = 1;
    e.sge[0] = {where->va(), bytes, where->registered.handle};
    jfr_indices.produced.store(at + 1, std::memory_order_release);
    return e;
  }
  // Status of the completion of that request or receive, which has come by now.
  CrStatus status(uint64_t user_ctx) const {
    for (uint32_t i = 0; i != jfc_indices.produced.load(); ++i)
      if (completions_[i % 64].user_ctx == user_ctx) return completions_[i % 64].status;
    ADD_FAILURE() << "no completion of " << user_ctx;
    return CrStatus::kWrUnhandled;
  }
  // Posts, and gives it the time it needs.
  CrStatus outcome(const Wqe& e) {
    post(e);
    world_.run_for(milliseconds(20));
    return status(e.user_ctx);
  }
  bool broken() { return core().state(id) == QueueState::kError; }
  void ring() { core().on_posted(world_.now(), id); }
  const SendQueue& queue() {
    const CoreState& s = core().state();
    return s.queues[s.jettys[s.ids[id].record].queue];
  }
  void moderate(const Moderation& m) { must(core().moderate_jfc(world_.now(), jfc, m)); }
  // Arms the JFC. Was there an event at once?
  bool told_when_armed(Armed armed) {
    arm(jfc_indices, armed);
    core().on_armed(world_.now(), jfc);
    return told();
  }
  // Was there an event since the JFC was armed?
  bool told() const { return jfc_indices.armed.load() == static_cast<uint32_t>(Armed::kNo); }
  Cqe& completion(uint32_t at) { return completions_[at % 64]; }

 private:
  static void must(Status s) { EXPECT_EQ(s, Status::kOk); }

  World& world_;
  Node& node_;
  Owner owner_;
  Mode mode_;
  uint64_t last_ = 0;
  std::vector<Cqe> completions_{64};
  std::vector<Wqe> slots_;
  Bytes work_;

 public:
  std::vector<Wqe> source;
  std::vector<Rqe> receives;
  QueueIndices indices{}, jfr_indices{}, jfc_indices{};
  Region* region = nullptr;
  uint32_t id = 0, jfr = 0, jfc = 0;
};

// Does everything between the trusted applications still work?
inline void others_go_on(Stage& s) {
  s.b().give_receives(1);
  const Wr& w = s.write(5000);
  const Wr& m = s.send(3000);
  s.finish();
  EXPECT_EQ(w.status, kSuccess);
  EXPECT_EQ(m.status, kSuccess);
  s.check_memory();
}

}  // namespace ub::sim
