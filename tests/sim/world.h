// SPDX-License-Identifier: Apache-2.0
//
// The simulated world: one virtual clock, one queue of events, a few nodes, a network and an oracle. Time
// jumps from event to event; events of one instant happen in the order in which they were planned, so that a
// seed gives the same run every time. Any broken promise stops the run and leaves its sentence in
// model.failure().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "lib/base/prng.h"
#include "lib/base/time.h"
#include "tests/sim/last_events.h"
#include "tests/sim/model.h"
#include "tests/sim/network.h"
#include "tests/sim/node.h"
#include "tests/sim/options.h"
#include "tests/sim/reached.h"

namespace ub::sim {

class Apertures;
class Mappings;

class World {
 public:
  explicit World(const Options&, bool verbose = false);
  ~World();
  World(const World&) = delete;

  // ---- time ----
  Instant now() const { return now_; }
  using Action = std::function<void()>;
  void at(Instant when, Action);
  void after(Duration d, Action a) { at(now_ + d, std::move(a)); }
  // Each returns false when the run has failed; run_until also when the limit passed first.
  bool run_for(Duration);
  bool run_until(const std::function<bool()>& done, Duration limit);
  // Is every request resolved? Unsignaled ones at the end of a queue are, when the queue says so.
  bool all_resolved();
  // Until no request is outstanding and every node is idle.
  bool run_until_quiet(Duration limit);
  bool failed() const { return !model.failure().empty(); }

  // ---- for nodes and the network ----
  void plan_delivery(uint64_t when_ns, uint32_t slot);
  void plan_link(uint64_t when_ns, uint32_t path);
  void plan_copy(const Node&, uint64_t copy, uint64_t delay_ns);
  void plan_poll(const Node&, Jfc*);
  void plan_drive(const Node&, uint64_t delay_ns);
  void trace_frame(const char* what, uint32_t from, uint32_t to, std::span<const std::byte>);
  void trace(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void mix(uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9fb21c651e98df25;
    hash_ ^= hash_ >> 32;
  }
  uint64_t trace_hash() const { return hash_; }
  uint64_t events() const { return event_count_; }
  // Node and epoch of an instance; false: nobody ever had this identity.
  bool find_instance(const Eid&, uint32_t uasid, uint32_t* node, uint32_t* epoch) const;
  const InstanceId& instance_id(uint32_t node, uint32_t epoch) const;
  void note_instance(const InstanceId& id, uint32_t node, uint32_t epoch) { instances_.push_back({id, node, epoch}); }

  Node& node(uint32_t i) { return *nodes_[i]; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  Node& add_node(const wire::Endpoint&);

  // Everything that was ever created stays until the end, dead or alive: late events may name it.
  std::vector<std::unique_ptr<Region>> regions;
  std::vector<std::unique_ptr<Jfc>> jfcs;
  std::vector<std::unique_ptr<Jfr>> jfrs;
  std::vector<std::unique_ptr<Queue>> queues;
  uint32_t next_uid() { return ++last_uid_; }

  Options options;
  Prng rng;       // of applications and faults
  Prng host_rng;  // of hosts
  Model model;
  Network network;
  LastEvents last_events;
  std::unique_ptr<Apertures> apertures;  // null: no program loads or stores
  std::unique_ptr<Mappings> mappings;    // null: nobody maps memory of others
  std::unique_ptr<Reached> reached;  // null: nobody wants to know
  bool verbose = false;
  std::string record_to;  // each Core is recorded in a file whose name begins so; empty: none is
  bool strict = false;  // no fault is left that could explain a timeout
  bool eager = false;   // applications look and refill at once (after the faults)
  // RDMA-CM: what an instance told, and an application that is buried.
  std::function<void(Node&, const roce::ConnectionEvent&)> on_connection;
  std::function<void(Node&, const App&)> on_app_gone;
  // A Core has called its host: what runs at the same time may do something now, but not call the Core.
  std::function<void(const Node&)> meddler;
  void meddle(const Node& n) const {
    if (meddler) meddler(n);
  }

 private:
  enum class Kind : uint8_t { kDelivery, kCopy, kPoll, kDrive, kAction, kLink };
  struct Planned {
    uint64_t at, order;
    Kind kind;
    uint32_t node, epoch;
    uint64_t what;
    bool operator>(const Planned& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  struct Instance {
    InstanceId id;
    uint32_t node, epoch;
  };

  void plan(uint64_t at, Kind, uint32_t node, uint32_t epoch, uint64_t what);
  bool step(uint64_t limit_ns);  // one event or timer; false: none before the limit
  void happen(const Planned&);

  Instant now_;
  uint64_t order_ = 0;
  uint64_t event_count_ = 0;
  uint64_t hash_ = 0x5eed;
  uint64_t same_instant_ = 0;
  uint32_t last_uid_ = 0;
  std::priority_queue<Planned, std::vector<Planned>, std::greater<>> planned_;
  std::vector<Action> actions_;
  std::vector<Instance> instances_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace ub::sim
