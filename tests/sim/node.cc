// SPDX-License-Identifier: Apache-2.0
//
// Life and objects of an instance. Posting, polling and driving are in node_work.cc.
#include "tests/sim/node.h"

#include <algorithm>
#include <bit>

#include "lib/record/image.h"
#include "tests/sim/apertures.h"
#include "tests/sim/world.h"

namespace ub::sim {
namespace {

void must(World& w, Status s, const char* what) {
  if (s != Status::kOk) w.model.fail("%s was refused with status %u", what, static_cast<unsigned>(s));
}

}  // namespace

Node::Node(World& world, uint32_t index, const wire::Endpoint& at) : world_(world), index_(index), at_(at) {}

Node::~Node() { stop(); }

void Node::configure() {
  const CoreOptions& o = world_.options.core;
  config_ = tweak;
  config_.self.eid.bytes = at_.ip.bytes;
  // No former life has had this UASID: by nothing else is it known which one has sent a datagram.
  uint32_t node, epoch;
  do {
    config_.self.uasid = static_cast<uint32_t>(world_.rng.between(1, 0xffff)) << 16 | at_.port;
  } while (world_.find_instance(config_.self.eid, config_.self.uasid, &node, &epoch));
  config_.incarnation = world_.rng.next_u64() | 1;
  config_.seed = world_.rng.next_u64();
  config_.window_packets = o.window_packets;
  config_.lanes = o.lanes;
  config_.lane_bulk_bytes = o.lane_bulk_bytes;
  config_.channels_per_lane = o.channels_per_lane;
  config_.fast_retransmit = o.fast_retransmit;
  config_.go_back_n = o.go_back_n != 0 && world_.rng.chance(o.go_back_n);
  config_.loss_window = o.loss_window;
  config_.questions_until_calm = static_cast<uint8_t>(o.questions_until_calm);
  config_.segment_bytes = o.segment_bytes;
  config_.compact_repeats = o.compact_repeats;
  config_.compact_answers = o.compact_answers;
  config_.straight = o.straight == Straight::kAll || (o.straight == Straight::kSome && index_ % 2 == 0);
  config_.rol = o.rol != 0 && world_.rng.chance(o.rol);
  config_.rtp_over_cna = o.cna != 0 && world_.rng.chance(o.cna);
  config_.read_jobs = o.read_jobs;
  config_.kept_packets = o.kept_packets;
  config_.kept_small_packets = o.kept_small_packets;
  config_.keepalive_idle = nanoseconds(static_cast<int64_t>(o.keepalive_ns));
  config_.first_psn = o.first_psn;
  config_.max_jfc = 64;
  config_.max_queues = 512;
  config_.max_segments = 64;
  config_.max_targets = 4096;
  config_.slow_memory = !world_.options.compact;
  config_.listen_to_network = index_ % 2 == 1;
  config_.max_peers = 256;
  config_.max_channels = 256;
  config_.max_links = 64;
  config_.max_frame_bytes = world_.options.mtu + 512;
  const WorkloadOptions& w = world_.options.work;
  if (has_roce()) config_.roce.max_qps = 256;
  config_.roce.ack_every_message = w.roce_ack_every;
  config_.roce.dcqcn = w.dcqcn;
  config_.congestion_control = w.control;
  config_.most_paths = world_.options.net.paths;
  config_.path_channels = o.path_channels;
  config_.spread = o.spread;
  config_.line_bytes_per_second = w.line_rate;
  config_.roce.max_connections = w.cm_table;
}

void Node::boot() {
  ++epoch_;
  drive_planned_ = false;
  configure();
  UB_ASSERT(arena_.take(SimCore::arena_bytes(config_)));
  host_ = std::make_unique<SimHost>(world_, *this);
  core_ = std::make_unique<SimCore>(config_, arena_.data(), *host_);
  core_->look(world_.mappings == nullptr);
  const Options& o = world_.options;
  link_ = core_->add_link({.mtu = o.mtu,
                           .icrc_optional = o.icrc_optional,
                           .lossless = o.lossless,
                           .compact = o.compact,
                           .link_frames = true,
                           .bypass = o.aperture.frames != 0});
  if (link_ == 0) world_.model.fail("add_link was refused");
  add_paths();
  if (has_roce()) core_->roce()->state().times.tries = o.work.cm_tries;
  if (!world_.record_to.empty()) begin_recording();
  world_.note_instance(config_.self, index_, epoch_);
  world_.trace("node %u starts: uasid %08x incarnation %016llx", index_, config_.self.uasid,
               static_cast<unsigned long long>(config_.incarnation));
}

void Node::begin_recording() {
  recorder_ = std::make_unique<record::Recorder>();
  const std::string path = world_.record_to + "-" + std::to_string(index_) + "-" + std::to_string(epoch_) + ".rec";
  const std::span<std::byte> arena(arena_.data(), arena_.bytes());
  std::string why;
  const record::RecorderOptions options{.headers = true, .payload = index_ % 2 == 1};
  if (!recorder_->begin(path, options, config_, arena, &why)) return world_.model.fail("%s", why.c_str());
  record::put_image(*recorder_, *core_, arena);
  core_->log_calls(recorder_.get());
  host_->record(recorder_.get());
}

// To each other node, or from each further port of its own.
void Node::add_paths() {
  const NetworkOptions& net = world_.options.net;
  const auto add = [this](const ExtraPath& path) {
    if (core_->add_path(path) != Status::kOk) world_.model.fail("add_path was refused");
  };
  for (uint32_t path = 1; path < net.paths; ++path) {
    const wire::Endpoint local = endpoint_of_path(at_, path, net.paths_by_address);
    if (!net.paths_by_address) add({{}, local, {}});
    for (uint32_t i = 0; net.paths_by_address && i < world_.node_count(); ++i) {
      const wire::Endpoint& usual = world_.node(i).at();
      if (i != index_) add({usual.ip, local, endpoint_of_path(usual, path, true).ip});
    }
  }
}

void Node::stop() {
  if (!core_) return;
  if (recorder_ != nullptr) recorder_->stop(record::Ended::kStopped);
  core_.reset();
  host_.reset();
  recorder_.reset();
  arena_.reset();
  targets_.clear();
  address_handles_.clear();
  hostile_rings.clear();
}

void Node::crash() {
  world_.trace("node %u crashes", index_);
  world_.model.instance_gone(index_, epoch_);
  stop();
  for (auto& app : apps_) {
    for (Queue* q : app->queues) destroy(q);
    for (Jfr* r : app->jfrs) destroy(r);
    for (Jfc* c : app->jfcs) c->alive = false;
    app->alive = false;
  }
  for (auto& [p, r] : regions_) {
    world_.model.region_leaving(r);
    r->state = Region::State::kGone;
  }
  regions_.clear();
  if (world_.apertures) world_.apertures->node_stopped(*this);
}

void Node::say_goodbye() {
  core_->close(turn());
  drive();
}

void Node::shut_down() {
  say_goodbye();
  crash();
}

App* Node::add_app(uint64_t request_bytes, uint64_t receive_bytes) {
  apps_.push_back(std::make_unique<App>());
  App& app = *apps_.back();
  app.uid = world_.next_uid();
  app.owner = static_cast<Owner>(apps_.size() - 1);  // the first is as one that has the Core to itself
  app.local = add_local(app, request_bytes);
  app.inbox = add_local(app, receive_bytes);
  return &app;
}

void Node::enroll(Region& r, Owner owner, uint32_t token_id) {
  r.node = index_;
  r.epoch = epoch_;
  must(world_,
       core_->register_segment({.memory = r.memory(),
                                .address = r.address,
                                .local_address = r.va(),
                                .length = r.length,
                                .token_id = token_id,
                                .token = r.token,
                                .access = r.access,
                                .direct = r.direct,
                                .owner = owner},
                               &r.registered),
       "register_segment");
  regions_[r.memory()] = &r;
}

Region* Node::adopt(std::unique_ptr<Region> r, Owner owner, uint32_t token_id) {
  enroll(*r, owner, token_id);
  world_.regions.push_back(std::move(r));
  return world_.regions.back().get();
}

uint32_t Node::import_instance(const Node& peer) {
  TargetConfig c;
  c.instance = peer.id();
  c.path = {.link = link_, .local = at_, .remote = peer.at()};
  uint32_t target = 0;
  must(world_, core_->add_target(turn(), c, &target), "add_target");
  return target;
}

uint32_t Node::add_lane() {
  const uint32_t link = core_->add_link({.mtu = kMaxMtu, .lossless = true});
  if (link == 0) world_.model.fail("node %u has no room for a lane", index_);
  return link;
}

void Node::drop_lane(uint32_t link) {
  core_->link_down(turn(), link);
  drive();
}

Region* Node::add_local(App& app, uint64_t bytes) {
  auto made = std::make_unique<Region>(world_.next_uid(), bytes, true);
  made->app = app.uid;
  made->address = made->va();
  made->access = kAccessLocalOnly;
  made->free.add(0, bytes);
  Region* r = adopt(std::move(made), app.owner, 0);
  world_.model.add_region(r);
  return r;
}

Region* Node::add_target(App& app, const RegionSpec& spec) {
  auto made = std::make_unique<Region>(world_.next_uid(), spec.length, false);
  made->app = app.uid;
  made->access = spec.access;
  made->token = spec.token;
  made->address = spec.odd_address ? (world_.rng.next_u64() >> 4 & ~uint64_t{4095}) : made->va();
  uint64_t body = spec.length - Region::kAtomicBytes;
  made->constant_at = Region::kAtomicBytes;
  made->shared_at = made->constant_at + body / 4;
  made->owned_at = made->shared_at + body / 8;
  made->edge_at = spec.length - std::min<uint64_t>(body / 8, 4096);
  made->free.add(made->owned_at, made->edge_at - made->owned_at);
  Region* r = adopt(std::move(made), app.owner, spec.token_id);
  world_.model.add_region(r);
  app.targets.push_back(r);
  return r;
}

Jfc* Node::add_jfc(App& app, uint32_t depth) {
  auto c = std::make_unique<Jfc>();
  c->uid = world_.next_uid();
  c->node = index_;
  c->app = app.uid;
  c->owner = app.owner;
  c->depth = depth;
  c->slot_count = std::bit_ceil(depth);
  c->slots.reset(new Cqe[c->slot_count]());
  must(world_,
       core_->create_jfc({.slots = c->slots.get(),
                          .slot_count = c->slot_count,
                          .depth = depth,
                          .indices = c->indices.get(),
                          .cookie = c->uid,
                          .owner = app.owner},
                         &c->handle),
       "create_jfc");
  if (c->uid % 4 == 1) {  // some of them, and no random number is drawn for that
    static constexpr uint16_t kCounts[] = {0, 2, 5, 1000};
    c->told_count = kCounts[c->uid / 4 % std::size(kCounts)];
    c->told_period = microseconds(c->uid % 8 == 1 ? 20 : 500);
    must(world_, core_->moderate_jfc(turn(), c->handle, {c->told_count, c->told_period}), "moderate_jfc");
  }
  app.jfcs.push_back(c.get());
  world_.jfcs.push_back(std::move(c));
  return app.jfcs.back();
}

Jfr* Node::add_jfr(App& app, Jfc* jfc, const JfrSpec& spec) {
  auto r = std::make_unique<Jfr>();
  r->uid = world_.next_uid();
  r->node = index_;
  r->app = app.uid;
  r->epoch = epoch_;
  r->jfc = jfc;
  r->mode = spec.mode;
  r->depth = spec.depth;
  r->token = spec.token;
  r->buffer_bytes = spec.buffer_bytes;
  r->slot_count = std::bit_ceil(spec.depth * 4 + 4);
  r->slots.reset(new Rqe[r->slot_count]());
  JfrConfig c{.wanted_id = 0,
              .mode = spec.mode,
              .slots = r->slots.get(),
              .slot_count = r->slot_count,
              .indices = r->indices.get(),
              .jfc = jfc->handle,
              .token = r->token,
              .min_rnr_timer = spec.min_rnr_timer,
              .user_data = r->uid,
              .owner = app.owner};
  must(world_, core_->create_jfr(c, &r->id), "create_jfr");
  app.jfrs.push_back(r.get());
  world_.jfrs.push_back(std::move(r));
  return app.jfrs.back();
}

Queue* Node::add_queue(App& app, Jfc* jfc, Jfr* jfr, const QueueSpec& spec) {
  auto q = std::make_unique<Queue>();
  q->uid = world_.next_uid();
  q->node = index_;
  q->app = app.uid;
  q->owner = app.owner;
  q->epoch = epoch_;
  q->kind = spec.kind;
  q->mode = spec.mode;
  q->jfc = jfc;
  q->jfr = spec.kind == ObjectKind::kJetty ? jfr : nullptr;
  q->recv_jfc = spec.own_recv_jfc && q->jfr != nullptr ? jfc : nullptr;
  q->depth = spec.depth;
  q->rnr_retry = spec.rnr_retry;
  q->suspends = spec.suspends;
  q->completes_early = spec.completes_early && spec.mode != Mode::kUm;
  q->rot = spec.rot && spec.mode == Mode::kRc;
  q->slot_count = std::bit_ceil(spec.slots);
  q->slots.reset(new Wqe[q->slot_count]());
  if (spec.fetched) q->source.reset(new Wqe[q->slot_count]());
  q->work = make_bytes(SimCore::send_queue_work_bytes(spec.depth), true);
  JettyConfig c;
  c.wanted_id = spec.wanted_id;
  c.kind = spec.kind;
  c.mode = spec.mode;
  c.sq = {.slots = q->slots.get(),
          .source = q->source.get(),
          .slot_count = q->slot_count,
          .depth = q->depth,
          .indices = q->indices.get(),
          .work = q->work.get(),
          .jfc = jfc->handle,
          .rnr_retry = spec.rnr_retry,
          .err_timeout = spec.err_timeout,
          .priority = spec.priority,
          .suspends = spec.suspends,
          .completes_early = spec.completes_early};
  c.jfr = q->jfr != nullptr ? q->jfr->id : 0;
  c.recv_jfc = q->recv_jfc != nullptr ? q->recv_jfc->handle : 0;
  c.lower_layer_order = spec.mode == Mode::kRc && !spec.rot;
  c.target_order = q->rot;
  c.user_data = q->uid;
  c.owner = app.owner;
  must(world_, core_->create_jetty(c, &q->id), "create_jetty");
  world_.model.add_queue(q.get(), epoch_);
  app.queues.push_back(q.get());
  world_.queues.push_back(std::move(q));
  return app.queues.back();
}

void Node::destroy(Queue* q) {
  if (q->state == Queue::State::kGone) return;
  if (core_ && !q->qp) must(world_, core_->destroy_jetty(turn(), q->id), "destroy_jetty");
  if (core_ && q->qp) must(world_, core_->roce()->destroy_qp(turn(), q->id), "destroy_qp");
  if (q->jfr != nullptr) world_.model.receiver_gone({q, q->jfr});
  if (q->qp) world_.model.broken(q);
  world_.model.queue_gone(q);
  q->state = Queue::State::kGone;
  q->slots.reset();
  q->source.reset();
  q->work.reset();
}

void Node::destroy(Jfr* r) {
  if (!r->alive) return;
  if (core_) must(world_, core_->destroy_jfr(turn(), r->id), "destroy_jfr");
  world_.model.receiver_gone({nullptr, r});
  r->alive = false;
  r->slots.reset();
  r->posted.clear();
}

void Node::unregister(Region* r) {
  if (r->state == Region::State::kGone) return;
  world_.trace("node %u unregisters region %u", index_, r->uid);
  must(world_, core_->unregister_segment(turn(), r->registered.handle), "unregister_segment");
  world_.model.region_leaving(r);
  r->state = Region::State::kGone;
}

// By number: their places in memory differ from run to run.
std::vector<Region*> Node::regions_of(const App& app) const {
  std::vector<Region*> all;
  for (const auto& [p, r] : regions_)
    if (r->app == app.uid) all.push_back(r);
  std::sort(all.begin(), all.end(), [](const Region* x, const Region* y) { return x->uid < y->uid; });
  return all;
}

void Node::kill_app(App& app) {
  world_.trace("node %u: app %u dies", index_, app.uid);
  world_.model.receivers_dying(app.uid);
  app.alive = false;
  for (Region* r : regions_of(app)) {
    if (r->state != Region::State::kLive) continue;
    r->state = Region::State::kDying;
    world_.model.region_leaving(r);
  }
}

void Node::bury_app(App& app) {
  world_.trace("node %u: app %u is buried", index_, app.uid);
  for (Queue* q : app.queues) destroy(q);
  for (Jfr* r : app.jfrs) destroy(r);
  for (Region* r : regions_of(app)) unregister(r);
  for (Jfc* c : app.jfcs) {
    if (!c->alive) continue;
    must(world_, core_->destroy_jfc(c->handle), "destroy_jfc");
    c->alive = false;
    c->slots.reset();
  }
  drop_targets(app);
  drop_address_handles(app.owner);
  if (world_.on_app_gone) world_.on_app_gone(*this, app);
  if (app.owner != 0) core_->close_owner(turn(), app.owner);
  drive();
}

uint32_t Node::import(Owner owner, const Receiver& to, Mode mode, uint32_t token) {
  uint32_t& target = targets_[{owner, to.uid(), mode, token}];
  if (target == 0) target = import_again(owner, to, mode, token);
  return target;
}

uint32_t Node::import_again(Owner owner, const Receiver& to, Mode mode, uint32_t token) {
  const Node& peer = world_.node(to.node());
  TargetConfig c;
  c.instance = world_.instance_id(to.node(), to.jfr->epoch);
  c.kind = to.kind();
  c.id = to.id();
  c.mode = mode;
  c.token = {to.jfr->token.required, token};
  c.path = {.link = link_, .local = at_, .remote = peer.at()};
  c.owner = owner;
  uint32_t target = 0;
  must(world_, core_->add_target(turn(), c, &target), "add_target");
  return target;
}

void Node::drop_targets(const App& app) {
  for (const auto& [key, target] : targets_)
    if (std::get<0>(key) == app.owner) must(world_, core_->remove_target(target), "remove_target");
  std::erase_if(targets_, [&](const auto& e) { return std::get<0>(e.first) == app.owner; });
  for (const Queue* q : app.queues)
    if (q->bound_target != 0) must(world_, core_->remove_target(q->bound_target), "remove_target of a bound queue");
}

void Node::bind(Queue* q, Queue* peer) {
  q->peer = peer;
  q->bound_token = peer->jfr->token.value;
  q->bound_target = import_again(q->owner, {peer, peer->jfr}, Mode::kRc, q->bound_token);
  must(world_, core_->bind(turn(), q->id, q->bound_target), "bind");
}

const Region* Node::find_region(const std::byte* p) const {
  auto it = regions_.upper_bound(p);
  if (it == regions_.begin()) return nullptr;
  const Region* r = std::prev(it)->second;
  return p <= r->memory() + r->length ? r : nullptr;
}

bool Node::in_send_ring(const std::byte* p, size_t bytes) const {
  for (std::span<const std::byte> ring : hostile_rings)
    if (p >= ring.data() && p + bytes <= ring.data() + ring.size()) return true;
  for (auto& app : apps_) {
    for (const Queue* q : app->queues) {
      auto* first = reinterpret_cast<const std::byte*>(q->slots.get());
      if (first != nullptr && p >= first && p + bytes <= first + q->slot_count * sizeof(Wqe)) return true;
    }
  }
  return false;
}

bool Node::app_alive(uint32_t uid) const {
  return std::any_of(apps_.begin(), apps_.end(), [&](const auto& a) { return a->uid == uid && a->alive; });
}

Queue* Node::find_queue(uint32_t id) const {
  for (auto& app : apps_)
    for (Queue* q : app->queues)
      if (q->id == id && q->state != Queue::State::kGone) return q;
  return nullptr;
}

bool Node::idle(std::string* why) const {
  char buf[200];
  ChannelInfo c;
  for (uint32_t i = 0; i <= core_->channel_table_size(); ++i) {
    if (!core_->channel_info(i, &c)) continue;
    if (c.next_psn == c.oldest_unacked && c.queued_messages == 0) continue;
    std::snprintf(buf, sizeof buf,
                  "node %u: channel %x to uasid %08x state %u: next psn %u, oldest unacked %u, %u queued\n", index_,
                  c.tpn, c.peer.uasid, c.state, c.next_psn, c.oldest_unacked, c.queued_messages);
    *why += buf;
    return false;
  }
  const CoreState& s = core_->state();
  for (uint32_t i = 1; i <= s.channels.high_water(); ++i) {
    if (s.channels[i].early_count == 0) continue;
    std::snprintf(buf, sizeof buf, "node %u: channel %u holds messages whose turn has not come\n", index_, i);
    *why += buf;
    return false;
  }
  if (const roce::State* r = core_->roce_state()) {
    for (uint32_t i = 1; i <= r->qps.high_water(); ++i) {
      const roce::Qp& qp = r->qps[i];
      if (!qp.in_use || !roce::sends(qp.state) || qp.req.oldest == qp.req.end) continue;
      *why += "a queue pair has requests under way\n";
      return false;
    }
  }
  if (core_->has_packets()) *why += "node has packets\n";
  if (core_->is_held_back()) *why += "node is held back, though nobody has anything to send\n";
  return !core_->has_packets() && !core_->is_held_back() && host_->pending() == 0;
}

}  // namespace ub::sim
