// SPDX-License-Identifier: Apache-2.0
//
// Programs that load from and store to the memory of other nodes: by lanes of their NICs, which stall, fill and lose
// their ends, and by frames of TP bypass on a wire that carries them, which come late or find rings full. Regions are
// unregistered and get other tokens meanwhile; nodes crash and come back. ApertureModel judges.
//
// All random choices come from a source of their own, so that a seed's other programs and faults are the same with and
// without apertures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/prng.h"
#include "tests/sim/aperture_model.h"
#include "tests/sim/sim_lane.h"

namespace ub::sim {

class Node;
class World;

class Apertures {
 public:
  explicit Apertures(World&);
  ~Apertures();

  void start();
  void stop();  // no fault from now on, and no call but those of probe()
  bool at_rest() const { return model.outstanding() == 0; }
  // Each node stores to and loads from each other one, and nothing may fail.
  void probe();
  bool probes_done() const;
  void tear_down();

  // ---- for hosts and nodes ----
  SimLane* lane_of(const Node&, uint32_t link);  // null: the link is none
  void node_stopped(const Node&);

  ApertureModel model;

 private:
  // A handle of a program on one node, to the memory of another one.
  struct Handle {
    uint32_t uid;
    uint32_t user, server;
    uint32_t left;                // calls
    bool strict = false;          // of a probe: nothing may fail
    SimLane* lane = nullptr;
    Region* region = nullptr;     // what it was opened for
  };

  Region* region_of(Node&);
  void plan(uint64_t mean_ns, std::function<void()>);
  uint64_t delay_or_stall(uint64_t mean_ns);
  void plan_step(Handle&);
  void step(Handle&);
  bool is_open(const Handle&) const;
  bool try_open(Handle&);
  void close(Handle&);
  void call_some(Handle&);
  std::shared_ptr<Access> draw(Handle&);
  void draw_place(const Region&, bool wrong, Access*);
  void draw_store(Access*);
  bool call(Handle&, const std::shared_ptr<Access>&);
  void plan_serving(SimLane&);
  void plan_look(SimLane&);
  void add_handle(uint32_t user, uint32_t server, uint32_t calls);
  void plan_fault();
  void fault();

  World& world_;
  Prng rng_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<std::unique_ptr<Handle>> handles_;
  std::vector<std::unique_ptr<SimLane>> lanes_;  // all that there ever were: late events name them
  bool stopped_ = false;
};

}  // namespace ub::sim
