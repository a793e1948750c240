// SPDX-License-Identifier: Apache-2.0
//
// One instance of the simulated world: a Core, its host and its applications. The calls here are the driver
// layer that liburma and a daemon are in real life: create objects, post, poll, die. The node tells the
// oracle about everything that an application does or sees.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "lib/base/driver_clock.h"
#include "lib/ipc/placed_memory.h"
#include "lib/record/recorded_core.h"
#include "lib/transport/core.h"
#include "tests/sim/model.h"
#include "tests/sim/objects.h"
#include "tests/sim/sim_host.h"

// Compiled once, in core_instance.cc.
extern template class ub::Core<ub::sim::SimHost>;
extern template class ub::roce::Engine<ub::sim::SimHost>;

namespace ub::sim {

class World;
struct Frame;
using SimCore = Core<SimHost>;

struct App {
  uint32_t uid = 0;
  Owner owner = 0;
  bool alive = true;
  Region* local = nullptr;  // buffers of requests
  Region* inbox = nullptr;  // buffers of receives: of their own, or requests could starve them
  std::vector<Region*> targets;
  std::vector<Jfc*> jfcs;
  std::vector<Jfr*> jfrs;
  std::vector<Queue*> queues;
};

struct QueueSpec {
  ObjectKind kind = ObjectKind::kJetty;
  Mode mode = Mode::kRm;
  uint32_t depth = 16, slots = 256;
  uint8_t rnr_retry = 7, err_timeout = 17;
  bool own_recv_jfc = false;
  uint32_t wanted_id = 0;
  bool fetched = false;  // the application writes a ring of its own, from which the Core fetches
  bool suspends = false;
  bool completes_early = false;
  bool rot = false;  // RC: its target keeps its order, and not one lane
  uint8_t priority = 0;
};

struct QpSpec {
  roce::QpType type = roce::QpType::kRc;
  uint32_t depth = 16, slots = 256;
  bool srq = false, own_recv_jfc = false, fetched = false;
  uint8_t rnr_retry = 7;
  uint32_t qkey = 0;  // UD
};

struct JfrSpec {
  Mode mode = Mode::kRm;
  uint32_t depth = 16;
  uint32_t buffer_bytes = 4096;
  Token token;
  uint8_t min_rnr_timer = 6;
};

struct RegionSpec {
  uint64_t length = 64 * 1024;
  uint8_t access = kAccessRead | kAccessWrite | kAccessAtomic;
  Token token;
  bool odd_address = false;
  uint32_t token_id = 0;
};

class Node {
 public:
  Node(World& world, uint32_t index, const wire::Endpoint& at);
  ~Node();

  void boot();         // first start, or after crash()
  void crash();        // stops without a word
  void shut_down();    // says goodbye, then stops
  void say_goodbye();  // closes all channels
  bool up() const { return core_ != nullptr; }

  // ---- objects: aborts the run if the Core refuses ----
  App* add_app(uint64_t request_bytes, uint64_t receive_bytes);
  Jfc* add_jfc(App&, uint32_t depth);
  Jfr* add_jfr(App&, Jfc*, const JfrSpec&);
  Queue* add_queue(App&, Jfc*, Jfr*, const QueueSpec&);
  Region* add_target(App&, const RegionSpec&);
  Region* adopt(std::unique_ptr<Region>, Owner, uint32_t token_id);  // registers it
  void enroll(Region&, Owner, uint32_t token_id);  // the same, but the region stays the caller's
  uint32_t import_instance(const Node&);           // a target that stands for all of it
  uint32_t add_lane();                             // a link that is a lane of a program
  void drop_lane(uint32_t link);
  void kill_app(App&);  // its memory goes now, its objects when the NIC notices
  void bury_app(App&);  // the NIC notices
  void unregister(Region*);
  // To ERROR; FLUSH_DONE and what was never started come by polling. Then it is destroyed, or it comes back by way of
  // RESET.
  void flush(Queue*, bool comes_back = false);
  void flush(Jfr*, bool for_a_time);  // to ERROR: what is posted comes back by polling
  void reset(Queue*);                 // to RESET: what was posted, and what is posted there, ends flushed
  void reset(Jfr*);
  void leave_reset(Queue*);  // READY again, as soon as all that has ended was told
  void revive(Jfr*);         // the same for a JFR in ERROR or RESET
  // Another token takes the place of the one that a region or a JFR asks for; both are good until the former one is
  // withdrawn.
  void replace_token(Region*, uint32_t by);
  void replace_token(Jfr*, uint32_t by);
  void withdraw_token(Region*);
  void withdraw_token(Jfr*);
  void destroy(Queue*);
  void destroy(Jfr*);
  // Handle of a remote receiver; each application imports once per mode and token.
  uint32_t import(Owner owner, const Receiver& to, Mode mode) { return import(owner, to, mode, to.jfr->token.value); }
  uint32_t import(Owner, const Receiver&, Mode, uint32_t token);
  uint32_t import_again(Owner, const Receiver&, Mode, uint32_t token);
  void bind(Queue*, Queue* peer);
  // RoCE. Two queue pairs become a connection; `connect` is for one end.
  bool has_roce() const { return at_.port == wire::kUbUdpPort; }  // whoever has the address's RoCE port
  Queue* add_qp(App&, Jfc*, Jfr*, const QpSpec&);
  void connect(Queue*, uint32_t psn, uint32_t peer_psn, uint8_t rnr_timer);
  void get_ready(Queue*);  // RC: to INIT, for who connects it by RDMA-CM; UD: to RTS
  uint32_t address_handle(Owner, uint32_t node);
  uint32_t connections() const;  // of RDMA-CM, that the engine knows
  uint32_t listeners() const;

