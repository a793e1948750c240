// SPDX-License-Identifier: Apache-2.0
//
// The calls of Backend as calls to the daemon. Where a ring lies is said as area and offset; what else is needed on
// this side (doorbells, registered ranges, the rings of each object) is remembered here.
#include "lib/urma/backends/daemon/daemon_backend.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "lib/ipc/barrier.h"
#include "lib/ipc/keep_errno.h"
#include "lib/ipc/not_cancelled.h"
#include "lib/ipc/pause.h"
#include "lib/urma/backends/daemon/attendant.h"
#include "lib/urma/backends/daemon/bell_table.h"
#include "lib/urma/backends/daemon/client.h"
#include "lib/urma/backends/daemon/shared_heap.h"
#include "lib/urma/backends/private_memory.h"
#include "lib/urma/log.h"

namespace ub::urma {
namespace {

using ipc::AppCall;
using ipc::AppRequest;

// Outlives the back end with the heap: then every call answers that the daemon is gone.
class DaemonAreas final : public AreaSource {
 public:
  explicit DaemonAreas(std::shared_ptr<Client> client) : client_(std::move(client)) {}

  ipc::Fd add_area(size_t bytes, ipc::AreaUse use, bool last_word, uint32_t* id) override {
    AppRequest request = Client::request(AppCall::kAddArea);
    request.bytes = bytes;
    request.value = static_cast<uint32_t>(use);
    Client::Answer answer;
    Status status = client_->call(request, &answer);
    std::string why = answer->text;
    if (status == Status::kOk && answer.fd_count == 1 && ipc::check_sealed_memfd(answer.fds[0].get(), bytes, &why)) {
      *id = answer->id;
      return std::move(answer.fds[0]);
    }
    if (last_word && status != Status::kGone) {
      URMA_LOG_ERROR("no shared memory of %zu bytes: %s", bytes, why.empty() ? "the daemon refused" : why.c_str());
    }
    return {};
  }
  bool area_mapped(uint32_t id) override { return call(AppCall::kAreaMapped, id) == Status::kOk; }
  void drop_area(uint32_t id) override { call(AppCall::kDropArea, id); }

 private:
  Status call(AppCall which, uint32_t id) {
    AppRequest request = Client::request(which);
    request.id = id;
    Client::Answer answer;
    return client_->call(request, &answer);
  }

  const std::shared_ptr<Client> client_;
};

class DaemonBackend final : public Backend {
 public:
  DaemonBackend(const DaemonOptions& options, std::shared_ptr<Client> client, Client::Welcome welcome)
      : instance_(welcome.instance),
        client_(std::move(client)),
        heap_(SharedHeap::create(std::make_shared<DaemonAreas>(client_))),
        attendant_(options, *client_, *heap_, std::move(welcome)) {}
  ~DaemonBackend() override;

  bool start(std::string* error) {
    if (!queue_bells_.open() || !jfc_bells_.open()) {
      *error = "out of memory";
      return false;
    }
    return attendant_.start_helper(error);
  }

  const char* name() const override { return "daemon"; }
  std::vector<Eid> eids() const override {
    std::vector<Eid> eids(instance_.eid_count);
    for (size_t i = 0; i < eids.size(); ++i) eids[i].bytes = instance_.eids[i];
    return eids;
  }
  uint32_t uasid() const override { return instance_.uasid; }
  uint32_t port_mtu_bytes() const override { return instance_.mtu; }
  void set_event_sink(NicEventSink sink) override { attendant_.set_event_sink(std::move(sink)); }

  std::shared_ptr<std::byte> memory(size_t bytes) override {
    std::shared_ptr<std::byte> block = attendant_.gone() ? nullptr : heap_->allocate(bytes);
    if (block == nullptr && client_->gone()) attendant_.lose("");
    return block == nullptr && attendant_.gone() ? private_memory(bytes) : block;
  }

  std::shared_ptr<std::byte> shareable_memory(size_t bytes, bool writable) override;
  Status share_holders(const void* memory, std::vector<ipc::ShareHolder>* holders) override;
  Status open_share(const InstanceId&, const ipc::ShareRequest&, ipc::OpenedShare*, std::string* why) override;

