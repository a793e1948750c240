// SPDX-License-Identifier: Apache-2.0
//
// A whole NIC inside a process: Core, ports, ownership, and the helper thread that takes over when no application
// thread drives. In the daemon no application thread ever does: the helper is then the worker (nic_worker.cc).
// Identity: the EIDs of the configuration, and a uasid of a random generation and the UDP port; ids from blocks that no
// other instance of the host has (docs/identity.md).
//
// nic_start.cc, nic_drive.cc, nic_frames.cc, nic_paths.cc, nic_ids.cc, nic_names.cc, nic_faults.cc, nic_impair.cc,
// nic_statistics.cc, nic_last_notes.cc, nic_look.cc, nic_capture.cc and nic_watch.cc have a part of it each. Who drives
// besides the application stands in nic_helper.cc, nic_worker.cc and nic_stand_in.cc, how the NIC's own thread sleeps
// in nic_sleep.cc.
//
// The helper never spins for long. It blocks on the ports' descriptors until the next deadline; woken, it owns the
// Core, drives it until it is idle, and blocks again. While the application does all the work itself it stays away, and
// looks less and less often (nic_helper.cc). It blocks all signals.
#pragma once

#include <sched.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "dataplane/alarm.h"
#include "dataplane/capture.h"
#include "dataplane/config.h"
#include "dataplane/eid.h"
#include "dataplane/helper_policy.h"
#include "dataplane/id_claims.h"
#include "dataplane/latency_watcher.h"
#include "dataplane/look_door.h"
#include "dataplane/nic_clients.h"
#include "dataplane/nic_recording.h"
#include "dataplane/note_listeners.h"
#include "dataplane/noting_memory.h"
#include "dataplane/ownership.h"
#include "dataplane/operation_totals.h"
#include "dataplane/port_set.h"
#include "dataplane/published_name.h"
#include "dataplane/published_page.h"
#include "dataplane/regime_clock.h"
#include "dataplane/share_door.h"
#include "dataplane/sleep_set.h"
#include "dataplane/stats_page.h"
#include "dataplane/thread_number.h"
#include "dataplane/trace.h"
#include "dataplane/watched_core.h"
#include "dataplane/worker.h"
#include "lib/base/fault/plan.h"
#include "lib/base/idle_yield.h"
#include "lib/impair/spec.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/keep_errno.h"
#include "lib/ipc/lane_connect.h"
#include "lib/ipc/memfd.h"
#include "lib/ipc/not_cancelled.h"
#include "lib/ipc/life_sign.h"
#include "lib/ipc/share_connect.h"

namespace ub {

// Compiled once, in nic_drive.cc.
extern template class Core<PortSet>;
extern template class roce::Engine<PortSet>;

class Nic {
 public:
  using NicCore = Core<PortSet>;

  // Null and a sentence in `*error` if a port cannot be opened or memory cannot be had.
  // `notice` is told, by any thread, what a person should know: peers that turned us away, for example.
  using NoticeSink = std::function<void(const std::string& sentence)>;
  // `clients`: whom the NIC serves as a daemon; they outlive it.
  static std::unique_ptr<Nic> start(const LoadedConfig&, uint32_t wanted_uasid, NoticeSink notice, std::string* error,
                                    NicClients* clients = nullptr);
  ~Nic();
  // Stops the thread, says goodbye to peers and takes away what others see of this NIC; then the calling thread owns
  // the Core for ever, and calls of others that need it do not come back. For exits beside threads that are inside
  // calls: all that they touch without owning the Core stays, as long as nobody destroys the NIC. Once.
  void end();

  const std::vector<Eid>& eids() const { return eids_.eids(); }
  uint32_t uasid() const { return uasid_; }
  uint32_t mtu() const;
  bool is_own_eid(const Eid& eid) const { return eids_.is_local(eid); }
  void set_event_sink(NicEventSink sink);

