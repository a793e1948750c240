// SPDX-License-Identifier: Apache-2.0
//
// A Backend without a NIC: it remembers what it was asked for, and completes what a test tells it to
// complete. The rings are read and written by the rules of lib/base/work_queue.h, as a Core does.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lib/urma/backends/backend.h"
#include "lib/urma/backends/private_memory.h"

namespace ub::test {

class FakeBackend : public Backend {
 public:
  struct Jfc {
    JfcConfig config;
    uint32_t produced = 0;
    Moderation moderation;  // as it was told last
  };
  struct Queue {
    JettyConfig config;
    uint32_t next = 0;  // slot
    uint32_t bound = 0;
    QueueState state = QueueState::kReady;
    bool flush_done_produced = false;
  };
  struct Receive {
    JfrConfig config;
    uint32_t next = 0;
    uint32_t threshold = 0;
    QueueState state = QueueState::kReady;
  };

  static constexpr uint32_t kUasid = 0xabcd12b8;
  static constexpr uint32_t kMtu = 4096;

  static Eid eid(uint8_t last) {
    Eid out;
    out.bytes[10] = out.bytes[11] = 0xff;
    out.bytes[12] = 10;
    out.bytes[15] = last;
    return out;
  }

  void leave() override {}

  // ---- what tests look at and turn ----
  std::map<uint32_t, Jfc> jfcs;
  std::map<uint32_t, Queue> queues;
  std::map<uint32_t, Receive> receives;
  std::map<uint32_t, SegmentConfig> segments;
  std::map<uint32_t, TargetConfig> targets;
  std::map<uint32_t, GroupConfig> groups;
  std::map<uint32_t, bool> token_ids;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> tokens;  // that were set later, by id or handle
  std::map<uint32_t, bool> exclusive;                        // of which that was set, by handle
  std::vector<uint32_t> doorbells;
  std::atomic<uint32_t> drives{0};
  std::atomic<int> waiters{0};
  std::atomic<uint32_t> reads_told{0};
  std::function<void()> on_drive;
  std::function<void()> on_destroy_jetty;
  std::function<void()> on_add_target;  // may hold the calling thread up
  // Whose ids and token ids are, for those who do not know the uasid; found after so many looks in vain. 0: of one that
  // never answers.
  std::map<std::tuple<std::array<uint8_t, 16>, uint32_t, bool>, uint32_t> owners;
  uint32_t busy_looks = 0, looks = 0;
  Status next_status = Status::kOk;  // what the next creation answers
  Status bind_status = Status::kOk;
  Status inject_status = Status::kOk;
  fault::NicPlan nic_plan;      // as it was asked for last
  fault::NicCounts nic_counts;  // what injected() tells
  std::vector<ChannelInfo> channel_list;
  Status impair_status = Status::kOk;
  impair::Script sends_with, receives_with;  // what impair() was told last

  // The elements that were posted and not completed yet. Filler is skipped.
  std::vector<const Wqe*> elements(uint32_t id) {
    Queue& q = queues.at(id);
    std::vector<const Wqe*> out;
    uint32_t mask = q.config.sq.slot_count - 1;
    for (uint32_t at = q.next; at != q.config.sq.indices->produced.load();) {
      const Wqe& wqe = q.config.sq.slots[at & mask];
      if (wqe.op != WrOp::kSkip) out.push_back(&wqe);
      at += wqe.slots;
    }
    return out;
  }

  // Finishes the oldest request. False: none.
  bool finish(uint32_t id, CrStatus status = CrStatus::kSuccess) {
    Queue& q = queues.at(id);
    QueueIndices& indices = *q.config.sq.indices;
    uint32_t mask = q.config.sq.slot_count - 1;
    while (q.next != indices.produced.load()) {
      const Wqe& wqe = q.config.sq.slots[q.next & mask];
      q.next += wqe.slots;
      if (wqe.op == WrOp::kSkip) continue;
      if ((wqe.flags & kWrSignaled) != 0 || status != CrStatus::kSuccess) {
        Cqe cqe = send_cqe(id, status);
        cqe.user_ctx = wqe.user_ctx;
        cqe.length = wqe.length;
        cqe.op = wqe.op;
        produce(q.config.sq.jfc, cqe);
      }
      indices.retired.fetch_add(1);
      indices.consumed.store(q.next);
      return true;
    }
    return false;
  }

