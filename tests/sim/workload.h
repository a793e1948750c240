// SPDX-License-Identifier: Apache-2.0
//
// Random applications: they build objects on every node, post random requests, poll at their own pace, die
// and come back, as the options of the seed say.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sim/connections.h"
#include "tests/sim/hostile.h"
#include "tests/sim/requests.h"
#include "tests/sim/world.h"

namespace ub::sim {

class Workload {
 public:
  explicit Workload(World& world);
  ~Workload() { world_.meddler = nullptr; }

  void build();  // nodes, applications, objects
  void start();  // begins to post and plans the faults
  bool posted_all() const { return left_ == 0; }
  void stop();  // posts nothing more, no fault happens from now on
  // After the faults every pair of instances must work again. The first requests may find out that their
  // channel died at the other end and fail with it; strict ones must succeed.
  void build_probes();
  void post_probes(bool strict);
  void use_probes_connected();  // by RDMA-CM, as build_probes() asked for
  void tear_down();             // everything can be destroyed, every channel closed
  Connections& connections() { return connections_; }

 private:
  struct Probe {
    Node* node;
    Queue* queue;
    Region* target;
    Queue* um;
  };

  void build_apps(Node&);
  void build_app(Node&);
  void build_hostile(Node&);
  void plan_act(Hostile*, uint32_t left);
  void pair_up(Node& a, Node& b);  // an RC pair
  void pair_qps(Node& a, Node& b);
  void connect_qps(Queue*, Queue*);
  uint32_t receives_of(uint32_t buffer_bytes) const;
  uint64_t receive_bytes_of_services() const;
  App* app_on(Node&);
  Queue* add_qp(Node&, App&, roce::QpType, uint32_t receives, uint32_t buffer_bytes);
  Queue* add_rc(Node&, App&);
  Queue* add_ud(Node&, App&);
  Queue* add_connectable(Node&, App&);
  void tell_of_dead_peers();
  void plan_connects();
  void ask_somebody();
  void use_connected(Queue*);
  Queue* add_probe_qp(const Probe&, roce::QpType);
  void build_probe_qps();
  void ask_probes();
  void post_probe_qps();
  void plan_step(Queue*);
  void step(Queue*);
  bool post_one(Queue*);
  RequestSpec draw_request(Queue*);
  void draw_ordered(const Queue*, RequestSpec*);
  bool choose_peer(Queue*, RequestSpec*);
  Region* choose_region(const Receiver&, bool must_have_atomics, uint32_t app);  // 0: of any
  uint32_t draw_token();
  uint32_t draw_size(uint32_t cap);
  WrOp draw_op();
  void plan_faults();
  using Fault = void (Workload::*)();
  void plan_fault(Fault);
  void plan_fault_midway(Fault);  // when so many requests are posted
  void begin_faults_midway();
  void fault_partition();
  void fault_path();
  void fault_app();
  void fault_crash();
  void fault_close();
  void fault_flush();
  void fault_jfr_flush();
  void fault_reset();
  void fault_rotate();
  template <class Holder>
  void rotate(Node&, Holder*);
  void fault_unregister();
  void replace(Node&, bool goodbye);
  App* random_app();

  World& world_;
  Prng& rng_;
  Prng meddle_rng_;
  uint32_t left_ = 0;
  std::vector<std::pair<uint32_t, Fault>> midway_;  // faults by the value of left_ at which they begin, in that order
  bool stopped_ = false;
  std::vector<Probe> probes_;
  std::vector<Queue*> probe_qps_;
  std::vector<std::pair<Queue*, Queue*>> ud_probes_;  // from, to
  Connections connections_;
  std::vector<std::unique_ptr<Hostile>> hostile_;
};

}  // namespace ub::sim