  // Runs fn(core, now) as the owner, `now` by the Core's clock; events it caused are reported before this returns. A
  // daemon's worker runs it itself, so that it never waits for a thread that has no CPU. Like the calls for progress it
  // leaves errno alone.
  template <class Fn>
  auto control(Fn&& fn) {
    ipc::KeepErrno kept;
    const ipc::NotCancelled guard;
    std::optional<std::invoke_result_t<Fn, NicCore&, Instant>> result;
    auto run = [&] { result.emplace(fn(worker_->core(), worker_->turn())); };  // must not throw
    if (clients_ != nullptr && helper_.joinable()) {
      run_on_worker({[](void* what) { (*static_cast<decltype(run)*>(what))(); }, &run});
    } else {
      ownership_.own();
      run();
      after_control();
    }
    return std::move(*result);
  }

  // ---- progress, any thread; errno stays as it is ----
  void posted(uint32_t jetty);
  void drive();
  // An application thread blocks until an event: the helper drives meanwhile.
  void begin_wait();
  void end_wait() { waiters_.fetch_sub(1, std::memory_order_relaxed); }
  // Then this thread may be the one that drives while it waits. True: it is, and must call stand_in() before anything
  // else and before the NIC ends.
  bool may_stand_in();
  // Makes the thread that stands in leave, and waits for it: before the NIC may end. False: it does not come back, as
  // when its signal handler left the wait by longjmp, and nobody may destroy the NIC.
  bool end_stand_in();
  // Waits in place of the helper until `fd` is readable: frames wake the calling thread, which drives. 1: readable; 0:
  // `ms` (negative: no limit) are over; -1: a signal came (errno EINTR), or the NIC ends (EINTR, too), or `fd` cannot
  // be watched (epoll_ctl's errno). Another thread may stand in now.
  int stand_in(int fd, int ms);
  // The application is about to sleep until an event, perhaps in a system call that we do not see.
  void expect_events();

  // Makes something that has an id: fn(core, now) answers a Status and stores `*id`. `*wanted`, which fn reads, is the
  // id that is asked for by number, or 0; it becomes 0 where it is another instance's. Takes further blocks of ids as
  // they are needed; kNoMemory: none can be had. The calling thread waits for system calls, so not for the data path.
  template <class Fn>
  Status with_id(uint32_t* wanted, const uint32_t* id, Fn&& fn) {
    const uint32_t asked = *wanted;
    if (asked != 0 && !claim_id(asked)) *wanted = 0;
    Status status;
    do status = control(fn);
    while (status == Status::kNoId && claim_more_ids());
    if (*wanted != 0 && (status != Status::kOk || *id != asked)) release_id(asked);
    return status == Status::kNoId ? Status::kNoMemory : status;
  }
  // The same for token ids, which nobody asks for by number.
  template <class Fn>
  Status with_id(Fn&& fn) {
    uint32_t none = 0;
    return with_id(&none, &none, std::forward<Fn>(fn));
  }
  // The object of that id was destroyed: other instances may have the id if it was asked for by number.
  void release_id(uint32_t id);

  // Which instance has that id of that EID? kOk: `*uasid`. kBusy: it is being asked, come again soon. kInvalid and
  // `*why`: nobody has it, or there is no way there. Never waits for a peer longer than find_path() does.
  Status find_instance(const Eid& local, const Eid& eid, uint32_t id, bool token_id, uint32_t* uasid, std::string* why);