  // ---- queues ----
  Status create_jfc(const JfcConfig& config, uint32_t* jfc) override;
  Status destroy_jfc(uint32_t jfc) override {
    Status status = release(AppCall::kDestroyJfc, jfc);
    if (status == Status::kOk) attendant_.orphans().remove_jfc(jfc);
    return status;
  }
  Status moderate_jfc(uint32_t jfc, const Moderation& wanted) override;
  Status create_jfr(const JfrConfig& config, uint32_t* id) override;
  Status destroy_jfr(uint32_t id) override {
    Status status = release(AppCall::kDestroyJfr, id);
    if (status == Status::kOk) attendant_.orphans().remove_jfr(id);
    return status;
  }
  Status create_jetty(JettyConfig config, uint32_t* id) override;
  Status destroy_jetty(uint32_t id) override {
    Status status = release(AppCall::kDestroyJetty, id);
    if (status == Status::kOk) attendant_.orphans().remove_queue(id);
    return status;
  }
  Status create_group(const GroupConfig& config, uint32_t* id) override;
  Status destroy_group(uint32_t id) override { return release(AppCall::kDestroyGroup, id); }
  Status set_state(uint32_t id, QueueState state) override;
  QueueState state(uint32_t id) override;
  Status set_receive_threshold(uint32_t jfr, uint32_t slots) override {
    return call(AppCall::kSetThreshold, jfr, slots);
  }
  Status set_queue_token(uint32_t id, uint32_t value, uint32_t former) override {
    return set_token(AppCall::kSetQueueToken, id, value, former);
  }
  Status set_segment_token(uint32_t handle, uint32_t value, uint32_t former) override {
    return set_token(AppCall::kSetSegmentToken, handle, value, former);
  }
  Status set_segment_exclusive(uint32_t handle, bool exclusive) override {
    return call(AppCall::kSetExclusive, handle, exclusive);
  }
  uint32_t take_unhandled(uint32_t id, Cqe* out, uint32_t room) override;
  Status bind(uint32_t jetty, uint32_t target) override { return call(AppCall::kBind, jetty, target); }
  Status unbind(uint32_t jetty) override { return release(AppCall::kUnbind, jetty); }

  // ---- memory, targets ----
  Status alloc_token_id(uint32_t* token_id) override;
  Status free_token_id(uint32_t token_id) override { return release(AppCall::kFreeToken, token_id); }
  Status register_segment(const SegmentConfig& config, RegisteredSegment* out) override;
  Status unregister_segment(uint32_t handle) override;
  Status publish(uint32_t segment, const std::string& name, std::string* why) override;
  Status unpublish(uint32_t segment) override { return release(AppCall::kUnpublish, segment); }
  Status find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid,
                       std::string* why) override;
  Status add_target(const Eid& local, TargetConfig config, uint32_t* target, std::string* why) override;
  Status remove_target(uint32_t target) override { return release(AppCall::kRemoveTarget, target); }

  // ---- faults ----
  Status inject(const fault::NicPlan& plan, std::string* why) override;
  fault::NicCounts injected() override;
  Status impair(const impair::Script* send, const impair::Script* receive, std::string* why) override;

  // ---- progress ----
  void posted(uint32_t jetty) override { attendant_.posted(jetty, queue_bells_[jetty]); }
  void drive() override { attendant_.drive(); }
  void begin_wait() override { attendant_.begin_wait(); }
  void end_wait() override { attendant_.end_wait(); }
  void completions_read(uint32_t jfc) override { attendant_.attend(jfc, jfc_bells_[jfc]); }
  void armed(uint32_t jfc) override { attendant_.attend(jfc, jfc_bells_[jfc]); }

  Status open_lane(const InstanceId& instance, ipc::OpenedLane* lane, std::string* why) override;
  void leave() override;
  Counters counters() override;
  std::vector<ChannelInfo> channels() override;