  // Takes the oldest receive.
  const Rqe* take_receive(uint32_t id) {
    Receive& r = receives.at(id);
    if (r.next == r.config.indices->produced.load()) return nullptr;
    const Rqe* rqe = &r.config.slots[r.next & (r.config.slot_count - 1)];
    r.next += rqe->slots;
    r.config.indices->consumed.store(r.next);
    return rqe;
  }

  bool produce(uint32_t jfc, const Cqe& cqe) {
    Jfc& j = jfcs.at(jfc);
    if (j.produced - j.config.indices->consumed.load() >= j.config.depth) return false;
    j.config.slots[j.produced++ & (j.config.slot_count - 1)] = cqe;
    j.config.indices->produced.store(j.produced);
    auto armed = static_cast<Armed>(j.config.indices->armed.load());
    if (armed != Armed::kNo && matches(cqe, armed)) {
      j.config.indices->armed.store(static_cast<uint32_t>(Armed::kNo));
      raise(Event{EventKind::kCompletion, j.config.cookie});
    }
    return true;
  }

  void raise(const NicEvent& event) { sink_(event); }

  Cqe send_cqe(uint32_t id, CrStatus status) const {
    const Queue& q = queues.at(id);
    Cqe cqe{};
    cqe.status = status;
    cqe.opcode = CrOpcode::kNone;
    cqe.flags = q.config.kind == ObjectKind::kJetty ? kCqeJetty : 0;
    cqe.local_id = id;
    cqe.user_data = q.config.user_data;
    return cqe;
  }

  // ---- Backend ----
  const char* name() const override { return "fake"; }
  std::vector<Eid> eids() const override { return {eid(1), eid(2)}; }
  uint32_t uasid() const override { return kUasid; }
  uint32_t port_mtu_bytes() const override { return kMtu; }
  void set_event_sink(NicEventSink sink) override { sink_ = std::move(sink); }
  std::shared_ptr<std::byte> memory(size_t bytes) override { return urma::private_memory(bytes); }

  std::shared_ptr<std::byte> shareable_memory(size_t bytes, bool) override { return memory(bytes); }
  Status share_holders(const void*, std::vector<ipc::ShareHolder>*) override { return Status::kInvalid; }
  Status open_share(const InstanceId&, const ipc::ShareRequest&, ipc::OpenedShare*, std::string* why) override {
    *why = "a fake NIC";
    return Status::kInvalid;
  }