  // Finds the way to an instance. False and `*why` if there is none.
  bool find_path(const Eid& local, const InstanceId& instance, PeerAddress* path, std::string* why);
  // A lane on which a process loads from and stores to memory of an instance, which may be this one. False and `*why`:
  // it is not on this host, or has no lane for that process. Waits for its NIC, for a tenth of a second at most.
  bool open_lane(const InstanceId& instance, int32_t process, ipc::OpenedLane* lane, std::string* why);
  // A handle for loads and stores over frames (lib/transport/bypass/calls.h). False and `*why`: the wire to that
  // instance, or its NIC, carries none, or the NIC does not answer, for which this waits for a second.
  bool open_frames(const Eid& local, const InstanceId& instance, bypass::OpenConfig, bypass::Opened*, std::string* why);
  void close_frames(const bypass::Opened&);
  // Calls turns.turn() until it returns true, and drives meanwhile, but for no longer than `patience`.
  bypass::Ran run_frames(uint32_t handle, bypass::Turns& turns, Duration patience);
  // The memory of a segment of an instance, which may be this one, to be mapped (share_door.h). As open_lane().
  bool open_share(const InstanceId& instance, const ipc::ShareRequest&, ipc::OpenedShare* share, std::string* why);
  // Does the configuration let this NIC access memory of others itself (docs/same-host-design.md)?
  bool places() const { return places_; }
  // Others on this host may map the memory of a registered segment, as its token and permissions allow; `memory` is the
  // sealed memfd that the segment fills. False: out of descriptors or memory.
  bool offer_share(uint32_t segment, const SegmentConfig&, int memory, bool writable);
  // Who has that memfd mapped.
  std::vector<ipc::ShareHolder> share_holders(int memory);
  // Publishes a segment of that owner under a name (docs/aperture-design.md, "Names") that is_name() accepts. kExists:
  // this NIC has published another segment so, or that segment has a name; kInvalid: no such segment; kNoMemory:
  // kMaxNames, or none of the name's ids can be had. `*why` is a sentence unless kOk.
  static constexpr size_t kMaxNames = 64;  // of one owner
  Status publish(Owner owner, uint32_t segment, const std::string& name, std::string* why);
  // Before the segment is unregistered. kInvalid: it has no name.
  Status unpublish(uint32_t segment);
  // Can anybody reach this NIC by RoCE? False and `*why`: its wires are UDP sockets, and port 4791 of its addresses is
  // somebody else's.
  bool has_roce(std::string* why) const;
  // Do packets of RoCE leave by that path? False and `*why`: the UDP port of RoCE at our address is somebody else's.
  bool carries_roce(const PeerAddress& path, std::string* why) const;
  // Asks where frames for that path go, if its port has no kernel that asks when they come. Does not wait: a port keeps
  // a few frames until the answer is there.
  void look_for_neighbour(const PeerAddress& path);
  // The same, and waits for the answer. False and `*why`: nobody answered.
  bool meet_neighbour(const PeerAddress& path, std::string* why);
  // Faults that somebody asked for, in place of those before; their times count from now. A daemon's `rnr` is not for
  // its applications, which have their own. Not kOk: `*why`.
  Status inject(const fault::NicPlan&, std::string* why);
  // How often they happened since then.
  fault::NicCounts injected();
  // Other impairments of its wires (docs/impair.md), whose times count from now; null: that direction stays as it is.
  // kInvalid with `*why`: the NIC was not started with any.
  Status impair(const impair::Script* send, const impair::Script* receive, std::string* why);
  std::vector<ChannelInfo> channels();
  // Those from number `*from` on, as many as fit; `*from` is the next one then, 0: there are no more. A bounded look.
  size_t channels(std::span<ChannelInfo> out, uint32_t* from);

  // The daemon's settings of its worker; any thread, also while it runs. False and `*why`: the cores were refused.
  struct WorkerSettings {
    bool may_sleep = true;
    Duration idle_after{};   // it sleeps when idle for so long
    std::vector<int> cores;  // where it may run; empty: anywhere
  };
  bool set_worker(const WorkerSettings&, std::string* why);

 private:
  Nic() = default;

