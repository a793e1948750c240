// SPDX-License-Identifier: Apache-2.0
// null_backend.h - the back end of a library that is not up: refuses everything and does nothing.
#pragma once

#include "lib/urma/backends/backend.h"

namespace ub::urma {

class NullBackend final : public Backend {
 public:
  void leave() override {}
  const char* name() const override { return "none"; }
  std::vector<Eid> eids() const override { return {}; }
  uint32_t uasid() const override { return 0; }
  uint32_t port_mtu_bytes() const override { return 0; }
  void set_event_sink(NicEventSink) override {}
  std::shared_ptr<std::byte> memory(size_t) override { return nullptr; }

  std::shared_ptr<std::byte> shareable_memory(size_t, bool) override { return nullptr; }
  Status share_holders(const void*, std::vector<ipc::ShareHolder>*) override { return Status::kInvalid; }
  Status open_share(const InstanceId&, const ipc::ShareRequest&, ipc::OpenedShare*, std::string* why) override {
    *why = "the library has ended";
    return Status::kInvalid;
  }

  Status create_jfc(const JfcConfig&, uint32_t*) override { return Status::kInvalid; }
  Status destroy_jfc(uint32_t) override { return Status::kInvalid; }
  Status moderate_jfc(uint32_t, const Moderation&) override { return Status::kInvalid; }
  Status create_jfr(const JfrConfig&, uint32_t*) override { return Status::kInvalid; }
  Status destroy_jfr(uint32_t) override { return Status::kInvalid; }
  Status create_jetty(JettyConfig, uint32_t*) override { return Status::kInvalid; }
  Status destroy_jetty(uint32_t) override { return Status::kInvalid; }
  Status create_group(const GroupConfig&, uint32_t*) override { return Status::kInvalid; }
  Status destroy_group(uint32_t) override { return Status::kInvalid; }
  Status set_state(uint32_t, QueueState) override { return Status::kInvalid; }
  QueueState state(uint32_t) override { return QueueState::kError; }
  Status set_receive_threshold(uint32_t, uint32_t) override { return Status::kInvalid; }
  Status set_queue_token(uint32_t, uint32_t, uint32_t) override { return Status::kInvalid; }
  Status set_segment_token(uint32_t, uint32_t, uint32_t) override { return Status::kInvalid; }
  Status set_segment_exclusive(uint32_t, bool) override { return Status::kInvalid; }
  uint32_t take_unhandled(uint32_t, Cqe*, uint32_t) override { return 0; }
  Status alloc_token_id(uint32_t*) override { return Status::kInvalid; }
  Status free_token_id(uint32_t) override { return Status::kInvalid; }
  Status register_segment(const SegmentConfig&, RegisteredSegment*) override { return Status::kInvalid; }
  Status unregister_segment(uint32_t) override { return Status::kInvalid; }
  Status publish(uint32_t, const std::string&, std::string* why) override {
    *why = "the library has ended";
    return Status::kInvalid;
  }
  Status unpublish(uint32_t) override { return Status::kInvalid; }
  Status find_instance(const Eid&, const Eid&, uint32_t, bool, uint32_t*, std::string*) override {
    return Status::kInvalid;
  }
  Status add_target(const Eid&, TargetConfig, uint32_t*, std::string*) override { return Status::kInvalid; }
  Status remove_target(uint32_t) override { return Status::kInvalid; }
  Status bind(uint32_t, uint32_t) override { return Status::kInvalid; }
  Status unbind(uint32_t) override { return Status::kInvalid; }

  void posted(uint32_t) override {}
  void drive() override {}
  void begin_wait() override {}
  void end_wait() override {}
  void completions_read(uint32_t) override {}
  void armed(uint32_t) override {}

  Status inject(const fault::NicPlan&, std::string*) override { return Status::kInvalid; }
  fault::NicCounts injected() override { return {}; }
  Status impair(const impair::Script*, const impair::Script*, std::string*) override { return Status::kInvalid; }

  Status open_lane(const InstanceId&, ipc::OpenedLane*, std::string* why) override {
    *why = "the library has ended";
    return Status::kInvalid;
  }
  Counters counters() override { return {}; }
  std::vector<ChannelInfo> channels() override { return {}; }
};

}  // namespace ub::urma
