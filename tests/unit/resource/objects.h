// SPDX-License-Identifier: Apache-2.0
// objects.h - what applications own, made by a test: each object with rings of its own, in the state of a Core without
// the Core.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "lib/transport/resource/groups.h"
#include "lib/transport/resource/objects.h"
#include "lib/transport/resource/receives.h"
#include "lib/transport/resource/segments.h"
#include "lib/transport/resource/targets.h"
#include "lib/transport/ta/completion.h"
#include "tests/unit/transport/test_state.h"

namespace ub {

constexpr uint32_t kRingSlots = 8;

struct Objects : TestState {
  struct ReceiveRing {
    std::vector<Rqe> slots = std::vector<Rqe>(kRingSlots);
    QueueIndices indices{};
  };
  struct SendRingMemory {
    std::vector<Wqe> slots = std::vector<Wqe>(kRingSlots);
    QueueIndices indices{};
    std::vector<WrState> work = std::vector<WrState>(kRingSlots);
  };

  explicit Objects(const CoreConfig& config = small_tables()) : TestState(config) {
    s->eids[s->eid_count++] = s->config.self.eid;
    s->links[s->links.alloc()] = LinkRecord{.up = true, .config = {.mtu = 1024, .lossless = true}};
    EXPECT_EQ(create_jfc(*s, jfc_config(), &jfc), Status::kOk);
  }

  /// Registers memory of the application, by its own addresses.
  RegisteredSegment register_memory(std::vector<std::byte>& memory) {
    SegmentConfig c;
    c.memory = memory.data();
    c.address = c.local_address = reinterpret_cast<uint64_t>(memory.data());
    c.length = memory.size();
    c.owner = 5;
    RegisteredSegment segment;
    EXPECT_EQ(register_segment(*s, c, &segment), Status::kOk);
    return segment;
  }

  JfcConfig jfc_config() {
    JfcConfig c;
    c.slots = cqes.data();
    c.slot_count = c.depth = static_cast<uint32_t>(cqes.size());
    c.indices = &cq;
    c.cookie = 77;
    c.owner = 5;
    return c;
  }
  JfrConfig jfr_config(ReceiveRing* ring = nullptr) {
    if (ring == nullptr) ring = &receive_rings.emplace_back();
    JfrConfig c;
    c.slots = ring->slots.data();
    c.slot_count = static_cast<uint32_t>(ring->slots.size());
    c.indices = &ring->indices;
    c.jfc = jfc;
    c.user_data = 99;
    c.owner = 5;
    return c;
  }
  JettyConfig jetty_config(uint32_t jfr_id = 0) {
    SendRingMemory& ring = send_rings.emplace_back();
    JettyConfig c;
    c.kind = jfr_id == 0 ? ObjectKind::kJfs : ObjectKind::kJetty;
    c.jfr = jfr_id;
    c.sq.slots = ring.slots.data();
    c.sq.slot_count = kRingSlots;
    c.sq.depth = kRingSlots;
    c.sq.indices = &ring.indices;
    c.sq.work = reinterpret_cast<std::byte*>(ring.work.data());
    c.sq.jfc = jfc;
    c.user_data = 88;
    c.owner = 5;
    return c;
  }
  TargetConfig target_config(uint32_t uasid = 2) {
    TargetConfig t;
    t.instance.eid.bytes[15] = 2;
    t.instance.uasid = uasid;
    t.id = 4711;
    t.path.link = 1;
    t.owner = 5;
    return t;
  }
  uint32_t make_jfr() { return make(jfr_config()); }
  uint32_t make(const JfrConfig& c) {
    uint32_t id = 0;
    EXPECT_EQ(create_jfr(*s, c, &id), Status::kOk);
    return id;
  }
  uint32_t make(const JettyConfig& c) {
    uint32_t id = 0;
    EXPECT_EQ(create_jetty(*s, c, &id), Status::kOk);
    return id;
  }
  uint32_t make_jetty(uint32_t jfr_id = 0) { return make(jetty_config(jfr_id)); }
  uint32_t add(const TargetConfig& c) {
    uint32_t target = 0;
    EXPECT_EQ(add_target(*s, c, &target), Status::kOk);
    return target;
  }

  Jfr& jfr(uint32_t id) { return s->jfrs[s->ids[id].record]; }
  Jetty& jetty(uint32_t id) { return s->jettys[s->ids[id].record]; }
  SendQueue& queue(uint32_t id) { return s->queues[jetty(id).queue]; }
  Jfc& the_jfc() { return s->jfcs[jfc]; }
  /// Completions that nobody has looked at.
  std::vector<Cqe> completions() {
    std::vector<Cqe> all;
    for (uint32_t at = cq.consumed.load(); at != cq.produced.load(); ++at) all.push_back(cqes[at % cqes.size()]);
    cq.consumed.store(cq.produced.load());
    return all;
  }
  std::vector<Event> events() {
    std::vector<Event> all(16);
    all.resize(drain_events(*s, all.data(), all.size()));
    return all;
  }

  std::vector<Cqe> cqes = std::vector<Cqe>(256);
  QueueIndices cq{};
  uint32_t jfc = 0;
  std::deque<ReceiveRing> receive_rings;
  std::deque<SendRingMemory> send_rings;
};

}  // namespace ub