 private:
  // Registered memory: a block of an area, or a range that the agent serves.
  struct Registered {
    uint64_t address;
    uint64_t bytes;
    std::shared_ptr<std::byte> block;
    bool by_agent;
  };

  Status exchange(const AppRequest& request, Client::Answer* answer);
  Status call(const AppRequest& request, Client::Answer* answer);
  Status call(AppCall call, uint32_t id, uint32_t value = 0);
  Status set_token(AppCall call, uint32_t id, uint32_t value, uint32_t former);
  Status release(AppCall call, uint32_t id);
  template <class Remember>
  Status remember(AppCall undo, uint32_t id, Remember remember);
  Status find_ring(const QueueIndices* indices, uint32_t slot_count, ipc::AppRing* ring);
  void forget(const Registered& memory);
  std::string why_not(Status status, const Client::Answer& answer) const;

  const ipc::AppInstance instance_;
  const std::shared_ptr<Client> client_;
  const std::shared_ptr<SharedHeap> heap_;
  BellTable queue_bells_;
  BellTable jfc_bells_;
  std::atomic<uint32_t> callers_{0};
  std::mutex segments_lock_;
  std::map<uint32_t, Registered> segments_;  // by handle
  Attendant attendant_;                      // the last one: its thread ends first
};

// Another thread may still wait for an answer: it is told that there will be none.
void DaemonBackend::leave() {
  attendant_.stop();
  client_->hang_up("the library has ended");
}

DaemonBackend::~DaemonBackend() {
  leave();
  for (int i = 0; i < 100 && callers_.load() != 0; ++i) ipc::pause_for(milliseconds(1));
}

// ---- calls -----------------------------------------------------------------------------------------------------

// Some data calls come here, too (a receive in ERROR, flush): errno stays as it is. Who is cancelled between question
// and answer would leave the answer to the next caller, who did not ask for it.
Status DaemonBackend::exchange(const AppRequest& request, Client::Answer* answer) {
  const ipc::KeepErrno kept;
  const ipc::NotCancelled guard;
  callers_.fetch_add(1);
  Status status = client_->call(request, answer);
  if (status == Status::kGone) attendant_.lose("");
  callers_.fetch_sub(1);
  return status;
}

// As above; a refusal with reasons goes to the log.
Status DaemonBackend::call(const AppRequest& request, Client::Answer* answer) {
  Status status = exchange(request, answer);
  if (status != Status::kOk && status != Status::kGone && (*answer)->text[0] != '\0') {
    URMA_LOG_ERROR("refused by the daemon: %s", (*answer)->text);
  }
  return status;
}

Status DaemonBackend::call(AppCall call_number, uint32_t id, uint32_t value) {
  AppRequest request = Client::request(call_number);
  request.id = id;
  request.value = value;
  Client::Answer answer;
  return call(request, &answer);
}

Status DaemonBackend::set_token(AppCall call_number, uint32_t id, uint32_t value, uint32_t former) {
  AppRequest request = Client::request(call_number);
  request.id = id;
  request.token = {value, former};
  Client::Answer answer;
  return call(request, &answer);
}

// Of a daemon that is gone, nothing needs to be given back.
Status DaemonBackend::release(AppCall call_number, uint32_t id) {
  Status status = call(call_number, id);
  return status == Status::kGone ? Status::kOk : status;
}

// What was made there must be known here, or not be.
template <class Remember>
Status DaemonBackend::remember(AppCall undo, uint32_t id, Remember remember) try {
  remember();
  return Status::kOk;
} catch (const std::bad_alloc&) {
  release(undo, id);
  return Status::kNoMemory;
}

// ---- queues ----------------------------------------------------------------------------------------------------

// The ring's memory is held by whoever made it; here it is only named.
Status DaemonBackend::find_ring(const QueueIndices* indices, uint32_t slot_count, ipc::AppRing* ring) try {
  if (attendant_.gone()) return Status::kGone;
  auto place = heap_->find(indices, sizeof(QueueIndices) + size_t{slot_count} * kSlotBytes);
  if (!place) return Status::kInvalid;
  *ring = {place->area, slot_count, place->offset};
  return Status::kOk;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

Status DaemonBackend::create_jfc(const JfcConfig& config, uint32_t* jfc) {
  AppRequest request = Client::request(AppCall::kCreateJfc);
  Status status = find_ring(config.indices, config.slot_count, &request.queue.ring);
  if (status != Status::kOk) return status;
  request.queue.user_data = config.cookie;
  request.queue.depth = config.depth;
  Client::Answer answer;
  status = call(request, &answer);
  if (status != Status::kOk) return status;
  *jfc = answer->id;
  jfc_bells_.set(*jfc, answer->bell);
  return remember(AppCall::kDestroyJfc, *jfc, [&] { attendant_.orphans().add_jfc(*jfc, config); });
}

Status DaemonBackend::moderate_jfc(uint32_t jfc, const Moderation& wanted) {
  AppRequest request = Client::request(AppCall::kModerateJfc);
  request.id = jfc;
  request.moderation.count_given = wanted.count.has_value();
  request.moderation.count = wanted.count.value_or(0);
  request.moderation.period_given = wanted.period.has_value();
  request.moderation.period_us = static_cast<uint32_t>(wanted.period.value_or(Duration{}).us());
  Client::Answer answer;
  return call(request, &answer);
}

Status DaemonBackend::create_jfr(const JfrConfig& config, uint32_t* id) {
  AppRequest request = Client::request(AppCall::kCreateJfr);
  ipc::AppQueue& queue = request.queue;
  Status status = find_ring(config.indices, config.slot_count, &queue.ring);
  if (status != Status::kOk) return status;
  queue.wanted_id = config.wanted_id;
  queue.mode = static_cast<uint8_t>(config.mode);
  queue.jfc = config.jfc;
  queue.token_required = config.token.required;
  queue.token_value = config.token.value;
  queue.min_rnr_timer = config.min_rnr_timer;
  queue.user_data = config.user_data;
  Client::Answer answer;
  status = call(request, &answer);
  if (status != Status::kOk) return status;
  *id = answer->id;
  return remember(AppCall::kDestroyJfr, *id, [&] { attendant_.orphans().add_jfr(*id, config); });
}

Status DaemonBackend::create_jetty(JettyConfig config, uint32_t* id) {
  AppRequest request = Client::request(AppCall::kCreateJetty);
  ipc::AppQueue& queue = request.queue;
  Status status = find_ring(config.sq.indices, config.sq.slot_count, &queue.ring);
  if (status != Status::kOk) return status;
  queue.wanted_id = config.wanted_id;
  queue.kind = static_cast<uint8_t>(config.kind);
  queue.mode = static_cast<uint8_t>(config.mode);
  queue.depth = config.sq.depth;
  queue.jfc = config.sq.jfc;
  queue.rnr_retry = config.sq.rnr_retry;
  queue.err_timeout = config.sq.err_timeout;
  queue.priority = config.sq.priority;
  queue.suspends = config.sq.suspends;
  queue.completes_early = config.sq.completes_early;
  queue.jfr = config.jfr;
  queue.recv_jfc = config.recv_jfc;
  queue.group = config.group;
  queue.lower_layer_order = config.lower_layer_order;
  queue.target_order = config.target_order;
  queue.user_data = config.user_data;
  Client::Answer answer;
  status = call(request, &answer);
  if (status != Status::kOk) return status;
  *id = answer->id;
  queue_bells_.set(*id, answer->bell);
  return remember(AppCall::kDestroyJetty, *id, [&] { attendant_.orphans().add_queue(*id, config); });
}

Status DaemonBackend::create_group(const GroupConfig& config, uint32_t* id) {
  AppRequest request = Client::request(AppCall::kCreateGroup);
  request.queue.wanted_id = config.wanted_id;
  request.queue.policy = static_cast<uint8_t>(config.policy);
  request.queue.token_required = config.token.required;
  request.queue.token_value = config.token.value;
  Client::Answer answer;
  Status status = call(request, &answer);
  if (status == Status::kOk) *id = answer->id;
  return status;
}

Status DaemonBackend::set_state(uint32_t id, QueueState state) {
  Status status = call(AppCall::kSetState, id, static_cast<uint32_t>(state));
  if (status == Status::kGone && state == QueueState::kError) return Status::kOk;  // there it is
  if (status == Status::kOk && state != QueueState::kError) attendant_.orphans().left_error(id);
  return status;
}

QueueState DaemonBackend::state(uint32_t id) {
  AppRequest request = Client::request(AppCall::kGetState);
  request.id = id;
  Client::Answer answer;
  Status status = call(request, &answer);
  if (status == Status::kOk && answer->value <= static_cast<uint32_t>(QueueState::kError)) {
    return static_cast<QueueState>(answer->value);
  }
  return status == Status::kGone ? QueueState::kError : QueueState::kReset;
}

uint32_t DaemonBackend::take_unhandled(uint32_t id, Cqe* out, uint32_t room) {
  AppRequest request = Client::request(AppCall::kTakeUnhandled);
  request.id = id;
  request.value = std::min<uint32_t>(room, ipc::kAppAnswerExtra / sizeof(Cqe));
  Client::Answer answer;
  if (call(request, &answer) != Status::kOk) return 0;
  const size_t count = std::min<size_t>({answer->value, request.value, answer.extra_bytes / sizeof(Cqe)});
  std::memcpy(out, answer.body.extra, count * sizeof(Cqe));
  return static_cast<uint32_t>(count);
}

// ---- memory, targets -------------------------------------------------------------------------------------------

Status DaemonBackend::alloc_token_id(uint32_t* token_id) {
  Client::Answer answer;
  Status status = call(Client::request(AppCall::kAllocToken), &answer);
  if (status == Status::kOk) *token_id = answer->id;
  return status;
}

void DaemonBackend::forget(const Registered& memory) {
  if (memory.by_agent) attendant_.agent().remove(memory.address, memory.bytes);
}

Status DaemonBackend::register_segment(const SegmentConfig& config, RegisteredSegment* out) try {
  AppRequest request = Client::request(AppCall::kRegisterSegment);
  ipc::AppSegment& segment = request.segment;
  Registered memory{reinterpret_cast<uintptr_t>(config.memory), config.length, nullptr, true};
  if (auto place = heap_->find(config.memory, config.length)) {
    segment.area = place->area;
    segment.offset = place->offset;
    memory.block = std::move(place->block);
    memory.by_agent = !place->mapped;
  }
  if (memory.by_agent) attendant_.agent().add(memory.address, memory.bytes);
  segment.memory = memory.address;
  segment.address = config.address;
  segment.local_address = config.local_address;
  segment.length = config.length;
  segment.token_id = config.token_id;
  segment.token_required = config.token.required;
  segment.token_value = config.token.value;
  segment.access = config.access;
  segment.exclusive = config.exclusive;
  Client::Answer answer;
  Status status = call(request, &answer);
  if (status == Status::kOk) {
    const uint32_t shareable = heap_->shareable_area(config.memory) != 0 ? 1 : 0;
    *out = {answer->segment.handle, answer->segment.token_id, shareable};
    status = remember(AppCall::kUnregister, out->handle, [&] {
      std::lock_guard guard(segments_lock_);
      segments_.insert_or_assign(out->handle, memory);
    });
  }
  if (status != Status::kOk) forget(memory);
  return status;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

Status DaemonBackend::unregister_segment(uint32_t handle) {
  decltype(segments_)::node_type node;
  {
    std::lock_guard guard(segments_lock_);
    node = segments_.extract(handle);
  }
  if (node.empty()) return Status::kInvalid;
  forget(node.mapped());  // first: from here on nothing of ours touches the memory
  return release(AppCall::kUnregister, handle);
}

Status DaemonBackend::publish(uint32_t segment, const std::string& name, std::string* why) try {
  AppRequest request = Client::request(AppCall::kPublish);
  request.id = segment;
  request.name = {};
  std::memcpy(request.name.text, name.data(), std::min(name.size(), kMaxNameBytes));
  Client::Answer answer;
  const Status status = exchange(request, &answer);
  if (status != Status::kOk) *why = why_not(status, answer);
  return status;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

Status DaemonBackend::find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid,
                                    std::string* why) try {
  AppRequest request = Client::request(AppCall::kFindInstance);
  request.target.local_eid = local.bytes;
  request.target.eid = eid.bytes;
  request.target.id = id;
  request.value = token_id ? 1 : 0;
  Client::Answer answer;
  const Status status = exchange(request, &answer);
  if (status == Status::kOk) {
    *uasid = answer->value;
  } else {
    *why = why_not(status, answer);
  }
  return status;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

Status DaemonBackend::open_lane(const InstanceId& instance, ipc::OpenedLane* lane, std::string* why) try {
  AppRequest request = Client::request(AppCall::kOpenLane);
  request.target.eid = instance.eid.bytes;
  request.target.uasid = instance.uasid;
  Client::Answer answer;
  const Status status = exchange(request, &answer);
  if (status != Status::kOk) {
    *why = why_not(status, answer);
    return status;
  }
  if (answer.fd_count != 2 || !ipc::check_sealed_memfd(answer.fds[1].get(), ipc::LaneLayout::kBytes, why)) {
    *why = "the daemon's answer came without a lane (out of descriptors? see ulimit -n)";
    return Status::kNoMemory;
  }
  *lane = {std::move(answer.fds[0]), std::move(answer.fds[1]),
           answer->value != 0 || !ipc::register_for_heavy_barrier()};
  return Status::kOk;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

// ---- memory that others map ------------------------------------------------------------------------------------

// As any other memory when the daemon is gone: nobody can ask for it then.
std::shared_ptr<std::byte> DaemonBackend::shareable_memory(size_t bytes, bool writable) {
  const auto use = writable ? ipc::AreaUse::kWrite : ipc::AreaUse::kRead;
  std::shared_ptr<std::byte> block = attendant_.gone() ? nullptr : heap_->allocate_shareable(bytes, use);
  if (block == nullptr && client_->gone()) attendant_.lose("");
  return block == nullptr && attendant_.gone() ? private_memory(bytes) : block;
}

Status DaemonBackend::share_holders(const void* memory, std::vector<ipc::ShareHolder>* holders) try {
  AppRequest request = Client::request(AppCall::kShareHolders);
  request.id = heap_->shareable_area(memory);
  if (request.id == 0) return Status::kInvalid;
  Client::Answer answer;
  const Status status = exchange(request, &answer);
  if (status != Status::kOk) return status;
  holders->resize(answer.extra_bytes / sizeof(ipc::ShareHolder));
  if (!holders->empty()) {
    std::memcpy(holders->data(), answer.body.extra, holders->size() * sizeof(ipc::ShareHolder));
  }
  return status;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

Status DaemonBackend::open_share(const InstanceId& instance, const ipc::ShareRequest& wanted, ipc::OpenedShare* share,
                                 std::string* why) try {
  AppRequest request = Client::request(AppCall::kOpenShare);
  request.share.eid = instance.eid.bytes;
  request.share.uasid = instance.uasid;
  request.share.request = wanted;
  Client::Answer answer;
  const Status status = exchange(request, &answer);
  if (status != Status::kOk) {
    *why = why_not(status, answer);
    return status;
  }
  if (answer.fd_count != 2) {
    *why = "the daemon's answer came without the memory (out of descriptors? see ulimit -n)";
    return Status::kNoMemory;
  }
  if (!ipc::check_sealed_memfd(answer.fds[1].get(), ipc::share_pages(wanted.length), why)) return Status::kInvalid;
  *share = {std::move(answer.fds[0]), std::move(answer.fds[1]), answer->value != 0, {}, {}, false};
  return status;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

std::string DaemonBackend::why_not(Status status, const Client::Answer& answer) const {
  return status == Status::kGone ? std::string("the daemon is gone: ") + client_->why_gone().c_str() : answer->text;
}

Status DaemonBackend::add_target(const Eid& local, TargetConfig config, uint32_t* target, std::string* why) try {
  AppRequest request = Client::request(AppCall::kAddTarget);
  request.target.local_eid = local.bytes;
  request.target.eid = config.instance.eid.bytes;
  request.target.uasid = config.instance.uasid;
  request.target.id = config.id;
  request.target.token_required = config.token.required;
  request.target.token_value = config.token.value;
  request.target.kind = static_cast<uint8_t>(config.kind);
  request.target.mode = static_cast<uint8_t>(config.mode);
  Client::Answer answer;
  Status status = exchange(request, &answer);
  if (status == Status::kOk) {
    *target = answer->id;
  } else {
    *why = why_not(status, answer);
  }
  return status;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

// ---- faults ----------------------------------------------------------------------------------------------------

// The port and the NIC are everybody's.
Status DaemonBackend::inject(const fault::NicPlan& plan, std::string* why) try {
  if (plan.port_down || plan.stop) {
    *why =
        "\"port down\" and \"stop\" would be faults of all programs of the daemon: they are set in its configuration, "
        "as daemon.inject";
    return Status::kInvalid;
  }
  AppRequest request = Client::request(AppCall::kInjectRnr);
  request.fault.by = ipc::AppFault::kNone;
  if (plan.rnr) {
    const fault::Choice& choice = plan.rnr->choice;
    request.fault = {.seed = choice.seed,
                     .jfr = plan.rnr->jfr,
                     .n = choice.n,
                     .at_most = choice.at_most,
                     .by = static_cast<uint8_t>(choice.by),
                     .reserved = {}};
  }
  Client::Answer answer;
  const Status status = exchange(request, &answer);
  if (status != Status::kOk) *why = why_not(status, answer);
  return status;
} catch (const std::bad_alloc&) {
  return Status::kNoMemory;
}

fault::NicCounts DaemonBackend::injected() {
  Client::Answer answer;
  fault::NicCounts counts;
  if (call(Client::request(AppCall::kInjected), &answer) == Status::kOk) counts.rnr = answer->count;
  return counts;
}

// Its network is everybody's, too.
Status DaemonBackend::impair(const impair::Script*, const impair::Script*, std::string* why) {
  *why =
      "impairments would be those of all programs of the daemon: they are set in its configuration, as impair.send and "
      "impair.receive";
  return Status::kInvalid;
}

// ---- looking in ------------------------------------------------------------------------------------------------

Counters DaemonBackend::counters() {
  Counters counters;
  Client::Answer answer;
  if (call(Client::request(AppCall::kCounters), &answer) == Status::kOk && answer.extra_bytes == sizeof counters) {
    std::memcpy(&counters, answer.body.extra, sizeof counters);
  }
  return counters;
}

std::vector<ChannelInfo> DaemonBackend::channels() {
  std::vector<ChannelInfo> channels;
  AppRequest request = Client::request(AppCall::kChannels);
  Client::Answer answer;
  while (call(request, &answer) == Status::kOk) {
    const size_t count = std::min<size_t>(answer->value, answer.extra_bytes / sizeof(ChannelInfo));
    const size_t before = channels.size();
    channels.resize(before + count);
    std::memcpy(&channels[before], answer.body.extra, count * sizeof(ChannelInfo));
    if (answer->id <= request.value) break;  // 0: that is all
    request.value = answer->id;
  }
  return channels;
}

}  // namespace

std::unique_ptr<Backend> start_daemon_backend(const DaemonOptions& options, std::string* error) try {
  Client::Welcome welcome;
  std::shared_ptr<Client> client = Client::connect(options.socket, options.patience, &welcome, error);
  if (client == nullptr) return nullptr;
  auto backend = std::make_unique<DaemonBackend>(options, std::move(client), std::move(welcome));
  if (!backend->start(error)) return nullptr;
  return backend;
} catch (const std::bad_alloc&) {
  *error = "out of memory";
  return nullptr;
}

}  // namespace ub::urma
