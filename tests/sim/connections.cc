// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/connections.h"

#include <algorithm>

#include "lib/base/bytes.h"

namespace ub::sim {
namespace {

using roce::ConnectionEventKind;
using roce::RejReason;
using State = Connections::Side::State;

constexpr uint64_t kListenerCookie = uint64_t{1} << 32;  // | its place
constexpr size_t kRequestData = 56, kReplyData = 196, kRefusalData = 148;

// Until a side gives up on a peer that says nothing.
Duration patience(const roce::CmTimes& times) {
  Duration all{}, next = times.first;
  for (uint8_t i = 0; i < times.tries; ++i, next = next + next) all = all + std::min(next, times.longest);
  return all;
}

// What the other end said, and zeros behind it.
bool carries(const roce::ConnectionEvent& e, const std::vector<std::byte>& said) {
  const bool request = e.kind == ConnectionEventKind::kConnectRequest;
  const size_t field = request ? kRequestData : e.kind == ConnectionEventKind::kRejected ? kRefusalData : kReplyData;
  if (e.private_data_bytes != field) return false;
  const auto rest = e.private_data.begin() + static_cast<ptrdiff_t>(said.size());
  return std::equal(said.begin(), said.end(), e.private_data.begin()) &&
         std::all_of(rest, e.private_data.begin() + static_cast<ptrdiff_t>(field),
                     [](std::byte b) { return b == std::byte{}; });
}

}  // namespace

Connections::Connections(World& world, Hooks hooks) : world_(world), hooks_(std::move(hooks)) {
  world_.on_connection = [this](Node& node, const roce::ConnectionEvent& e) { on_event(node, e); };
  world_.on_app_gone = [this](Node& node, const App& app) { on_app_gone(node, app); };
}

Connections::~Connections() {
  world_.on_connection = nullptr;
  world_.on_app_gone = nullptr;
}

// ---- who is who ------------------------------------------------------------------------------------------------

Connections::Side* Connections::add(Node& node, bool active) {
  auto s = std::make_unique<Side>();
  s->number = static_cast<uint32_t>(sides_.size()) + 1;
  s->active = active;
  s->node = node.index();
  s->epoch = node.epoch();
  s->since_ns = world_.now().ns;
  sides_.push_back(std::move(s));
  return sides_.back().get();
}

bool Connections::alive(const Side& s) const {
  const Node& node = world_.node(s.node);
  return node.up() && node.epoch() == s.epoch && node.app_alive(s.app);
}

bool Connections::parts(const Side& s) const {
  return s.state >= State::kParting || !alive(s) || (s.qp != nullptr && s.qp->state == Queue::State::kGone);
}

bool Connections::heard_all_along(uint32_t node, uint16_t port, uint64_t since_ns) const {
  return std::any_of(listeners_.begin(), listeners_.end(), [&](const Listener& l) {
    return l.open && l.node == node && l.port == port && l.since_ns <= since_ns && world_.node(node).up() &&
           world_.node(node).epoch() == l.epoch;
  });
}

std::vector<std::byte> Connections::draw_data(uint32_t number, size_t most) {
  std::vector<std::byte> data(world_.rng.between(4, most));
  for (std::byte& b : data) b = static_cast<std::byte>(world_.rng.below(256));
  store_be32(data.data(), number);
  return data;
}

void Connections::fail(const Side& s, const char* what) const {
  world_.model.fail("connection side %u (%s, node %u epoch %u id %x, state %u%s): %s", s.number,
                    s.active ? "asked" : "was asked", s.node, s.epoch, s.connection, static_cast<unsigned>(s.state),
                    s.peer != nullptr ? ", of a pair" : "", what);
}

// ---- what applications do --------------------------------------------------------------------------------------

void Connections::listen(Node& node, App& app, uint16_t port) {
  Listener l{node.index(), node.epoch(), app.uid, 0, port, world_.now().ns, true};
  roce::ListenConfig c;
  c.port = port;
  c.cookie = kListenerCookie | listeners_.size();
  c.owner = app.owner;
  if (world_.rng.chance(0.5)) c.address = node.at().ip;
  if (node.core().roce()->listen(c, &l.handle) != Status::kOk)
    world_.model.fail("node %u: listen was refused", node.index());
  listeners_.push_back(l);
}

Connections::Side* Connections::ask(Node& from, App& app, uint32_t to, uint16_t port, bool strict) {
  const WorkloadOptions& o = world_.options.work;
  Queue* qp = hooks_.make_qp(from, app);
  Side* s = add(from, true);
  s->app = app.uid;
  s->peer_node = to;
  s->qp = qp;
  s->strict = strict;
  s->port = static_cast<uint16_t>(world_.rng.between(20'000, 60'000));
  s->peer_port = port;
  s->said = draw_data(s->number, kRequestData);
  roce::ConnectConfig c;
  c.qpn = qp->id;
  c.path = {from.link(), from.at().ip, world_.node(to).at().ip, 0};
  c.local_port = s->port;
  c.remote_port = port;
  c.path_mtu = roce::code_of_mtu(o.roce_mtu);
  c.responder_resources = c.initiator_depth = o.roce_reads;
  c.timeout = o.roce_timeout;
  c.retry_count = world_.options.mild() || strict ? 7 : o.roce_retry_cnt;
  c.rnr_retry = qp->rnr_retry;
  c.private_data = s->said;
  c.cookie = s->number;
  const Status status = from.core().roce()->connect(world_.now(), c, &s->connection);
  world_.trace("node %u: connection side %u asks node %u: status %u", s->node, s->number, to,
               static_cast<unsigned>(status));
  if (status != Status::kOk) {
    if (status != Status::kNoMemory || from.connections() < o.cm_table) fail(*s, "connect was refused");
    s->state = State::kOver;
    from.flush(qp);
    return nullptr;
  }
  from.drive();
  if (world_.rng.chance(0.2)) plan_hang_up(s);
  return s;
}

void Connections::accept(Side* s) {
  Node& node = world_.node(s->node);
  for (const auto& app : node.apps()) {
    if (app->uid != s->app) continue;
    s->qp = hooks_.make_qp(node, *app);
  }
  s->said = draw_data(s->number, kReplyData);
  s->state = State::kAccepted;
  roce::AcceptConfig c;
  c.qpn = s->qp->id;
  c.responder_resources = c.initiator_depth = world_.options.work.roce_reads;
  c.rnr_retry = s->qp->rnr_retry;
  c.private_data = s->said;
  c.cookie = s->number;
  world_.trace("node %u: connection side %u accepts %u", s->node, s->number, s->attempt);
  if (node.core().roce()->accept(world_.now(), s->connection, c) != Status::kOk) fail(*s, "accept was refused");
  node.drive();
  if (world_.rng.chance(0.2)) plan_hang_up(s);
}

void Connections::refuse(Side* s) {
  Node& node = world_.node(s->node);
  const bool politely = world_.rng.chance(0.7);
  if (politely) s->said = draw_data(s->number, kRefusalData);
  s->state = State::kOver;
  world_.trace("node %u: connection side %u refuses %u", s->node, s->number, s->attempt);
  auto& engine = *node.core().roce();
  const Status status =
      politely ? engine.reject(world_.now(), s->connection, s->said) : engine.disconnect(world_.now(), s->connection);
  if (status != Status::kOk) fail(*s, "reject was refused");
  node.drive();
}

void Connections::hang_up(Side* s) {
  Node& node = world_.node(s->node);
  world_.trace("node %u: connection side %u hangs up", s->node, s->number);
  const bool asked = s->state == State::kAsked;
  if (node.core().roce()->disconnect(world_.now(), s->connection) != Status::kOk) fail(*s, "disconnect was refused");
  s->state = asked ? State::kOver : State::kParting;  // nothing is heard of what was not made yet
  node.flush(s->qp);
}

void Connections::plan_answer(Side* s) {
  if (settled_) return answer(s);
  if (world_.rng.chance(0.05)) return;  // not before settle()
  const uint64_t most = world_.rng.chance(0.8) ? 100'000 : 1'000'000'000;
  world_.after(nanoseconds(static_cast<int64_t>(1 + world_.rng.below(most))), [this, s] { answer(s); });
}

void Connections::answer(Side* s) {
  if (s->state != State::kAsked || !alive(*s)) return;
  const bool strict = sides_[s->attempt - 1]->strict;
  if (!strict && world_.rng.chance(world_.options.work.reject)) return refuse(s);
  accept(s);
}

void Connections::plan_hang_up(Side* s) {
  if (settled_ || s->strict || !world_.rng.chance(world_.options.work.hang_up)) return;
  const uint64_t most = std::max<uint64_t>(world_.options.fault.span_ns, 1000);
  world_.after(nanoseconds(static_cast<int64_t>(1 + world_.rng.below(most))), [this, s] {
    if (!settled_ && !parts(*s)) hang_up(s);
  });
}

void Connections::settle() {
  settled_ = true;
  for (size_t i = 0; i < sides_.size(); ++i)
    if (!sides_[i]->active) answer(sides_[i].get());
}

void Connections::stop(Listener& l) {
  l.open = false;
  Node& node = world_.node(l.node);
  if (node.core().roce()->stop_listening(world_.now(), l.handle) != Status::kOk)
    world_.model.fail("node %u: stop_listening was refused", l.node);
  for (auto& s : sides_) {
    if (s->active || s->node != l.node || s->epoch != l.epoch || s->port != l.port || s->state != State::kAsked)
      continue;
    s->state = State::kOver;
    s->unheard = true;
  }
}

void Connections::on_app_gone(Node& node, const App& app) {
  for (Listener& l : listeners_)
    if (l.open && l.node == node.index() && l.epoch == node.epoch() && l.app == app.uid) stop(l);
}

void Connections::part_all() {
  settled_ = true;
  for (Listener& l : listeners_) {
    Node& node = world_.node(l.node);
    if (l.open && node.up() && l.epoch == node.epoch()) stop(l);
    l.open = false;
  }
  for (size_t i = 0; i < sides_.size(); ++i) {
    Side* s = sides_[i].get();
    if (s->state != State::kEstablished || parts(*s)) continue;
    const bool other_will = s->active && s->peer->state == State::kEstablished && !parts(*s->peer);
    if (other_will && world_.rng.chance(0.5)) continue;
    hang_up(s);
  }
}

// ---- what applications hear ------------------------------------------------------------------------------------

Connections::Side* Connections::named(Node& node, const roce::ConnectionEvent& e) {
  Side* s = e.cookie == 0 || e.cookie > sides_.size() ? nullptr : sides_[e.cookie - 1].get();
  if (s != nullptr && s->node == node.index() && s->epoch == node.epoch() && s->connection == e.connection) return s;
  world_.model.fail("node %u: event %u of connection %x, which it does not have", node.index(),
                    static_cast<unsigned>(e.kind), e.connection);
  return nullptr;
}

void Connections::on_event(Node& node, const roce::ConnectionEvent& e) {
  world_.mix(e.connection ^ e.cookie << 40);
  world_.trace("node %u: connection %x: event %u, reason %u, cookie %llx", node.index(), e.connection,
               static_cast<unsigned>(e.kind), static_cast<unsigned>(e.reason),
               static_cast<unsigned long long>(e.cookie));
  if (e.kind == ConnectionEventKind::kConnectRequest) return on_request(node, e);
  Side* s = named(node, e);
  if (s == nullptr) return;
  if (s->state == State::kOver) return fail(*s, "an event of what is over");
  switch (e.kind) {
    case ConnectionEventKind::kEstablished:
      return on_established(*s, e);
    case ConnectionEventKind::kRejected:
      return on_rejected(*s, e);
    case ConnectionEventKind::kUnreachable:
      return on_unreachable(*s);
    default:
      return on_disconnected(*s);
  }
}

void Connections::on_request(Node& node, const roce::ConnectionEvent& e) {
  const uint32_t number = load_be32(e.private_data.data());
  const uint64_t place = e.cookie & (kListenerCookie - 1);
  if ((e.cookie & kListenerCookie) == 0 || place >= listeners_.size() || number == 0 || number > sides_.size())
    return world_.model.fail("node %u: a connection is asked for that nobody wants", node.index());
  const Listener& l = listeners_[place];
  const Side& from = *sides_[number - 1];
  if (!l.open || l.node != node.index() || l.epoch != node.epoch() || e.local_port != l.port)
    return fail(from, "its request came to a listener that is not there");
  const uint8_t reads = world_.options.work.roce_reads;
  if (!from.active || from.peer_node != node.index() || from.peer_port != l.port || !carries(e, from.said) ||
      e.remote_qpn != from.qp->id || e.remote_port != from.port || e.path.dgid != world_.node(from.node).at().ip ||
      e.path.sgid != node.at().ip || e.responder_resources != reads || e.initiator_depth != reads ||
      e.path_mtu != roce::code_of_mtu(world_.options.work.roce_mtu))
    return fail(from, "its request is not what was said");
  for (const auto& s : sides_)
    if (s->attempt == number && s->epoch == node.epoch() && s->state != State::kOver)
      return fail(*s, "its request is heard once more");
  Side* s = add(node, false);
  s->attempt = number;
  s->app = l.app;
  s->connection = e.connection;
  s->port = l.port;
  s->peer_node = from.node;
  s->strict = from.strict;
  if (answers) plan_answer(s);
}

void Connections::on_established(Side& s, const roce::ConnectionEvent& e) {
  if (s.active) {
    const uint32_t number = load_be32(e.private_data.data());
    Side* other = number == 0 || number > sides_.size() ? nullptr : sides_[number - 1].get();
    if (s.state != State::kAsked) return fail(s, "established twice");
    if (other == nullptr || other->attempt != s.number || other->qp == nullptr || other->qp->id != e.remote_qpn)
      return fail(s, "established, but nobody accepted");
    if (!carries(e, other->said)) return fail(s, "private data of the answer is not what was said");
    if (e.responder_resources != world_.options.work.roce_reads) return fail(s, "READs that the peer serves");
    s.peer = other;
    other->peer = &s;
    s.qp->peer = other->qp;
    other->qp->peer = s.qp;
    // What happened to either before explains what happens to both.
    world_.model.explain_pair(s.qp, s.qp->explained | other->qp->explained);
    if (other->qp->state != Queue::State::kReady) world_.model.broken(other->qp);
  } else {
    if (s.state != State::kAccepted) return fail(s, "established twice");
    if (s.peer == nullptr) return fail(s, "established, but the other end is not");
  }
  s.state = State::kEstablished;
  if (alive(s)) hooks_.established(s.qp);
  plan_hang_up(&s);
}

void Connections::on_rejected(Side& s, const roce::ConnectionEvent& e) {
  const auto some = [&](auto match) {
    return std::any_of(sides_.begin(), sides_.end(),
                       [&](const auto& other) { return other->attempt == s.number && match(*other); });
  };
  bool explained = false;
  if (s.active) {
    if (s.state != State::kAsked) return fail(s, "rejected after it was established");
    const bool own_fault = s.qp->state != Queue::State::kReady;
    switch (e.reason) {
      case RejReason::kConsumer:
        explained =
            some([&](const Side& o) { return o.state == State::kOver && o.qp == nullptr && carries(e, o.said); }) ||
            some([&](const Side& o) { return !alive(o); });  // an instance that ends refuses what it has not answered
        break;
      case RejReason::kInvalidServiceId:
        explained =
            !heard_all_along(s.peer_node, s.peer_port, s.since_ns) || some([](const Side& o) { return o.unheard; });
        break;
      case RejReason::kNoResources:
        explained = world_.options.work.cm_table < 4096;
        break;
      case RejReason::kTimeout:
        explained = some([](const Side& o) { return o.unreachable; });
        break;
      case RejReason::kNoQp:
        explained = own_fault;
        break;
      default:
        break;
    }
  } else {
    const Side& asked = *sides_[s.attempt - 1];
    if (s.state != State::kAccepted) return fail(s, "rejected after it was established");
    // Whoever asked has given up, or is one with another answer.
    explained = parts(asked) || asked.qp->state != Queue::State::kReady || (asked.peer != nullptr && asked.peer != &s);
  }
  if (!explained || s.strict) fail(s, "rejected without a reason");
  end(s);
}

void Connections::on_unreachable(Side& s) {
  const auto& times = world_.node(s.node).core().roce_state()->times;
  if (s.state != State::kAsked && s.state != State::kAccepted) return fail(s, "unreachable after it was established");
  if (s.strict) return fail(s, "unreachable, though nothing is lost");
  if (s.active && world_.now().ns - s.since_ns < static_cast<uint64_t>(patience(times).ns))
    return fail(s, "given up too early");
  s.unreachable = true;
  end(s);
}

void Connections::on_disconnected(Side& s) {
  // An active side that hears of no answer may hear that whoever gave it hung up.
  const bool explained = std::any_of(sides_.begin(), sides_.end(), [&](const auto& other) {
    const bool answered = s.peer == nullptr && other->attempt == s.number && other->qp != nullptr;
    return (other.get() == s.peer || other->number == s.attempt || answered) && parts(*other);
  });
  if (!s.active && s.state == State::kAsked) return fail(s, "disconnected before it was answered");
  if (!parts(s) && !explained) return fail(s, "disconnected, and nobody wanted it");
  end(s);
}

void Connections::end(Side& s) {
  s.state = State::kOver;
  if (alive(s) && s.qp != nullptr) world_.node(s.node).flush(s.qp);
}

// ---- in the end ------------------------------------------------------------------------------------------------

bool Connections::settled(std::string* why) const {
  const auto not_so = [&](const Side& s, const char* what) {
    *why = "connection side " + std::to_string(s.number) + " of node " + std::to_string(s.node) + " " + what;
    return false;
  };
  for (const auto& s : sides_) {
    if (parts(*s)) continue;
    if (s->state == State::kAsked) return not_so(*s, "gets no answer");
    if (s->state == State::kAccepted) return not_so(*s, "accepted and hears nothing more");
    const Side& other = *s->peer;
    const bool other_there = world_.node(other.node).up() && world_.node(other.node).epoch() == other.epoch;
    // Few tries may all be lost, and nobody repeats that he gave up, or the goodbye of an instance that is gone.
    if (other_there && parts(other) && world_.options.work.cm_tries >= 15 && !other.unreachable)
      return not_so(*s, "is established, the other end is over");
  }
  return true;
}

bool Connections::at_rest() const {
  for (uint32_t i = 0; i < world_.node_count(); ++i)
    if (world_.node(i).up() && world_.node(i).connections() + world_.node(i).listeners() != 0) return false;
  return true;
}

}  // namespace ub::sim