  Status create_jfc(const JfcConfig& config, uint32_t* jfc) override {
    if (Status status = take_status(); status != Status::kOk) return status;
    *jfc = ++last_handle_;
    jfcs[*jfc].config = config;
    return Status::kOk;
  }
  Status destroy_jfc(uint32_t jfc) override { return erase(jfcs, jfc); }
  Status moderate_jfc(uint32_t jfc, const Moderation& wanted) override {
    jfcs.at(jfc).moderation = wanted;
    return take_status();
  }
  Status create_jfr(const JfrConfig& config, uint32_t* id) override {
    if (Status status = take_status(); status != Status::kOk) return status;
    if (Status status = take_id(config.wanted_id, id); status != Status::kOk) return status;
    receives[*id].config = config;
    return Status::kOk;
  }
  Status destroy_jfr(uint32_t id) override { return erase(receives, id); }
  Status create_jetty(JettyConfig config, uint32_t* id) override {
    if (Status status = take_status(); status != Status::kOk) return status;
    if (Status status = take_id(config.wanted_id, id); status != Status::kOk) return status;
    queues[*id].config = config;
    return Status::kOk;
  }
  Status destroy_jetty(uint32_t id) override {
    if (on_destroy_jetty) on_destroy_jetty();
    return erase(queues, id);
  }
  Status create_group(const GroupConfig& config, uint32_t* id) override {
    if (Status status = take_status(); status != Status::kOk) return status;
    if (Status status = take_id(config.wanted_id, id); status != Status::kOk) return status;
    groups[*id] = config;
    return Status::kOk;
  }
  Status destroy_group(uint32_t id) override {
    for (const auto& [jetty, queue] : queues) {
      if (queue.config.group == id) return Status::kBusy;
    }
    return erase(groups, id);
  }
  Status set_state(uint32_t id, QueueState state) override {
    if (auto it = receives.find(id); it != receives.end()) {
      it->second.state = state;
      return Status::kOk;
    }
    Queue& q = queues.at(id);
    if (q.state == QueueState::kError && !elements(id).empty()) return Status::kBusy;
    q.state = state;
    q.flush_done_produced = state == QueueState::kError;
    if (state == QueueState::kError) produce(q.config.sq.jfc, send_cqe(id, CrStatus::kWrFlushDone));
    return Status::kOk;
  }
  QueueState state(uint32_t id) override {
    auto it = receives.find(id);
    return it != receives.end() ? it->second.state : queues.at(id).state;
  }
  Status set_receive_threshold(uint32_t jfr, uint32_t count) override {
    receives.at(jfr).threshold = count;
    return Status::kOk;
  }
  Status set_queue_token(uint32_t id, uint32_t value, uint32_t former) override {
    if (receives.count(id) == 0 && groups.count(id) == 0) return Status::kInvalid;
    tokens[id] = {value, former};
    return take_status();
  }
  Status set_segment_token(uint32_t handle, uint32_t value, uint32_t former) override {
    if (segments.count(handle) == 0) return Status::kInvalid;
    tokens[handle] = {value, former};
    return take_status();
  }
  Status set_segment_exclusive(uint32_t handle, bool is_exclusive) override {
    if (segments.count(handle) == 0) return Status::kInvalid;
    exclusive[handle] = is_exclusive;
    return take_status();
  }
  uint32_t take_unhandled(uint32_t id, Cqe* out, uint32_t room) override {
    Queue& q = queues.at(id);
    if (!q.flush_done_produced) return 0;
    QueueIndices& indices = *q.config.sq.indices;
    uint32_t count = 0;
    while (q.next != indices.produced.load() && count < room) {
      const Wqe& wqe = q.config.sq.slots[q.next & (q.config.sq.slot_count - 1)];
      q.next += wqe.slots;
      if (wqe.op == WrOp::kSkip) continue;
      out[count] = send_cqe(id, CrStatus::kWrUnhandled);
      out[count++].user_ctx = wqe.user_ctx;
      indices.retired.fetch_add(1);
      indices.consumed.store(q.next);
    }
    return count;
  }
  Status alloc_token_id(uint32_t* token_id) override {
    if (Status status = take_status(); status != Status::kOk) return status;
    *token_id = ++last_token_;
    token_ids[*token_id] = true;
    return Status::kOk;
  }
  Status free_token_id(uint32_t token_id) override { return erase(token_ids, token_id); }
  Status register_segment(const SegmentConfig& config, RegisteredSegment* out) override {
    if (Status status = take_status(); status != Status::kOk) return status;
    *out = {++last_handle_, config.token_id};
    segments[out->handle] = config;
    return Status::kOk;
  }
  Status unregister_segment(uint32_t handle) override { return erase(segments, handle); }
  Status find_instance(const Eid&, const Eid& at, uint32_t id, bool token_id, uint32_t* uasid,
                       std::string* why) override {
    std::lock_guard guard(mutex_);
    ++looks;
    if (busy_looks != 0) {
      --busy_looks;
      *why = "no answer";
      return Status::kBusy;
    }
    auto found = owners.find({at.bytes, id, token_id});
    if (found == owners.end()) {
      *why = "nobody";
      return Status::kInvalid;
    }
    *uasid = found->second;
    return *uasid != 0 ? Status::kOk : Status::kBusy;
  }
  Status add_target(const Eid&, TargetConfig config, uint32_t* target, std::string* why) override {
    if (config.instance.eid == eid(99)) {
      *why = "no route";
      return Status::kInvalid;
    }
    if (on_add_target) on_add_target();
    std::lock_guard guard(mutex_);
    *target = ++last_handle_;
    targets[*target] = config;
    return Status::kOk;
  }
  Status remove_target(uint32_t target) override {
    std::lock_guard guard(mutex_);
    return erase(targets, target);
  }
  size_t target_count() {
    std::lock_guard guard(mutex_);
    return targets.size();
  }
  Status bind(uint32_t jetty, uint32_t target) override {
    if (bind_status == Status::kOk) queues.at(jetty).bound = target;
    return bind_status;
  }
  Status unbind(uint32_t jetty) override {
    queues.at(jetty).bound = 0;
    return Status::kOk;
  }

