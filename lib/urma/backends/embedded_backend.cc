// SPDX-License-Identifier: Apache-2.0
//
// liburma's embedded back end: the calls of Backend on an Nic.
#include <map>
#include <new>
#include <string>

#include "dataplane/eid.h"
#include "dataplane/nic.h"
#include "lib/ipc/not_cancelled.h"
#include "lib/transport/wire/control_record.h"
#include "lib/urma/backends/backend.h"
#include "lib/urma/backends/private_memory.h"
#include "lib/urma/backends/shareable_blocks.h"
#include "lib/urma/log.h"

namespace ub {

namespace {

constexpr char kOnParameters[] =
    "; the two ends differ, most often in congestion.algorithm: compare `urma_admin config --changed` of both";

// The requests that waited for the channel end with a plain timeout: this line says why.
void log_rejection(const Event& event) {
  const std::string peer = to_text(event.peer);
  if (event.version != wire::kControlRecordVersion) {
    URMA_LOG_ERROR("%s rejected the set-up of a channel: it speaks version %u of the set-up messages, we version %u",
                   peer.c_str(), event.version, wire::kControlRecordVersion);
  } else {
    const auto reason = static_cast<wire::RecordReason>(event.reason);
    URMA_LOG_ERROR("%s rejected the set-up of a channel: %s%s", peer.c_str(), wire::record_reason_name(reason),
                   reason == wire::RecordReason::kParameter ? kOnParameters : "");
  }
}

using NicCore = Nic::NicCore;

class EmbeddedBackend final : public Backend {
 public:
  explicit EmbeddedBackend(std::unique_ptr<Nic> nic) : nic_(std::move(nic)) {}
  ~EmbeddedBackend() override {
    if (nic_->end_stand_in()) return;
    // The thread may come back one day, and finds the NIC where it was, though not the program's rings: it drives no
    // more.
    new auto(std::move(work_));
    static_cast<void>(nic_.release());
  }

  void leave() override {
    if (nic_->end_stand_in()) nic_->end();
  }

  const char* name() const override { return "embedded"; }
  std::vector<Eid> eids() const override { return nic_->eids(); }
  uint32_t uasid() const override { return nic_->uasid(); }
  uint32_t port_mtu_bytes() const override { return nic_->mtu(); }
  void set_event_sink(NicEventSink sink) override {
    nic_->set_event_sink([sink = std::move(sink)](const NicEvent& event) {
      const ipc::NotCancelled guard;  // it is called by who owns the Core
      const auto* of_core = std::get_if<Event>(&event);
      if (of_core != nullptr && of_core->kind == EventKind::kChannelRejected) log_rejection(*of_core);
      sink(event);
    });
  }

  std::shared_ptr<std::byte> memory(size_t bytes) override { return urma::private_memory(bytes); }

  std::shared_ptr<std::byte> shareable_memory(size_t bytes, bool writable) override {
    return shareable_->allocate(bytes, writable);
  }
  Status share_holders(const void* memory, std::vector<ipc::ShareHolder>* holders) override {
    const ipc::Fd fd = shareable_->memory_of(memory);
    if (!fd) return Status::kInvalid;
    *holders = nic_->share_holders(fd.get());
    return Status::kOk;
  }
  Status open_share(const InstanceId& instance, const ipc::ShareRequest& request, ipc::OpenedShare* share,
                    std::string* why) override try {
    return nic_->open_share(instance, request, share, why) ? Status::kOk : Status::kInvalid;
  } catch (const std::bad_alloc&) {
    return Status::kNoMemory;
  }

  bool maps_memory() const override { return nic_->places(); }
  Status add_mapped(const MappedConfig& config, uint32_t* handle) override {
    return nic_->control([&](NicCore& core, Instant) { return core.add_mapped(config, handle); });
  }
  void remove_mapped(uint32_t handle) override {
    nic_->control([&](NicCore& core, Instant) { return core.remove_mapped(handle); });
  }

  Status create_jfc(const JfcConfig& config, uint32_t* jfc) override {
    return nic_->control([&](NicCore& core, Instant) { return core.create_jfc(config, jfc); });
  }
  Status destroy_jfc(uint32_t jfc) override {
    return nic_->control([&](NicCore& core, Instant) { return core.destroy_jfc(jfc); });
  }
  Status moderate_jfc(uint32_t jfc, const Moderation& wanted) override {
    return nic_->control([&](NicCore& core, Instant now) { return core.moderate_jfc(now, jfc, wanted); });
  }
  Status create_jfr(const JfrConfig& wanted, uint32_t* id) override {
    JfrConfig config = wanted;
    return nic_->with_id(&config.wanted_id, id, [&](NicCore& core, Instant) { return core.create_jfr(config, id); });
  }
  Status destroy_jfr(uint32_t id) override {
    return released(id, nic_->control([&](NicCore& core, Instant now) { return core.destroy_jfr(now, id); }));
  }