  // ---- work ----
  Instant turn();  // the time for what is done with the Core now
  void ring(Queue* q);  // doorbell
  void refill(Jfr*, bool all);
  bool post_receive(Jfr*, uint32_t bytes, uint32_t sges);
  void poll(Jfc*, uint32_t budget);
  void deliver(const Frame&);
  void on_lane_frame(uint32_t link, std::span<const std::byte>);
  void copy_done(uint64_t copy);
  void drive();  // timers, packets, events, until nothing more is to do now
  void drive_as_planned();
  // Nobody drives for so long, and nothing in it runs: what comes lies there. Its Core's clock is as in real life.
  void hold(Duration);
  Instant held_until() const { return held_until_; }

  // ---- looking in ----
  uint32_t index() const { return index_; }
  uint32_t epoch() const { return epoch_; }
  uint32_t link() const { return link_; }
  const InstanceId& id() const { return config_.self; }
  const wire::Endpoint& at() const { return at_; }
  const CoreConfig& config() const { return config_; }
  size_t copies_pending() const { return host_->pending(); }
  size_t frames_open() const { return host_->open_frames(); }
  SimCore& core() { return *core_; }
  uint64_t counter(Counter c) const { return core_->counters()[c]; }
  Instant deadline() const {
    return up() ? later(clock_.real_time_of(core_->next_deadline()), held_until_) : Instant::never();
  }
  const std::vector<std::unique_ptr<App>>& apps() const { return apps_; }
  bool idle(std::string* why) const;  // no channel owes or awaits anything
  const Region* find_region(const std::byte* p) const;
  bool in_send_ring(const std::byte* p, size_t bytes) const;
  bool app_alive(uint32_t uid) const;
  Queue* find_queue(uint32_t id) const;

  CoreConfig tweak;                                       // directed tests change it before boot()
  std::vector<std::span<const std::byte>> hostile_rings;  // elements that the Core fetched from hostile applications

 private:
  // Calls fn() with the Core, or with what records its calls.
  template <class Fn>
  auto through(Fn fn) {
    if (recorder_ == nullptr) return fn(*core_);
    record::RecordedCore<SimCore> recorded(*core_, *recorder_);
    return fn(recorded);
  }
  void begin_recording();
  void configure();
  Region* add_local(App&, uint64_t bytes);
  bool take_events();
  void on_event(const Event&);
  void take_completion(Jfc*, const Cqe&);
  void change_state(uint32_t id, QueueState);
  void stop_taking(Queue*);  // messages
  void stop_taking(Jfr*);
  void poll_before_ready(Jfc*);
  void leave_reset_later(Queue*, uint64_t within_ns);
  void finish_flush(Queue*);
  void take_back(Queue*);         // what was never started
  void resume(Queue*);            // after the marker of a queue that was suspended
  void watch_broken(Queue*);      // until everything has come back; then it goes
  void watch_send_error(Queue*);  // of UD: until everything has come back; then it goes on
  void take_datagram(const Receiver&, const Cqe&);
  void drop_targets(const App&);
  void drop_address_handles(Owner);
  void plan_polls();
  void look();    // for World::reached
  void attend();  // something has come: drives now, or when more may have come
  void plan_drive(uint64_t within_ns);
  void stop();
  void add_paths();
  std::vector<Region*> regions_of(const App&) const;

  World& world_;
  uint32_t index_;
  wire::Endpoint at_;
  uint32_t epoch_ = 0;
  uint32_t link_ = 0;
  CoreConfig config_;
  ipc::PlacedMemory arena_;
  std::unique_ptr<record::Recorder> recorder_;
  std::unique_ptr<SimHost> host_;
  std::unique_ptr<SimCore> core_;
  std::vector<std::unique_ptr<App>> apps_;
  std::map<const std::byte*, Region*> regions_;  // looked up by address only
  std::map<std::tuple<Owner, uint32_t, Mode, uint32_t>, uint32_t> targets_;  // by receiver and token
  std::map<std::pair<Owner, uint32_t>, uint32_t> address_handles_;  // of an application, by the node they name
  DriverClock clock_;
  Instant held_since_ = Instant::never(), held_until_;  // never: not since the last turn
  bool driving_ = false;
  bool drive_planned_ = false;
  uint32_t unattended_ = 0;  // frames and copies that came since it was driven
};

}  // namespace ub::sim
