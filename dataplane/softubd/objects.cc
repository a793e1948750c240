// SPDX-License-Identifier: Apache-2.0
#include "dataplane/softubd/objects.h"

#include <bit>

#include "dataplane/foreign_memory.h"

namespace ub {

namespace {

using NicCore = Nic::NicCore;

constexpr uint64_t kUserAddressLimit = uint64_t{1} << 47;
constexpr size_t kPageBytes = 4096;

Status quota(std::string* why, const char* key, uint64_t limit) {
  *why =
      std::string("the daemon's limit daemon.") + key + " = " + std::to_string(limit) + " per application is reached";
  return Status::kNoMemory;
}

Status no_memory(std::string* why) {
  *why = "the daemon is out of memory, or a limit of [limits] in its configuration is reached";
  return Status::kNoMemory;
}

bool valid_mode(uint8_t mode) {
  return mode == static_cast<uint8_t>(Mode::kRm) || mode == static_cast<uint8_t>(Mode::kRc) ||
         mode == static_cast<uint8_t>(Mode::kUm);
}

// Room for an object, made before there is one: remembering it cannot fail then.
template <class Map>
auto node_for(typename Map::mapped_type object) {
  Map one;
  one.emplace(0, std::move(object));
  return one.extract(one.begin());
}
inline auto node_for_id() { return std::set<uint32_t>{0}.extract(0); }

template <class Container>
void remember(Container& all, typename Container::node_type node, uint32_t id) {
  if constexpr (requires { node.key(); }) {
    node.key() = id;
  } else {
    node.value() = id;
  }
  all.insert(std::move(node));
}

bool valid_depth(uint32_t depth, uint32_t slots, uint32_t limit) {
  return depth != 0 && depth <= limit && std::has_single_bit(slots) && depth <= slots;
}

// A longer one holds no more requests: it could only make the worker copy more at once.
bool useful_send_ring(uint32_t depth, uint32_t slots) {
  constexpr uint64_t kSlotsOfRequest = wqe_slots(WrOp::kWriteNotify, 0, 512);  // the longest one that liburma posts
  return slots <= 2 * std::bit_ceil((depth + 1) * kSlotsOfRequest);
}

}  // namespace

// ---- areas -----------------------------------------------------------------------------------------------------

Status AppObjects::add_area(const DaemonConfig& limits, uint64_t bytes, uint32_t use, uint32_t* area, ipc::Fd* fd,
                            std::string* why) {
  if (bytes == 0 || bytes % kPageBytes != 0 || bytes > ipc::kLargestArea) return Status::kInvalid;
  if (use > static_cast<uint32_t>(ipc::AreaUse::kWrite)) return Status::kInvalid;
  if (bytes > limits.app_memory || areas_.bytes() > limits.app_memory - bytes) {
    return quota(why, "app_memory", limits.app_memory);
  }
  *area = areas_.add(bytes, static_cast<ipc::AreaUse>(use), fd, why);
  return *area == 0 ? Status::kNoMemory : Status::kOk;
}

Status AppObjects::area_mapped(uint32_t area, std::string* why) {
  return areas_.begin_use(area, why) ? Status::kOk : Status::kInvalid;
}

Status AppObjects::drop_area(uint32_t area) { return areas_.drop(area) ? Status::kOk : Status::kBusy; }

Status AppObjects::share_holders(uint32_t area, std::vector<ipc::ShareHolder>* holders) {
  const int memory = areas_.shared_memory(area);
  if (memory < 0) return Status::kInvalid;
  *holders = nic_.share_holders(memory);
  return Status::kOk;
}

bool AppObjects::take_ring(const ipc::AppRing& ring, Ring* out) {
  if (!std::has_single_bit(ring.slot_count) || ring.offset % kSlotBytes != 0) return false;
  out->area = ring.area;
  out->memory = areas_.use(ring.area, ring.offset, sizeof(QueueIndices) + uint64_t{ring.slot_count} * kSlotBytes);
  return out->memory != nullptr;
}

// ---- completion and receive queues -----------------------------------------------------------------------------

Status AppObjects::create_jfc(const LoadedConfig& config, const ipc::AppQueue& queue, uint32_t* id, uint32_t* bell,
                              std::string* why) {
  if (jfcs_.size() >= config.daemon.app_jfcs) return quota(why, "app_jfcs", config.daemon.app_jfcs);
  if (!valid_depth(queue.depth, queue.ring.slot_count, config.limits.jfc_depth)) return Status::kInvalid;
  Jfc made{};
  if (!take_ring(queue.ring, &made.ring)) return Status::kInvalid;
  JfcConfig jfc;
  jfc.slots = made.ring.slots<Cqe>();
  jfc.slot_count = queue.ring.slot_count;
  jfc.depth = queue.depth;
  jfc.indices = made.ring.indices();
  jfc.cookie = queue.user_data;
  jfc.owner = client_.number();
  auto node = node_for<decltype(jfcs_)>(made);
  Status status = core([&](NicCore& core, Instant) {
    Status created = core.create_jfc(jfc, id);
    if (created == Status::kOk && !client_.add_jfc(*id, &node.mapped().bell)) {
      core.destroy_jfc(*id);
      created = Status::kNoMemory;
    }
    return created;
  });
  if (status != Status::kOk) {
    areas_.release(made.ring.area);
    return status == Status::kNoMemory ? no_memory(why) : status;
  }
  *bell = node.mapped().bell;
  remember(jfcs_, std::move(node), *id);
  return status;
}

Status AppObjects::destroy_jfc(NicCore& core, const std::pair<const uint32_t, Jfc>& jfc) {
  Status status = core.destroy_jfc(jfc.first);
  if (status == Status::kOk) client_.remove_jfc(jfc.second.bell);
  return status;
}

Status AppObjects::destroy_jfc(uint32_t id) {
  auto found = jfcs_.find(id);
  if (found == jfcs_.end()) return Status::kInvalid;
  Status status = core([&](NicCore& core, Instant) { return destroy_jfc(core, *found); });
  if (status != Status::kOk) return status;
  areas_.release(found->second.ring.area);
  jfcs_.erase(found);
  return status;
}

Status AppObjects::create_jfr(const LoadedConfig& config, const ipc::AppQueue& queue, uint32_t* id, std::string* why) {
  if (jfrs_.size() >= config.daemon.app_jfrs) return quota(why, "app_jfrs", config.daemon.app_jfrs);
  if (!jfcs_.contains(queue.jfc) || !valid_mode(queue.mode)) return Status::kInvalid;
  if (queue.ring.slot_count > config.limits.jfr_depth * rqe_slots(kMaxSges) * 2) return Status::kInvalid;
  Jfr made;
  if (!take_ring(queue.ring, &made.ring)) return Status::kInvalid;
  JfrConfig jfr;
  jfr.wanted_id = queue.wanted_id;
  jfr.mode = static_cast<Mode>(queue.mode);
  jfr.slots = made.ring.slots<Rqe>();
  jfr.slot_count = queue.ring.slot_count;
  jfr.indices = made.ring.indices();
  jfr.jfc = queue.jfc;
  jfr.token = {queue.token_required != 0, queue.token_value};
  jfr.min_rnr_timer = queue.min_rnr_timer;
  jfr.user_data = queue.user_data;
  jfr.owner = client_.number();
  auto node = node_for<decltype(jfrs_)>(made);
  Status status = nic_.with_id(&jfr.wanted_id, id, [&](NicCore& core, Instant) { return core.create_jfr(jfr, id); });
  if (status != Status::kOk) {
    areas_.release(made.ring.area);
    return status == Status::kNoMemory ? no_memory(why) : status;
  }
  remember(jfrs_, std::move(node), *id);
  return status;
}

Status AppObjects::destroy_jfr(uint32_t id) {
  auto found = jfrs_.find(id);
  if (found == jfrs_.end()) return Status::kInvalid;
  Status status = core([&](NicCore& core, Instant now) { return core.destroy_jfr(now, id); });
  if (status != Status::kOk) return status;
  nic_.release_id(id);
  areas_.release(found->second.ring.area);
  jfrs_.erase(found);
  return status;
}

// ---- jettys ----------------------------------------------------------------------------------------------------

Status AppObjects::create_jetty(const LoadedConfig& config, const ipc::AppQueue& queue, uint32_t* id, uint32_t* bell,
                                std::string* why) {
  if (jettys_.size() >= config.daemon.app_jetties) return quota(why, "app_jetties", config.daemon.app_jetties);
  const auto kind = static_cast<ObjectKind>(queue.kind);
  const bool jetty_kind = kind == ObjectKind::kJetty;
  if ((!jetty_kind && kind != ObjectKind::kJfs) || !valid_mode(queue.mode) || !jfcs_.contains(queue.jfc) ||
      (jetty_kind && !jfrs_.contains(queue.jfr)) || (queue.recv_jfc != 0 && !jfcs_.contains(queue.recv_jfc)) ||
      !valid_depth(queue.depth, queue.ring.slot_count, config.limits.jfs_depth) ||
      !useful_send_ring(queue.depth, queue.ring.slot_count)) {
    return Status::kInvalid;
  }
  Jetty made{};
  if (!take_ring(queue.ring, &made.ring)) return Status::kInvalid;
  const size_t slot_bytes = size_t{queue.ring.slot_count} * kSlotBytes;
  const size_t work_bytes = NicCore::send_queue_work_bytes(queue.depth);
  const bool too_much = private_bytes_ + slot_bytes + work_bytes > config.daemon.app_memory;
  if (too_much || !made.fetched.map_private(slot_bytes) || !made.work.map_private(work_bytes)) {
    areas_.release(made.ring.area);
    return too_much ? quota(why, "app_memory", config.daemon.app_memory) : no_memory(why);
  }
  JettyConfig jetty;
  jetty.wanted_id = queue.wanted_id;
  jetty.kind = kind;
  jetty.mode = static_cast<Mode>(queue.mode);
  jetty.sq.slots = reinterpret_cast<Wqe*>(made.fetched.data());
  jetty.sq.source = made.ring.slots<Wqe>();
  jetty.sq.slot_count = queue.ring.slot_count;
  jetty.sq.depth = queue.depth;
  jetty.sq.indices = made.ring.indices();
  jetty.sq.work = made.work.data();
  jetty.sq.jfc = queue.jfc;
  jetty.sq.limits = &client_.limits();
  jetty.sq.rnr_retry = queue.rnr_retry;
  jetty.sq.err_timeout = queue.err_timeout;
  jetty.sq.priority = queue.priority;
  jetty.sq.suspends = queue.suspends != 0;
  jetty.sq.completes_early = queue.completes_early != 0;
  jetty.jfr = queue.jfr;
  jetty.recv_jfc = queue.recv_jfc;
  jetty.group = queue.group;
  jetty.lower_layer_order = queue.lower_layer_order != 0;
  jetty.target_order = queue.target_order != 0;
  jetty.user_data = queue.user_data;
  jetty.owner = client_.number();
  const uint32_t area = made.ring.area;
  auto node = node_for<decltype(jettys_)>(std::move(made));
  Status status = nic_.with_id(&jetty.wanted_id, id, [&](NicCore& core, Instant now) {
    Status created = core.create_jetty(jetty, id);
    if (created == Status::kOk && !client_.add_queue(*id, &node.mapped().bell)) {
      core.destroy_jetty(now, *id);
      created = Status::kNoMemory;
    }
    return created;
  });
  if (status != Status::kOk) {
    areas_.release(area);
    return status == Status::kNoMemory ? no_memory(why) : status;
  }
  *bell = node.mapped().bell;
  private_bytes_ += slot_bytes + work_bytes;
  remember(jettys_, std::move(node), *id);
  return status;
}

Status AppObjects::destroy_jetty(NicCore& core, Instant now, const std::pair<const uint32_t, Jetty>& jetty) {
  Status status = core.destroy_jetty(now, jetty.first);
  if (status == Status::kOk) client_.remove_queue(jetty.second.bell);
  return status;
}

void AppObjects::forget_jetty(const Jetty& jetty) {
  private_bytes_ -= jetty.fetched.bytes() + jetty.work.bytes();
  areas_.release(jetty.ring.area);
}

Status AppObjects::destroy_jetty(uint32_t id) {
  auto found = jettys_.find(id);
  if (found == jettys_.end()) return Status::kInvalid;
  Status status = core([&](NicCore& core, Instant now) { return destroy_jetty(core, now, *found); });
  if (status != Status::kOk) return status;
  nic_.release_id(id);
  forget_jetty(found->second);
  jettys_.erase(found);
  return status;
}

Status AppObjects::create_group(const DaemonConfig& limits, const ipc::AppQueue& queue, uint32_t* id,
                                std::string* why) {
  if (queue.policy > static_cast<uint8_t>(GroupPolicy::kQueueDepth)) return Status::kInvalid;
  if (groups_.size() >= limits.app_groups) return quota(why, "app_groups", limits.app_groups);
  GroupConfig group;
  group.wanted_id = queue.wanted_id;
  group.policy = static_cast<GroupPolicy>(queue.policy);
  group.token = {queue.token_required != 0, queue.token_value};
  group.owner = client_.number();
  auto node = node_for_id();
  Status status =
      nic_.with_id(&group.wanted_id, id, [&](NicCore& core, Instant) { return core.create_group(group, id); });
  if (status != Status::kOk) return no_memory(why);
  remember(groups_, std::move(node), *id);
  return status;
}

Status AppObjects::destroy_group(uint32_t id) {
  if (!groups_.contains(id)) return Status::kInvalid;
  Status status = core([&](NicCore& core, Instant now) { return core.destroy_group(now, id); });
  if (status != Status::kOk) return status;
  nic_.release_id(id);
  groups_.erase(id);
  return status;
}

Status AppObjects::set_state(uint32_t id, uint32_t state) {
  if (!is_queue(id) || state > static_cast<uint32_t>(QueueState::kError)) return Status::kInvalid;
  return core([&](NicCore& core, Instant now) { return core.set_state(now, id, static_cast<QueueState>(state)); });
}

Status AppObjects::get_state(uint32_t id, uint32_t* state) {
  if (!is_queue(id)) return Status::kInvalid;
  *state = static_cast<uint32_t>(core([&](NicCore& core, Instant) { return core.state(id); }));
  return Status::kOk;
}

Status AppObjects::moderate_jfc(uint32_t id, const ipc::AppModeration& moderation) {
  if (!jfcs_.contains(id)) return Status::kInvalid;
  Moderation wanted;
  if (moderation.count_given != 0) wanted.count = moderation.count;
  if (moderation.period_given != 0) wanted.period = microseconds(moderation.period_us);
  return core([&](NicCore& core, Instant now) { return core.moderate_jfc(now, id, wanted); });
}

Status AppObjects::inject_rnr(const ipc::AppFault& wanted, std::string* why) {
  std::optional<fault::RnrRule> rule;
  if (wanted.by != ipc::AppFault::kNone) {
    if (wanted.by > static_cast<uint8_t>(fault::By::kChance) || wanted.n == 0) return Status::kInvalid;
    rule = {
        .jfr = wanted.jfr,
        .choice = {
            .by = static_cast<fault::By>(wanted.by), .n = wanted.n, .at_most = wanted.at_most, .seed = wanted.seed}};
  }
  const Status status = core([&](NicCore& core, Instant) { return core.inject_rnr(client_.number(), rule); });
  if (status != Status::kOk) *why = "too many applications have an rnr fault";
  return status;
}

uint64_t AppObjects::injected_rnr() {
  return core([&](NicCore& core, Instant) { return core.injected_rnr(client_.number()); });
}

Status AppObjects::set_threshold(uint32_t id, uint32_t slots) {
  if (!jfrs_.contains(id)) return Status::kInvalid;
  return core([&](NicCore& core, Instant) { return core.set_receive_threshold(id, slots); });
}

Status AppObjects::take_unhandled(uint32_t id, Cqe* out, uint32_t room, uint32_t* count) {
  if (!jettys_.contains(id)) return Status::kInvalid;
  *count = core([&](NicCore& core, Instant) { return core.take_unhandled(id, out, room); });
  return Status::kOk;
}

Status AppObjects::bind(uint32_t jetty, uint32_t target) {
  if (!jettys_.contains(jetty) || !targets_.contains(target)) return Status::kInvalid;
  return core([&](NicCore& core, Instant now) { return core.bind(now, jetty, target); });
}

Status AppObjects::unbind(uint32_t jetty) {
  if (!jettys_.contains(jetty)) return Status::kInvalid;
  return core([&](NicCore& core, Instant) { return core.unbind(jetty); });
}

// ---- tokens, segments, targets ---------------------------------------------------------------------------------

Status AppObjects::alloc_token(const DaemonConfig& limits, uint32_t* id, std::string* why) {
  if (tokens_.size() >= limits.app_segments) return quota(why, "app_segments", limits.app_segments);
  auto node = node_for_id();
  Status status = nic_.with_id([&](NicCore& core, Instant) { return core.alloc_token_id(id); });
  if (status != Status::kOk) return no_memory(why);
  remember(tokens_, std::move(node), *id);
  return status;
}

Status AppObjects::free_token(uint32_t id) {
  if (!tokens_.contains(id)) return Status::kInvalid;
  Status status = core([&](NicCore& core, Instant now) { return core.free_token_id(now, id); });
  if (status == Status::kOk) tokens_.erase(id);
  return status;
}

// Marks its area as in use, if it has one. Null: it cannot be had, `*why` may say why.
std::byte* AppObjects::take_memory(const ipc::AppSegment& segment, std::string* why) {
  if (std::byte* memory = areas_.use(segment.area, segment.offset, segment.length)) return memory;
  if (segment.memory >= kUserAddressLimit || segment.length > kUserAddressLimit - segment.memory) {
    *why = "memory above 2^47 cannot be registered";
    return nullptr;
  }
  if (segment.area != 0 && !areas_.use_unmapped(segment.area)) return nullptr;
  return foreign_pointer(client_.number(), segment.memory);
}

Status AppObjects::register_segment(const DaemonConfig& limits, ipc::AppSegment* segment, std::string* why) {
  if (segments_.size() >= limits.app_segments) return quota(why, "app_segments", limits.app_segments);
  if (!tokens_.contains(segment->token_id)) return Status::kInvalid;
  SegmentConfig config;
  config.memory = take_memory(*segment, why);
  if (config.memory == nullptr) return Status::kInvalid;
  config.address = segment->address;
  config.local_address = segment->local_address;
  config.length = segment->length;
  config.token_id = segment->token_id;
  config.token = {segment->token_required != 0, segment->token_value};
  config.access = segment->access;
  config.exclusive = segment->exclusive != 0;
  config.direct = !is_foreign(config.memory);
  config.owner = client_.number();
  RegisteredSegment registered;
  auto node = node_for<decltype(segments_)>(segment->area);
  Status status = nic_.with_id([&](NicCore& core, Instant) { return core.register_segment(config, &registered); });
  if (status != Status::kOk) {
    areas_.release(segment->area);
    return status == Status::kNoMemory ? no_memory(why) : status;
  }
  segment->handle = registered.handle;
  segment->token_id = registered.token_id;
  remember(segments_, std::move(node), registered.handle);
  if (const auto share = areas_.share_of(segment->area, segment->offset, segment->length)) {
    nic_.offer_share(registered.handle, config, share->memory, share->writable);
  }
  return status;
}

Status AppObjects::unregister_segment(uint32_t handle) {
  auto found = segments_.find(handle);
  if (found == segments_.end()) return Status::kInvalid;
  unpublish(handle);
  Status status = core([&](NicCore& core, Instant now) { return core.unregister_segment(now, handle); });
  if (status != Status::kOk) return status;
  areas_.release(found->second);
  segments_.erase(found);
  return status;
}

Status AppObjects::publish(uint32_t segment, const ipc::AppName& name, std::string* why) {
  const std::string_view text(name.text, strnlen(name.text, sizeof name.text));
  if (!segments_.contains(segment) || !is_name(text)) return Status::kInvalid;
  auto node = node_for_id();
  const Status status = nic_.publish(client_.number(), segment, std::string(text), why);
  if (status == Status::kOk) remember(published_, std::move(node), segment);
  return status;
}

Status AppObjects::unpublish(uint32_t segment) {
  return published_.erase(segment) != 0 ? nic_.unpublish(segment) : Status::kInvalid;
}

Status AppObjects::set_queue_token(uint32_t id, const ipc::AppToken& token) {
  if (!jfrs_.contains(id) && !groups_.contains(id)) return Status::kInvalid;
  return core([&](NicCore& core, Instant) { return core.set_queue_token(id, token.value, token.former); });
}

Status AppObjects::set_segment_token(uint32_t handle, const ipc::AppToken& token) {
  if (!segments_.contains(handle)) return Status::kInvalid;
  return core([&](NicCore& core, Instant) { return core.set_segment_token(handle, token.value, token.former); });
}

Status AppObjects::set_segment_exclusive(uint32_t handle, bool exclusive) {
  if (!segments_.contains(handle)) return Status::kInvalid;
  return core([&](NicCore& core, Instant) { return core.set_segment_exclusive(handle, exclusive); });
}

// Asks once and does not wait: who asks comes again.
Status AppObjects::find_instance(const ipc::AppTarget& target, bool token_id, uint32_t* uasid, std::string* why) {
  const Eid local{target.local_eid}, eid{target.eid};
  if (!nic_.is_own_eid(local) || target.id == 0 || target.id >= kIdSpace) return Status::kInvalid;
  return nic_.find_instance(local, eid, target.id, token_id, uasid, why);
}

Status AppObjects::add_target(const DaemonConfig& limits, const ipc::AppTarget& target, uint32_t* id,
                              std::string* why) {
  if (targets_.size() >= limits.app_targets) return quota(why, "app_targets", limits.app_targets);
  if (!valid_mode(target.mode) || target.kind > static_cast<uint8_t>(ObjectKind::kGroup)) return Status::kInvalid;
  TargetConfig config;
  config.local_eid.bytes = target.local_eid;
  config.instance.eid.bytes = target.eid;
  config.instance.uasid = target.uasid;
  config.kind = static_cast<ObjectKind>(target.kind);
  config.id = target.id;
  config.mode = static_cast<Mode>(target.mode);
  config.token = {target.token_required != 0, target.token_value};
  config.owner = client_.number();
  if (!nic_.is_own_eid(config.local_eid)) return Status::kInvalid;
  if (config.instance.uasid == 0) {
    *why = "whose the id is has to be found out first";
    return Status::kInvalid;
  }
  if (!nic_.find_path(config.local_eid, config.instance, &config.path, why)) return Status::kInvalid;
  const Peer peer{target.local_eid, target.eid, target.uasid};
  if (!peers_.contains(peer) && peers_.size() >= limits.app_peers) return quota(why, "app_peers", limits.app_peers);
  auto node = node_for<decltype(targets_)>(peer);
  uint32_t& users = peers_[peer];
  nic_.look_for_neighbour(config.path);
  Status status = core([&](NicCore& core, Instant now) { return core.add_target(now, config, id); });
  if (status != Status::kOk) {
    if (users == 0) peers_.erase(peer);
    return status == Status::kNoMemory ? no_memory(why) : status;
  }
  ++users;
  remember(targets_, std::move(node), *id);
  return status;
}

Status AppObjects::remove_target(uint32_t id) {
  auto found = targets_.find(id);
  if (found == targets_.end()) return Status::kInvalid;
  Status status = core([&](NicCore& core, Instant) { return core.remove_target(id); });
  if (status != Status::kOk) return status;
  forget_peer(found->second);
  targets_.erase(found);
  return status;
}

void AppObjects::forget_peer(const Peer& peer) {
  auto found = peers_.find(peer);
  if (--found->second == 0) peers_.erase(found);
}

// ---- the end ---------------------------------------------------------------------------------------------------

// Some at a time: each turn waits for the worker, and the worker has others to serve.
template <class Objects, class Destroy, class Forget>
void AppObjects::destroy_each(Objects& all, Destroy destroy, Forget forget) {
  constexpr int kAtATime = 16;
  for (bool all_could = true; all_could && !all.empty();) {
    auto end = all.begin();
    core([&](NicCore& core, Instant now) {
      for (int n = 0; n < kAtATime && end != all.end() && all_could; ++n) {
        all_could = destroy(core, now, *end) == Status::kOk;
        if (all_could) ++end;
      }
      return true;
    });
    while (all.begin() != end) {
      forget(*all.begin());
      all.erase(all.begin());
    }
  }
}

bool AppObjects::destroy_all() {
  auto release_ring = [this](const auto& object) { areas_.release(object.second.ring.area); };
  auto release_receive_queue = [&](const auto& r) {
    nic_.release_id(r.first);
    release_ring(r);
  };
  auto release_id = [this](uint32_t id) { nic_.release_id(id); };
  auto nothing = [](uint32_t) {};
  destroy_each(
      jettys_, [this](NicCore& core, Instant now, const auto& j) { return destroy_jetty(core, now, j); },
      [this](const auto& j) {
        nic_.release_id(j.first);
        forget_jetty(j.second);
      });
  destroy_each(
      groups_, [](NicCore& core, Instant now, uint32_t g) { return core.destroy_group(now, g); }, release_id);
  destroy_each(
      jfrs_, [](NicCore& core, Instant now, const auto& r) { return core.destroy_jfr(now, r.first); },
      release_receive_queue);
  while (!published_.empty()) unpublish(*published_.begin());
  destroy_each(
      segments_, [](NicCore& core, Instant now, const auto& s) { return core.unregister_segment(now, s.first); },
      [this](const auto& s) { areas_.release(s.second); });
  destroy_each(
      tokens_, [](NicCore& core, Instant now, uint32_t t) { return core.free_token_id(now, t); }, nothing);
  destroy_each(
      targets_, [](NicCore& core, Instant, const auto& t) { return core.remove_target(t.first); },
      [this](const auto& t) { forget_peer(t.second); });
  destroy_each(
      jfcs_, [this](NicCore& core, Instant, const auto& c) { return destroy_jfc(core, c); }, release_ring);
  if (count() != 0) return false;
  core([&](NicCore& core, Instant now) {
    core.close_owner(now, client_.number());
    return true;
  });
  return true;
}

uint32_t AppObjects::count() const {
  return static_cast<uint32_t>(jettys_.size() + jfrs_.size() + groups_.size() + segments_.size() + tokens_.size() +
                               targets_.size() + jfcs_.size());
}

void AppObjects::publish_usage() {
  auto tell = [](auto& counter, uint64_t n) {
    counter.store(static_cast<std::remove_reference_t<decltype(counter.load())>>(n), std::memory_order_relaxed);
  };
  Client::Usage& usage = client_.usage;
  tell(usage.send_queues, jettys_.size());
  tell(usage.receive_queues, jfrs_.size());
  tell(usage.jfcs, jfcs_.size());
  tell(usage.segments, segments_.size());
  tell(usage.targets, targets_.size());
  tell(usage.shared_bytes, areas_.bytes());
}

std::string AppObjects::summary() const {
  std::string text;
  auto add = [&text](size_t n, const char* what) {
    if (n != 0) text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + what;
  };
  add(jettys_.size(), "send queues");
  add(jfrs_.size(), "receive queues");
  add(jfcs_.size(), "completion queues");
  add(groups_.size(), "groups");
  add(segments_.size(), "segments");
  add(targets_.size(), "targets");
  add(areas_.bytes() >> 10, "KiB shared");
  return text;
}

}  // namespace ub