  // The queue's work memory belongs to the id it got.
  Status create_jetty(JettyConfig config, uint32_t* id) override try {
    if (config.sq.depth == 0) return Status::kInvalid;
    std::map<uint32_t, ipc::Mapping> made;
    ipc::Mapping& work = made[0];
    if (!work.map_private(NicCore::send_queue_work_bytes(config.sq.depth))) return Status::kNoMemory;
    config.sq.work = work.data();
    return nic_->with_id(&config.wanted_id, id, [&](NicCore& core, Instant) {
      Status status = core.create_jetty(config, id);
      if (status != Status::kOk) return status;
      auto node = made.extract(0);
      node.key() = *id;
      work_.insert(std::move(node));  // allocates nothing
      return status;
    });
  } catch (const std::bad_alloc&) {
    return Status::kNoMemory;
  }
  Status destroy_jetty(uint32_t id) override {
    return released(id, nic_->control([&](NicCore& core, Instant now) {
      Status status = core.destroy_jetty(now, id);
      if (status == Status::kOk) work_.erase(id);
      return status;
    }));
  }
  Status create_group(const GroupConfig& wanted, uint32_t* id) override {
    GroupConfig config = wanted;
    return nic_->with_id(&config.wanted_id, id, [&](NicCore& core, Instant) { return core.create_group(config, id); });
  }
  Status destroy_group(uint32_t id) override {
    return released(id, nic_->control([&](NicCore& core, Instant now) { return core.destroy_group(now, id); }));
  }
  Status set_state(uint32_t id, QueueState state) override {
    return nic_->control([&](NicCore& core, Instant now) { return core.set_state(now, id, state); });
  }
  QueueState state(uint32_t id) override {
    return nic_->control([&](NicCore& core, Instant) { return core.state(id); });
  }
  Status set_receive_threshold(uint32_t jfr, uint32_t slots) override {
    return nic_->control([&](NicCore& core, Instant) { return core.set_receive_threshold(jfr, slots); });
  }
  Status set_queue_token(uint32_t id, uint32_t value, uint32_t former) override {
    return nic_->control([&](NicCore& core, Instant) { return core.set_queue_token(id, value, former); });
  }
  Status set_segment_token(uint32_t handle, uint32_t value, uint32_t former) override {
    return nic_->control([&](NicCore& core, Instant) { return core.set_segment_token(handle, value, former); });
  }
  Status set_segment_exclusive(uint32_t handle, bool exclusive) override {
    return nic_->control([&](NicCore& core, Instant) { return core.set_segment_exclusive(handle, exclusive); });
  }
  uint32_t take_unhandled(uint32_t id, Cqe* out, uint32_t room) override {
    return nic_->control([&](NicCore& core, Instant) { return core.take_unhandled(id, out, room); });
  }
  Status alloc_token_id(uint32_t* token_id) override {
    return nic_->with_id([&](NicCore& core, Instant) { return core.alloc_token_id(token_id); });
  }
  Status free_token_id(uint32_t token_id) override {
    return nic_->control([&](NicCore& core, Instant now) { return core.free_token_id(now, token_id); });
  }
  Status register_segment(const SegmentConfig& config, RegisteredSegment* out) override {
    SegmentConfig direct = config;
    direct.direct = true;
    const Status status =
        nic_->with_id([&](NicCore& core, Instant) { return core.register_segment(direct, out); });
    if (status != Status::kOk) return status;
    if (const auto share = shareable_->share_of(config.memory, config.length)) {
      out->shareable = nic_->offer_share(out->handle, direct, share->memory.get(), share->writable) ? 1 : 0;
    }
    return status;
  }
  Status unregister_segment(uint32_t handle) override {
    return nic_->control([&](NicCore& core, Instant now) { return core.unregister_segment(now, handle); });
  }
  Status publish(uint32_t segment, const std::string& name, std::string* why) override try {
    return nic_->publish(Owner{0}, segment, name, why);
  } catch (const std::bad_alloc&) {
    return Status::kNoMemory;
  }
  Status unpublish(uint32_t segment) override { return nic_->unpublish(segment); }
  Status find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid,
                       std::string* why) override try {
    return nic_->find_instance(local, eid, id, token_id, uasid, why);
  } catch (const std::bad_alloc&) {
    return Status::kNoMemory;
  }
  Status add_target(const Eid& local, TargetConfig config, uint32_t* target, std::string* why) override try {
    config.local_eid = local;
    if (!nic_->find_path(local, config.instance, &config.path, why)) return Status::kInvalid;
    nic_->look_for_neighbour(config.path);
    return nic_->control([&](NicCore& core, Instant now) { return core.add_target(now, config, target); });
  } catch (const std::bad_alloc&) {
    return Status::kNoMemory;
  }
  Status remove_target(uint32_t target) override {
    return nic_->control([&](NicCore& core, Instant) { return core.remove_target(target); });
  }
  Status bind(uint32_t jetty, uint32_t target) override {
    return nic_->control([&](NicCore& core, Instant now) { return core.bind(now, jetty, target); });
  }
  Status unbind(uint32_t jetty) override {
    return nic_->control([&](NicCore& core, Instant) { return core.unbind(jetty); });
  }

