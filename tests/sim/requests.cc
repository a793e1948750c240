// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/requests.h"

#include <algorithm>

#include "tests/sim/mappings.h"

namespace ub::sim {
namespace {

constexpr uint32_t kMaxInline = 200;

uint8_t needed_access(WrOp op) {
  if (op == WrOp::kRead) return kAccessRead;
  if (writes_remote(op)) return kAccessWrite;
  return is_atomic(op) ? kAccessAtomic : 0;
}

App* app_of(World& w, const Queue* q) {
  for (auto& app : w.node(q->node).apps())
    if (app->uid == q->app) return app.get();
  return nullptr;
}

void give_back(Wr& w) {
  for (const LocalRange& l : w.local) l.region->free.add(l.offset, std::max<uint64_t>(l.bytes, 1));
  if (w.owned) w.remote->free.add(w.remote_offset, std::max<uint64_t>(w.length, 1));
}

// The token that a request shows: that of a user who knows of the new one, or of one who does not. One that was
// withdrawn is shown seldom.
uint32_t shown(World& world, const RotatingToken& t) {
  const bool good = t.state == RotatingToken::Former::kGood;
  if (t.state == RotatingToken::Former::kNone || !world.rng.chance(good ? 0.5 : world.options.work.late_token))
    return t.value;
  if (world.reached) world.reached->reach(good ? ReachedState::kTokenFormer : ReachedState::kTokenWithdrawn);
  return t.former;
}

// Chooses the tokens that the request shows.
void take_tokens(World& world, const Queue* q, const RequestSpec& s, Wr& w) {
  if (w.remote != nullptr) w.token = shown(world, w.remote->token) ^ (s.wrong == Wrong::kToken ? 0x100 : 0);
  if (w.notify != nullptr) w.notify_token = w.notify->token.value;
  if (w.receiver.jfr == nullptr) return;
  w.receiver_token = w.receiver.jfr->token.value;
  if (takes_receive(w.op))
    w.receiver_token = q->mode == Mode::kRc ? q->bound_token : shown(world, w.receiver.jfr->token);
  if (s.wrong == Wrong::kReceiverToken) w.receiver_token ^= 0x10001;
}

std::optional<uint64_t> take_range(World& world, Region* r, uint64_t bytes, const RequestSpec& s) {
  return s.packed ? r->free.take_first(bytes) : r->free.take(bytes, world.rng);
}

// Local memory in `sges` pieces.
bool take_local(World& world, const Queue* q, Wr& w, const RequestSpec& s, uint32_t bytes, uint32_t sges) {
  Region* local = app_of(world, q)->local;
  uint32_t left = bytes;
  for (uint32_t i = 0; i < sges; ++i) {
    uint32_t n = i + 1 == sges ? left : static_cast<uint32_t>(world.rng.below(left + 1));
    auto at = take_range(world, local, n, s);
    if (!at) return false;
    w.local.push_back({local, *at, n});
    left -= n;
  }
  return true;
}

bool take_remote(World& world, Wr& w, const RequestSpec& s) {
  w.effect_bytes = w.length;
  if (s.wrong == Wrong::kRange) {
    bool outside = world.rng.chance(0.4) || w.length < 2;
    bool before = world.rng.chance(0.3);
    if (outside) {
      w.remote_offset = before ? uint64_t{0} - w.length - world.rng.below(64) : s.remote->length + world.rng.below(64);
      w.effect_bytes = 0;
    } else {  // across the end
      uint64_t inside = 1 + world.rng.below(std::min<uint64_t>(w.length - 1, s.remote->length - s.remote->edge_at));
      w.remote_offset = s.remote->length - inside;
      w.effect_bytes = inside;
    }
    return true;
  }
  if (s.offset != kAnywhere) {
    w.remote_offset = s.offset;
    return true;
  }
  if (w.op == WrOp::kRead && !s.alone) {  // anything that is not an atomic word
    if (w.length > s.remote->length - s.remote->constant_at) return false;
    w.remote_offset = world.rng.between(s.remote->constant_at, s.remote->length - w.length);
    return true;
  }
  auto at = take_range(world, s.remote, w.length, s);
  if (!at) return false;
  w.remote_offset = *at;
  // The range of a READ is not used again: a response may be sent anew after its request has ended.
  (w.op == WrOp::kRead ? w.alone : w.owned) = true;
  return true;
}

uint32_t expected_of_ud(World& world, const Queue* q, const Wr& w, const RequestSpec& s) {
  CrStatus status = CrStatus::kSuccess;
  if (s.wrong == Wrong::kLocalRange) status = CrStatus::kLocAccess;
  if (w.length > longest_datagram(world.options)) status = CrStatus::kLocLen;
  if (s.wrong == Wrong::kLocalHandle) status = CrStatus::kLocOperation;
  return bit(status) | q->explained;
}

uint32_t expected(World& world, const Queue* q, const Wr& w, const RequestSpec& s) {
  if (q->ud()) return expected_of_ud(world, q, w, s);
  const uint32_t back = q->suspends ? bit(CrStatus::kWrUnhandled) : 0;
  if (w.unreliable && q->state == Queue::State::kReset) return bit(CrStatus::kWrFlush);
  if (w.unreliable)
    return back | bit(s.wrong == Wrong::kLocalRange || s.wrong == Wrong::kLocalHandle ? CrStatus::kLocAccess
                                                                                      : CrStatus::kSuccess);
  uint32_t ok = bit(CrStatus::kSuccess), more = s.extra_allowed | back;
  // 8.2.2.3: what is posted in RESET ends flushed. While it waits for room in its JFC, its channel may die.
  if (q->state == Queue::State::kReset)
    return bit(CrStatus::kWrFlush) | (world.options.mild() || world.strict ? 0 : bit(CrStatus::kAckTimeout));
  if (w.op == WrOp::kNop) return ok | more;
  if (!world.options.mild() && !world.strict) more |= bit(CrStatus::kAckTimeout);
  if (takes_receive(w.op) && q->rnr_retry < 7) more |= bit(CrStatus::kRnrRetryExceeded);
  bool wrong_local = s.wrong == Wrong::kLocalRange || s.wrong == Wrong::kLocalHandle;
  if (wrong_local) ok = 0, more |= bit(CrStatus::kLocAccess);

  bool abort = s.wrong != Wrong::kNothing && !wrong_local;
  if (w.remote != nullptr && w.length != 0) {
    abort = abort || (w.remote->access & needed_access(w.op)) == 0 || w.remote->state != Region::State::kLive;
    abort = abort || (q->qp && w.remote->app != q->peer->app);  // another protection domain
    abort = abort || (w.notify != nullptr && (w.notify->state != Region::State::kLive));
    abort = abort || !w.remote->token.fits(w.token);
  }
  abort = abort || (takes_receive(w.op) && !q->qp && !w.receiver.jfr->token.fits(w.receiver_token));
  if (abort) ok = 0, more |= bit(CrStatus::kRemAccessAbort);
  if (takes_receive(w.op)) {
    const Receiver& r = w.receiver;
    bool dead = !r.jfr->alive || (r.jetty != nullptr && r.jetty->state == Queue::State::kGone);
    const bool flushing = r.jetty != nullptr && r.jetty->state == Queue::State::kFlushing;
    const bool dropping = (r.jfr->in_error && !r.jfr->will_revive) || (flushing && !r.jetty->comes_back);
    const bool resting = r.jfr->in_reset || (r.jetty != nullptr && r.jetty->state == Queue::State::kReset);
    bool dying = !world.node(r.node()).app_alive(r.jfr->app);
    if (dead || dying) more |= bit(CrStatus::kRemAccessAbort) | bit(CrStatus::kAckTimeout);
    if (dying) more |= bit(CrStatus::kRemOperation);
    if (flushing || resting || r.jfr->in_error) more |= bit(CrStatus::kAckTimeout);
    if (dead || dropping) ok = 0;
    if (w.op != WrOp::kWriteImm && w.length > r.jfr->buffer_bytes) more |= bit(CrStatus::kRemOperation);
  }
  if (q->qp) {
    more |= q->explained;
    if (q->peer->state != Queue::State::kReady) ok = 0, more |= bit(CrStatus::kAckTimeout);
    if (w.op == WrOp::kSend || w.op == WrOp::kSendImm) {
      if (w.length > w.receiver.jfr->buffer_bytes) more |= bit(CrStatus::kRemUnsupported);
    }
  }
  const Node& peer = world.node(w.remote_node);
  if (!peer.up() || peer.epoch() != w.remote_epoch) ok = 0, more |= bit(CrStatus::kAckTimeout);
  return ok | more;
}

// Number of something that takes no datagrams, or of nothing.
uint32_t wrong_qpn(World& world, const Receiver& to) {
  std::vector<uint32_t> others;
  for (const auto& other : world.queues)
    if (other->node == to.node() && other->epoch == to.jetty->epoch && !other->ud()) others.push_back(other->id);
  if (others.empty() || world.rng.chance(0.5)) return 0x800000 | to.id();
  return others[world.rng.below(others.size())];
}

// Where a datagram goes, and what it shows there.
void aim(World& world, const Queue* q, const RequestSpec& s, Wr* w, Wqe* e) {
  constexpr uint32_t kOwnQkey = 1u << 31;
  const bool own = s.wrong != Wrong::kReceiverToken && q->qkey == s.to.jetty->qkey && world.rng.chance(0.3);
  w->qpn = s.wrong == Wrong::kTokenId ? wrong_qpn(world, s.to) : s.to.id();
  w->qkey = s.wrong == Wrong::kReceiverToken ? s.to.jetty->qkey ^ 1 : s.to.jetty->qkey;
  e->token_id = w->qpn;
  e->token_value = own ? kOwnQkey : w->qkey;
  e->target = s.wrong == Wrong::kLocalHandle ? 0x7fff'fff0 : world.node(q->node).address_handle(q->owner, s.to.node());
}

}  // namespace

uint32_t longest_datagram(const Options& o) { return std::min(o.mtu, roce::kMaxPathMtu); }

// A response that comes out of its place makes the requester ask for all the rest once more. On a wire without end to
// its speed all the rest is then under way at once, so that a READ of n packets costs about n * n / 2.
uint32_t longest_roce_read(const Options& o) {
  constexpr uint32_t kPackets = 1000;
  const bool shuffles = o.net.reorder != 0 && o.net.ns_per_byte == 0;
  return shuffles ? kPackets * o.work.roce_mtu : UINT32_MAX;
}

const Wr* post(World& world, Queue* q, const RequestSpec& s) {
  if (q->unfinished() >= q->depth) return nullptr;
  Node& node = world.node(q->node);
  auto made = std::make_unique<Wr>();
  Wr& w = *made;
  w.id = world.model.next_id();
  w.queue = q;
  w.op = s.op;
  w.length = s.length;
  w.place_order = s.order;
  w.unreliable = q->mode == Mode::kUm;
  w.must_arrive = s.must_arrive;
  w.immediate = s.immediate != 0 ? s.immediate : 0x1111'0000'0000 + w.id;
  if (s.op == WrOp::kNop) w.length = 0;
  if (s.op != WrOp::kNop) {
    w.receiver = s.to;
    w.remote_node = s.to.node();
    w.remote_epoch = s.to.jetty != nullptr ? s.to.jetty->epoch : s.to.jfr->epoch;
  }
  if (is_atomic(s.op)) {
    w.remote = s.remote;
    AtomicModel& a = world.model.atomics(s.remote);
    const auto plan = [&] {
      return s.plain_add ? a.plan_add() : q->qp ? a.plan_for_qp(world.rng, w.id) : a.plan(world.rng, w.id);
    };
    w.atomic = plan();
    while (s.alone && !world.model.unused(s.remote, w.atomic.offset, w.atomic.bytes)) {
      a.withdraw(w.atomic);
      w.atomic = plan();
    }
    w.alone = s.alone;
    w.op = w.atomic.op;
    w.length = w.atomic.bytes;
    w.remote_offset = w.atomic.offset;
  } else if (writes_remote(s.op) || s.op == WrOp::kRead) {
    w.remote = s.remote;
    if (!take_remote(world, w, s)) return nullptr;
  }
  auto undo = [&]() -> const Wr* {
    if (is_atomic(w.op)) world.model.atomics(w.remote).withdraw(w.atomic);
    give_back(w);
    return nullptr;
  };
  if (s.op == WrOp::kWriteNotify && w.length != 0) {
    Region* n = s.notify != nullptr ? s.notify : s.remote;
    auto at = n->free.take(16, world.rng);
    if (!at) return undo();
    w.notify = n;
    w.notify_offset = (*at + 7) & ~uint64_t{7};
  }
  take_tokens(world, q, s, w);
  bool carries_payload = writes_remote(w.op) || (takes_receive(w.op));
  bool inlined = s.inlined && carries_payload && w.length <= kMaxInline && s.wrong != Wrong::kLocalRange &&
                 s.wrong != Wrong::kLocalHandle;
  uint32_t sges = is_atomic(w.op) ? 1 : w.op == WrOp::kNop || inlined ? 0 : std::max(1u, s.sges);
  if (!take_local(world, q, w, s, inlined ? 0 : w.length, sges)) return undo();

  w.flags = static_cast<uint8_t>((s.signaled ? kWrSignaled : 0) | (s.fence ? kWrFence : 0) |
                                 (s.solicited && takes_receive(w.op) ? kWrSolicited : 0) | (inlined ? kWrInline : 0) |
                                 (s.comp_order ? kWrCompOrder : 0));
  Wqe e{};
  e.op = w.op;
  e.flags = w.flags;
  e.user_ctx = w.id;
  e.length = w.length;
  e.place_order = s.order;
  e.immediate = is_atomic(w.op) ? low_half(w.atomic.operand) : w.immediate;
  WqeExtra x{};
  x.compare = low_half(w.atomic.compare);
  x.compare_high = high_half(w.atomic.compare);
  x.operand_high = high_half(w.atomic.operand);
  if (w.op != WrOp::kNop) {
    e.target = q->qp                  ? 0
               : s.target != 0        ? s.target
               : q->mode == Mode::kRc ? q->bound_target
                                      : node.import(q->owner, s.to, q->mode, w.receiver_token);
  }
  if (q->ud()) aim(world, q, s, &w, &e);
  if (w.remote != nullptr) {
    if (world.mappings && !q->qp) world.mappings->prepare(node, q->owner, *w.remote);
    e.remote_address = w.remote->address + w.remote_offset;
    e.token_id = s.wrong == Wrong::kTokenId ? 0xffff0 : w.remote->registered.token_id;
    if (w.remote->token.required) {
      e.flags |= kWrToken;
      e.token_value = w.token;
    }
  }
  if (q->qp) {
    w.immediate = e.immediate = is_atomic(w.op) ? e.immediate : e.immediate & 0xffff'ffff;
    if (!q->ud()) e.token_id = roce::make_rkey(e.token_id, e.token_value);
  }
  if (w.notify != nullptr) {
    x.notify_address = w.notify->address + w.notify_offset;
    x.notify_token_id = w.notify->registered.token_id;
    x.notify_token_value = w.notify_token;
  }
  std::vector<Sge> list;
  for (const LocalRange& l : w.local) list.push_back(l.sge());
  if (!list.empty()) {  // empty ranges are skipped, so damage one that is not
    Sge& victim =
        *std::max_element(list.begin(), list.end(), [](const Sge& a, const Sge& b) { return a.length < b.length; });
    const Region& local = *w.local.front().region;
    if (s.wrong == Wrong::kLocalRange) victim.address = local.va() + local.length + world.rng.below(64);
    if (s.wrong == Wrong::kLocalHandle && !q->ud()) victim.segment = 0x7fff'fff0;
  }
  Bytes payload;
  if (inlined) {
    payload = make_bytes(w.length, false);
    pattern_fill(payload.get(), w.id, 0, w.length);
  }
  if (!q->push(e, has_extra(w.op) ? &x : nullptr, list, payload.get())) {
    if (w.notify != nullptr) w.notify->free.add(w.notify_offset, 8);
    return undo();
  }
  if (carries_payload && !inlined) {
    uint64_t at = 0;
    for (const LocalRange& l : w.local) {
      pattern_fill(l.data(), w.id, at, l.bytes);
      at += l.bytes;
    }
  }
  w.allowed = expected(world, q, w, s);
  const bool runs = q->state != Queue::State::kReset;
  bool may_write = runs && ((w.allowed & bit(CrStatus::kSuccess)) != 0 || s.wrong == Wrong::kRange ||
                            s.wrong == Wrong::kLocalRange || s.wrong == Wrong::kLocalHandle || takes_receive(w.op));
  if (w.remote != nullptr &&
      (w.remote->state != Region::State::kLive || (w.remote->access & needed_access(w.op)) == 0 ||
       !w.remote->token.fits(w.token) || s.wrong == Wrong::kToken || s.wrong == Wrong::kTokenId ||
       (q->qp && w.remote->app != q->peer->app)))
    may_write = false;
  if (!may_write) w.effect_bytes = 0;
  // A result that has no place to go is found out only when it comes.
  w.may_run = runs && ((w.allowed & bit(CrStatus::kSuccess)) != 0 || s.wrong == Wrong::kLocalRange ||
                       s.wrong == Wrong::kLocalHandle);
  if (w.unreliable && s.wrong != Wrong::kNothing && s.wrong != Wrong::kReceiverToken) w.may_run = false;
  if (w.unreliable && !q->qp && w.receiver.jfr != nullptr) w.shows_token = w.receiver.jfr->token.fits(w.receiver_token);
  if (q->ud()) w.may_run = (w.allowed & bit(CrStatus::kSuccess)) != 0;
  const bool late = w.remote != nullptr && s.wrong == Wrong::kNothing && !w.remote->token.fits(w.token);
  if (!runs || ((w.allowed & bit(CrStatus::kSuccess)) == 0 && (late || s.wrong != Wrong::kNothing))) w.notify = nullptr;
  if (!runs && world.reached) world.reached->reach(ReachedState::kResetPosted);
  static constexpr const char* kNames[] = {nullptr,          "token",       "token id",    "range",
                                           "receiver token", "local range", "local handle"};
  w.wrong = kNames[static_cast<size_t>(s.wrong)];
  if (late) w.wrong = "former token";
  const Wr& posted = world.model.post(std::move(made));
  // A request that may fail takes the queue pair with it.
  if (q->qp && (w.allowed & ~bit(CrStatus::kSuccess)) != 0)
    world.model.explain_pair(q, bit(CrStatus::kWrFlush) | (q->ud() ? 0 : bit(CrStatus::kAckTimeout)));
  if (world.verbose) world.trace("node %u: post %s", q->node, world.model.describe(posted).c_str());
  return &posted;
}

}  // namespace ub::sim
