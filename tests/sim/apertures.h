// SPDX-License-Identifier: Apache-2.0
//
// Programs that load from and store to the memory of other nodes: by lanes of their NICs, which stall, fill and lose
// their ends, and by frames of TP bypass on a wire that carries them, which come late or find rings full. Regions are
// unregistered and get other tokens meanwhile; nodes crash and come back. ApertureModel judges.
//
// All random choices come from a source of their own, so that a seed's other programs and faults are the same with and
// without apertures.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/prng.h"
#include "lib/base/time.h"
#include "tests/sim/aperture_model.h"
#include "tests/sim/network.h"
#include "tests/sim/reached.h"
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
  void frame_arrives(const Node&, std::span<const std::byte> frame);
  // Frames of loads and stores from one node to another are late, and arrive then at the earliest.
  Instant late_until(uint32_t from, uint32_t to) const { return late_[from][to]; }
  bool port_is_shut(const Node&) const;  // it has no room
  void node_stopped(const Node&);

  ApertureModel model;

 private:
  // A handle of a program on one node, to the memory of another one.
  struct Handle {
    uint32_t uid;  // another one each time that it is opened
    uint32_t user, server;
    uint32_t left;             // calls
    bool strict = false;       // of a probe: nothing may fail
    Region* region = nullptr;  // what its program was told of
    SimLane* lane = nullptr;
    bool frames = false;  // by frames; else by a lane
    uint32_t opened = 0;  // of the requester; 0: none
    uint32_t target = 0, server_epoch = 0;
    uint32_t shown = 0;  // the token that it was opened with
    bool taking_planned = false;
    uint32_t vain_looks = 0;                                 // since an answer came
    uint32_t vain_steps = 0;                                 // since there was room for a call
    std::map<uint32_t, std::shared_ptr<Access>> asked = {};  // by ticket
  };

  Region* region_of(Node&);
  void plan(uint64_t mean_ns, std::function<void()>);
  uint64_t delay_or_stall(uint64_t mean_ns);
  void plan_step(Handle&);
  void step(Handle&);
  bool is_open(const Handle&) const;
  bool waits(const Handle&) const;
  bool timed_out(const Handle&) const;
  bool try_open(Handle&);
  void close(Handle&);
  bool call_some(Handle&);  // false: there was no room
  std::shared_ptr<Access> draw(Handle&);
  void draw_place(const Region&, bool wrong, Access*);
  void draw_store(Access*);
  bool call(Handle&, const std::shared_ptr<Access>&);
  void plan_serving(SimLane&);
  void plan_look(SimLane&);
  void add_handle(uint32_t user, uint32_t server, uint32_t calls);
  // By frames.
  bool try_open_frames(Handle&, Node& user, Node& server);
  bool call_by_frames(Handle&, const std::shared_ptr<Access>&);
  void take_outcomes(Handle&);
  void give_up(Access&);
  void reach(ReachedState, bool yes = true);
  void give_up_frames(Handle&);
  void close_frames(Handle&);
  void plan_taking(Handle&);
  void plan_lateness(const Handle&);
  void shut_port(const Node&);
  void plan_fault();
  void fault();

  World& world_;
  Prng rng_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<std::unique_ptr<Handle>> handles_;
  uint32_t opened_ = 0;                             // handles, so far
  std::vector<std::unique_ptr<SimLane>> lanes_;     // all that there ever were: late events name them
  std::vector<std::shared_ptr<Access>> by_frames_;  // all accesses that there ever were
  std::array<std::array<Instant, kMaxNodes>, kMaxNodes> late_{};
  std::array<Instant, kMaxNodes> shut_until_{};  // ports, by node
  uint32_t shuts_ = 0;
  bool stopped_ = false;
};

}  // namespace ub::sim