  void posted(uint32_t jetty) override {
    std::lock_guard guard(mutex_);
    doorbells.push_back(jetty);
  }
  void drive() override {
    drives.fetch_add(1);
    if (on_drive) on_drive();
  }
  void begin_wait() override { waiters.fetch_add(1); }
  void end_wait() override { waiters.fetch_sub(1); }
  void completions_read(uint32_t) override { reads_told.fetch_add(1); }
  void armed(uint32_t jfc) override {
    Jfc& j = jfcs.at(jfc);
    QueueIndices& indices = *j.config.indices;
    auto armed = static_cast<Armed>(indices.armed.load());
    for (uint32_t at = indices.consumed.load(); at != j.produced; ++at) {
      if (!matches(j.config.slots[at & (j.config.slot_count - 1)], armed)) continue;
      indices.armed.store(static_cast<uint32_t>(Armed::kNo));
      raise(Event{EventKind::kCompletion, j.config.cookie});
      return;
    }
  }

  Status inject(const fault::NicPlan& plan, std::string* why) override {
    if (inject_status != Status::kOk) {
      *why = "refused by the test";
      return inject_status;
    }
    nic_plan = plan;
    return Status::kOk;
  }
  fault::NicCounts injected() override { return nic_counts; }
  Status impair(const impair::Script* send, const impair::Script* receive, std::string* why) override {
    if (impair_status != Status::kOk) {
      *why = "refused by the test";
      return impair_status;
    }
    if (send != nullptr) sends_with = *send;
    if (receive != nullptr) receives_with = *receive;
    return Status::kOk;
  }

  Status publish(uint32_t, const std::string&, std::string* why) override {
    *why = "no names here";
    return Status::kInvalid;
  }
  Status unpublish(uint32_t) override { return Status::kInvalid; }
  Status open_lane(const InstanceId&, ipc::OpenedLane*, std::string* why) override {
    *why = "not on this host";
    return Status::kInvalid;
  }
  Counters counters() override { return {}; }
  std::vector<ChannelInfo> channels() override { return channel_list; }

 private:
  static bool matches(const Cqe& cqe, Armed armed) {
    return armed == Armed::kAny || (cqe.flags & kCqeSolicited) != 0 || cqe.status != CrStatus::kSuccess;
  }
  Status take_status() {
    Status status = next_status;
    next_status = Status::kOk;
    return status;
  }
  Status take_id(uint32_t wanted, uint32_t* id) {
    if (wanted != 0 && (queues.count(wanted) != 0 || receives.count(wanted) != 0)) return Status::kExists;
    *id = wanted != 0 ? wanted : ++last_id_;
    return Status::kOk;
  }
  template <class Map>
  static Status erase(Map& map, uint32_t key) {
    return map.erase(key) != 0 ? Status::kOk : Status::kInvalid;
  }

  NicEventSink sink_;
  std::mutex mutex_;
  uint32_t last_handle_ = 100;
  uint32_t last_id_ = 1024;
  uint32_t last_token_ = 0;
};

}  // namespace ub::test