  bool open_ports(const LoadedConfig&, uint32_t wanted_uasid, std::string* error);
  bool open_at(const LoadedConfig&, uint16_t port, std::vector<ClaimSocket>* bound, bool* taken, std::string* error);
  bool open_udp(const LoadedConfig&, std::vector<ClaimSocket>* bound, bool* taken, std::string* error);
  bool open_shm(const LoadedConfig&, bool* taken, std::string* error);
  bool open_lanes(std::string* error);
  void begin_life();
  bool udp_addresses(const LoadedConfig&, std::vector<wire::IpAddress>*, std::string* error) const;
  bool claim_first_ids(const LoadedConfig&, std::string* error);
  bool open_dpdk(const LoadedConfig&, std::string* error);
  std::optional<size_t> dpdk_port_of(const wire::IpAddress&) const;
  PluginPort* dpdk_port_at(uint32_t link) const;  // null: another kind of link
  LinkConfig link_of(const PluginPort&) const;
  Status await_channel(const bypass::OpenConfig&, bypass::Opened*);
  bool take_turns(uint32_t handle, bypass::Turns&);
  CoreConfig core_config(const LoadedConfig&) const;
  void add_fixed_links();
  bool link_to(const InstanceId& instance, Duration patience, uint32_t* link, std::string* why);
  bool wire_path(const Eid& local, const Eid& eid, uint16_t port, PeerAddress* path, std::string* why) const;
  bool path_to_holder(const Eid& local, const Eid& eid, uint16_t port, uint32_t holder, PeerAddress* path,
                      std::string* why);
  bool claim_id(uint32_t id);
  bool claim_now(uint32_t id, std::string* why);
  bool claim_more_ids();
  Status put_up(NicCore& core, uint32_t id, PublishedNames::node_type& name, std::string* why);
  void adopt_claims();
  void adopt_links();
  void adopt_lanes();
  ShareDoor::Rights share_rights();
  void serve_shares();
  void await_answer();
  bool may_ask_host(std::string* why) const;
  bool drive_owned(Acks acks);
  void drive_now_and_then(Acks acks);
  void report_links();
  template <class Entry>
  bool drive_by(Entry& entry, Acks acks) {
    bool worked = clients_ != nullptr && clients_->poll(worker_->core(), worker_->turn());
    worked |= worker_->drive(entry, acks, [this](const Event& event) { report(event); });
    statistics_stale_ |= worker_->take_timer_ran() || worked;
    drives_.store(drives_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return worked;
  }
  void watch(CoreWatcher&);
  void unwatch(CoreWatcher&);
  void note_special();
  bool has_faults() const { return port_down_ || stop_fault_; }
  bool drive_specially(Acks acks);
  void send_posted_specially(uint32_t jetty, Acks acks);
  template <bool kByDoorbell, class Fn>
  auto in_watched_turn(Fn fn);
  // Owned: as Worker::send_owed().
  void send_owed() {
    if (is_special_) [[unlikely]]
      return send_owed_specially();
    worker_->send_owed(worker_->core());
  }
  void send_owed_specially();
  void report_events();
  // Owned, while is_special_: what the clock says. True: nobody may drive.
  bool step_faults();
  void begin_impairments(const LoadedConfig&);
  void set_port_down(bool down);
  Instant next_fault_change() const;
  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void wait_while_stopped();
  void after_control();
  void report(const NicEvent& event) {
    if (const Event* of_core = std::get_if<Event>(&event); of_core && of_core->kind == EventKind::kChannelDead)
      tell_why_it_died(static_cast<uint32_t>(of_core->object));
    if (sink_) sink_(event);
  }
  void open_look_door();
  void serve_look_door();
  std::string answer_look(std::string_view request);
  std::string answer_trace(std::string_view request);
  std::string answer_capture(std::string_view request);
  bool begin_capture(std::string_view wish, std::string* why);
  void end_capture();
  bool is_capturing() const;
  Capture::LinkText text_of_link(uint32_t link) const;
  std::string answer_record(std::string_view request);
  bool begin_recording(std::string_view wish, std::string* why);
  bool begin_record_file(std::string* why);
  void end_recording(record::Ended why);
  void look_after_recording();
  void ring_all();
  bool is_recording() const { return is_recording_; }
  std::string answer_latency(std::string_view verb);
  std::string tell_telemetry(std::string_view request);
  void hear_notes();
  void look(bool yes);
  void listen(NoteListener&, bool yes);
  void choose_memory();
  bool measure_latency(bool yes);
  void clear_latency();
  Regime why_idle() const;
  void begin_samples();
  void sample_turn(Instant from, bool worked);
  WorkFigures work_figures();
  void keep_last_notes();
  void forget_last_notes();
  void tell_why_it_died(uint32_t tpn);
  void wake_helper();
  void tell_helper_deadline();

  // ---- an application thread that stands in for the helper (nic_stand_in.cc) ----
  int stand_in_until(Instant until);
  bool stand_in_drive(bool udp);
  bool stand_in_rest();

  // ---- helper thread ----
  bool watch_all(std::string* error);
  bool start_helper(std::string* error);
  void helper_main();
  void worker_main();
  bool work_until_idle(bool* worked);
  struct Errand {
    void (*run)(void*) = nullptr;
    void* what = nullptr;
  };
  void run_on_worker(const Errand&);
  bool run_errand();
  void worker_rest(bool worked);
  void control_ports();
  Instant sleep_limit(bool worked);
  Woken block(Instant until);
  Woken sleep_until(Instant deadline);
  void drain_wake_fd();
  void helper_take_over();
  void helper_rest(bool worked, bool nap);
  bool left_to_who_stands_in(const Woken&, Instant deadline);
  bool left_to_who_drives(const Woken&, Instant* deadline);
  void leave_to_application();
  bool nothing_left() const;
  bool helper_sleep(Duration d);
  bool stay_away(Duration d);
  bool own_soon(Duration patience);
  bool own_after_others();
  void choose_cpu(bool met_poller);
  void move_to(HelperPolicy::Place place);
  Acks application_drives();
  void say_goodbye();
  void take_down();
  void release();
  void wake_up();
  Acks acks_at_rest();
  bool helper_looks_by(Instant) const;
  Instant helper_deadline(Acks) const;
  Duration next_poll_pause(bool worked);
  void open_statistics(const LoadedConfig&);
  std::vector<uint64_t> port_counters() const;
  std::vector<StatsName> reported_names() const;
  Instant statistics_due_at() const { return statistics_at_ + to_duration(config_.log.stats_interval); }
  bool statistics_due() const;
  void publish_statistics();

  LoadedConfig config_;
  EidTable eids_;
  uint32_t uasid_ = 0;
  uint16_t udp_port_ = 0;
  IdClaims claims_;
  std::mutex claiming_;                     // claims and what is told of them change together
  ipc::Fd wake_fd_;                         // the helper's; DPDK's thread writes to it as long as there are ports
  std::atomic<bool> links_changed_{false};  // of DPDK devices
  bool is_special_ = false;                 // under ownership, beside the one above: both are asked in every turn;
                                            // something of note_special() holds
  bool is_measuring_ = false;               // latencies
  uint32_t samples_left_ = 0;               // turns that are timed if they are of application threads,
  bool samples_began_ = false;              // and whether one was
  std::atomic<bool> stopped_{false};        // by a fault: nobody may drive
  PortSet ports_;
  ipc::Mapping arena_;
  std::unique_ptr<Worker<PortSet>> worker_;
  Ownership ownership_;
  NicEventSink sink_;
  NoticeSink notice_;
  bool asleep_ = false;                       // prepare_sleep() was called; under ownership
  std::atomic<uint64_t> stood_in_drives_{0};  // of who stood in, since the helper drove or looked last
  SleepSet stand_in_wakers_;
  ipc::Fd leave_bell_;                        // in that set: rung once, when the NIC ends
  std::atomic<std::thread::id> stands_in_{};  // an application thread, for the helper; none: nobody does

  std::thread helper_;
  std::atomic<uint32_t> helper_number_{kNoThread};  // thread_number.h
  SleepSet wakers_;       // what it sleeps on: wake_fd_, alarm_, the ports, the clients
  SleepSet away_wakers_;  // while the application polls
  Alarm alarm_;
  bool look_at_udp_ = false;  // it was woken for that
  HelperPolicy policy_;
  HelperPolicy::Place helper_place_;
  cpu_set_t helper_cpus_{};  // where it might run when it began
  uint64_t drives_at_rest_ = 0;
  Instant rested_at_{};
  std::atomic<bool> application_polls_{false};  // the helper stays away
  std::atomic<bool> events_used_{false};        // somebody may sleep until a completion comes
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> drives_{0};           // written by owners
  std::atomic<uint64_t> helper_wakes_at_{0};  // ns; 0: it is awake
  std::atomic<uint32_t> waiters_{0};          // application threads in begin_wait()
  std::unique_ptr<StatsPageWriter> statistics_;
  const std::shared_ptr<PublishedPage> page_ = std::make_shared<PublishedPage>();  // for threads of DPDK, too
  Instant statistics_at_{};
  bool statistics_stale_ = true;               // something happened since
  std::unique_ptr<LastNotes> last_notes_;      // where there is no page that has them
  Instant told_of_death_at_{};                 // 0: never
  LookDoor look_door_;
  Trace trace_;  // this and those that follow under ownership
  std::unique_ptr<Capture> capture_;         // also one that has ended, so that it is told of
  std::unique_ptr<NicRecording> recording_;  // the same
  bool is_recording_ = false;
  NoteListeners listeners_;
  NotingMemory noting_memory_{ports_};
  std::unique_ptr<LatencyWatch> latency_;  // null: nothing was measured
  std::optional<LatencyWatcher<Worker<PortSet>>> latency_watcher_;  // while they are measured
  uint64_t latency_since_ns_ = 0;          // of the wall clock: when that began, or was cleared
  RegimeClock own_regimes_;                // of the NIC's own thread
  Regime rest_regime_ = Regime::kAsleep;   // of that thread, while it sleeps
  RegimeClock application_regimes_;
  OperationTotals operations_;
  std::vector<PluginPortOptions> dpdk_ports_;  // as configured
  std::vector<uint32_t> dpdk_links_;           // of each
  std::vector<ExtraPath> extra_paths_;         // over UDP sockets
  std::vector<bool> dpdk_told_up_;             // of each: what was last reported; at first that it is
  static constexpr Duration kTeardownWait = milliseconds(100);
  static constexpr Duration kWokenPatience = microseconds(2);  // whoever was woken waits so long for an owner
  static constexpr uint64_t kDrivesInARow = 64;                // then others are let in

  Duration poll_pause_{};  // of a helper that has to look at a port which cannot wake it

  std::optional<fault::Timetable> port_down_, stop_fault_;  // of faults; this and the next under ownership
  fault::NicCounts fault_counts_;                           // without rnr, which the Core counts
  std::vector<CoreWatcher*> watchers_;

  NicClients* clients_ = nullptr;
  std::optional<cpu_set_t> worker_cpus_;  // before any settings
  std::atomic<bool> worker_may_sleep_{true};
  std::atomic<int64_t> worker_idle_ns_{0};
  IdleYield idle_yield_;
  std::mutex errands_;                          // one at a time
  std::atomic<const Errand*> errand_{nullptr};  // null: none waits
  std::atomic<uint32_t> errands_done_{0};
  bool places_ = false;
  uint32_t posts_ = 0;
  ipc::LifeSign life_;  // the helper's
  ShareDoor shares_;  // under ownership, but for those who come
  PublishedNames names_;  // under ownership
};

}  // namespace ub