  void posted(uint32_t jetty) override { nic_->posted(jetty); }
  void drive() override { nic_->drive(); }
  void begin_wait() override { nic_->begin_wait(); }
  void end_wait() override { nic_->end_wait(); }
  bool may_stand_in() override { return nic_->may_stand_in(); }
  int stand_in(int fd, int ms) override { return nic_->stand_in(fd, ms); }
  void completions_read(uint32_t jfc) override {
    nic_->control([&](NicCore& core, Instant now) {
      core.on_completions_read(now, jfc);
      return true;
    });
  }
  void armed(uint32_t jfc) override {
    nic_->control([&](NicCore& core, Instant now) {
      core.on_armed(now, jfc);
      return true;
    });
    nic_->expect_events();
  }

  Status inject(const fault::NicPlan& plan, std::string* why) override { return nic_->inject(plan, why); }
  fault::NicCounts injected() override { return nic_->injected(); }

  Status impair(const impair::Script* send, const impair::Script* receive, std::string* why) override {
    return nic_->impair(send, receive, why);
  }

  Status open_lane(const InstanceId& instance, ipc::OpenedLane* lane, std::string* why) override try {
    return nic_->open_lane(instance, ::getpid(), lane, why) ? Status::kOk : Status::kInvalid;
  } catch (const std::bad_alloc&) {
    return Status::kNoMemory;
  }

  Status open_frames(const Eid& local, const InstanceId& instance, const bypass::OpenConfig& config,
                     bypass::Opened* opened, std::string* why) override try {
    return nic_->open_frames(local, instance, config, opened, why) ? Status::kOk : Status::kInvalid;
  } catch (const std::bad_alloc&) {
    return Status::kNoMemory;
  }
  void close_frames(const bypass::Opened& opened) override { nic_->close_frames(opened); }
  bypass::Ran run_frames(uint32_t handle, bypass::Turns& turns, Duration patience) override {
    return nic_->run_frames(handle, turns, patience);
  }

  Counters counters() override {
    return nic_->control([](NicCore& core, Instant) { return core.counters(); });
  }
  std::vector<ChannelInfo> channels() override { return nic_->channels(); }

 private:
  // An id that somebody asked for by number is there for others again.
  Status released(uint32_t id, Status status) {
    if (status == Status::kOk) nic_->release_id(id);
    return status;
  }

  const std::shared_ptr<urma::ShareableBlocks> shareable_ = std::make_shared<urma::ShareableBlocks>();
  std::map<uint32_t, ipc::Mapping> work_;  // under ownership; outlives the NIC
  std::unique_ptr<Nic> nic_;
};

}  // namespace

std::unique_ptr<Backend> start_embedded_backend(uint32_t wanted_uasid, std::string* error) try {
  ConfigResult loaded = load_config();
  if (!loaded.config) {
    *error = loaded.error;
    return nullptr;
  }
  std::unique_ptr<Nic> nic = Nic::start(
      *loaded.config, wanted_uasid, [](const std::string& sentence) { URMA_LOG_ERROR("%s", sentence.c_str()); }, error);
  if (!nic) return nullptr;
  return std::make_unique<EmbeddedBackend>(std::move(nic));
} catch (const std::bad_alloc&) {
  *error = "out of memory";
  return nullptr;
}

}  // namespace ub
