// SPDX-License-Identifier: Apache-2.0
//
// Lanes (lib/ipc/lane.h): programs of this host load from and store to memory of this NIC. Each lane is a link of the
// Core that carries TP bypass alone, and this port is where their frames come from. Programs come to the socket of the
// shared-memory wire, which hands them on (ShmPort::set_door).
//
//   any thread                                   owner of the Core
//   ----------                                   -----------------
//   admit(), poll_control(): hello, hang-up,      has_pending() -> adopt_pending(): lanes get their link numbers
//      ring; under control_mutex_                 take_dead_lanes() -> Core::link_down -> drop_lane()
//                                                 rx_*, tx_*, prepare_sleep, finish_sleep: no lock
//
// A request is taken, executed and answered in one round of the NIC, so nothing of a lane is remembered between rounds
// but how many requests were served. A request that got no answer ends the lane, as does a word that cannot be.
//
// Where there are more than a few lanes, those from which nothing comes are left alone: their flag says that the NIC
// sleeps, and a program that comes back rings. So a round costs nothing for them. Whoever stores a request just then
// either sees the flag or is seen: the flag is set, a heavy barrier passes, and the lane is looked at once more.
//
// A program may ring for nothing, which costs others the time of the NIC. All who do so have one allowance together.
// Once it is used up, whoever rings for nothing is not heard until half of it is back; a ring with a request behind it
// is free, so nobody is made unheard by others.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/port_concept.h"
#include "lib/base/allowance.h"
#include "lib/ipc/fd.h"
#include "lib/ipc/lane.h"
#include "lib/ipc/memfd.h"
#include "lib/transport/core_types.h"

namespace ub {

struct LanePortCounters {
#define UB_LANE_COUNTER(member, name, help) uint64_t member = 0;
#include "dataplane/lane_port_counters.def"
#undef UB_LANE_COUNTER
};
// Their names, in order of the members.
inline constexpr const char* kLanePortCounterNames[] = {
#define UB_LANE_COUNTER(member, name, help) name,
#include "dataplane/lane_port_counters.def"
#undef UB_LANE_COUNTER
};
static_assert(sizeof(LanePortCounters) == std::size(kLanePortCounterNames) * sizeof(uint64_t));

class LanePort {
 public:
  using AddLink = std::function<uint32_t(const LinkConfig&)>;  // Core::add_link

  static constexpr size_t kMaxLanes = 1024;
  static constexpr size_t kMaxLanesOfProgram = 256;
  static constexpr size_t kFewLanes = 8;       // so many are always looked at
  static constexpr uint32_t kIdleRounds = 256;  // without a request, or up to twice as many: the lane is left alone

  // False and `*error`: out of descriptors.
  bool open(bool has_membarrier, std::string* error);
  void close();  // owner only; every program sees its lane die
  bool is_open() const { return static_cast<bool>(epoll_); }

  // ---- control, any thread ----
  // A program asks for a lane on this socket. It gets one, or a refusal that says why.
  void admit(ipc::Fd socket, const ipc::LaneHello&);
  // Notices hang-ups and rings. True: something waits for the owner, who may be asleep.
  bool poll_control(Instant now);
  // When poll_control() is to be called at the latest, to hear those again who rang for nothing.
  Instant listens_again_at() const { return {listens_again_at_.load(std::memory_order_relaxed)}; }
  int control_fd() const { return epoll_.get(); }
  bool has_pending() const { return pending_.load(std::memory_order_acquire); }

  // ---- lanes, owner only ----
  void adopt_pending(Instant now, const AddLink& add);
  // Appends links whose lanes have ended. Then call Core::link_down and drop_lane().
  void take_dead_lanes(std::vector<uint32_t>* links);
  void drop_lane(uint32_t link);
  size_t lane_count() const { return count_; }
  // Those that rx_burst() looks at. The others ring.
  size_t watched_count() const { return watched_.size(); }
  bool leaves_some_alone() const { return watched_.size() != count_; }
  // A ring was taken, and rx_burst() has not looked at its lane yet.
  bool was_rung() const { return was_rung_; }

  // ---- Port (port_concept.h), owner only ----
  size_t rx_burst(RxFrame* out, size_t room);
  void rx_release();
  // The answer to the oldest request that has none. One frame at a time.
  std::byte* tx_begin(uint32_t link, size_t bytes);
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes);
  void tx_abort(uint32_t, std::byte*) {}
  bool prepare_sleep();
  bool anything_waits() const;
  void finish_sleep();
  // Was a request served since the last call? Whoever sent it polls for the answer.
  bool take_served() { return std::exchange(served_, false); }

  // What happened, ever.
  LanePortCounters counters() const;

 private:
  // One of the two rings of a lane.
  struct Ring {
    std::byte* requests = nullptr;
    std::byte* replies = nullptr;
    uint32_t slots = 0;
    uint32_t data = 0;   // bytes behind a head line
    uint32_t taken = 0;  // requests, modulo 2^32
    uint32_t answered = 0;

    std::byte* request(uint32_t n) const { return requests + n % slots * (ipc::LaneLayout::kLine + data); }
    std::byte* reply(uint32_t n) const { return replies + n % slots * (ipc::LaneLayout::kLine + data); }
    uint64_t word() const {
      return reinterpret_cast<std::atomic<uint64_t>*>(request(taken))->load(std::memory_order_acquire);
    }
    static bool is_next(uint64_t word, uint32_t n) { return word >> 16 != 0 && (word & 0xffff) == (n & 0xffff); }
    bool has_next() const { return is_next(word(), taken); }
  };
  struct Lane {
    ipc::Mapping memory;
    ipc::LaneControl* control = nullptr;
    Ring small, large;
    Ring* busy = nullptr;  // the one whose requests were taken in this round
    uint32_t link = 0;     // 0: not adopted
    uint32_t slot = 0;     // index of slots_
    bool dead = false;
    bool watched = false;
    uint32_t taken_by_then = 0;  // requests, when idle lanes were looked for last
    uint32_t taken_by_ring = 0;  // requests, when it rang last

    uint32_t taken() const { return small.taken + large.taken; }
    bool has_next() const { return small.has_next() || large.has_next(); }
    void tell(bool nic_sleeps) { control->nic_sleeps.store(nic_sleeps ? 1 : 0, std::memory_order_relaxed); }
  };
  // The control side of a lane.
  struct Slot {
    ipc::Fd socket;
    std::unique_ptr<Lane> lane;  // touched by the owner only, once it was adopted
    uint32_t generation = 0;     // events of an earlier use are ignored
    int32_t process = 0;         // of the program
    uint32_t rings = 0;          // that the owner was not told of yet
    bool fresh = false;          // to be adopted
    bool gone = false;           // hung up, and the owner was not told yet
    bool changed = false;        // is in changed_
    bool unheard = false;        // it rang for nothing
  };

  // What ringing for nothing costs a program: some twenty times what it costs us.
  static constexpr Duration kIdleRing = microseconds(100);
  static constexpr int kRingsAtOnce = 8;  // more messages of a program wait until others had their turn

  std::unique_ptr<Lane> make_lane(ipc::Fd* memory, std::string* error);
  bool may_have_lane(const ipc::LaneHello&, std::string* why);
  void refuse(const ipc::Fd& socket, const std::string& text);
  size_t free_slot();
  void on_event(uint32_t slot, uint32_t generation);
  void tell_owner(uint32_t slot);
  bool listen(uint32_t slot, bool to_rings);
  void listen_again();
  static void vacate(Slot&);
  bool adopt(Slot&, const AddLink& add);
  void hear(uint32_t slot, Instant now);
  void watch(Lane&);
  void leave_idle_lanes();
  Lane* lane_at(uint32_t link) const { return link < by_link_.size() ? by_link_[link] : nullptr; }
  void end(Lane&);
  void give_up(Lane&, uint64_t& cause);
  bool take(Lane&, Ring&, RxFrame* out);
  void set_asleep(bool yes);

  std::mutex control_mutex_;
  ipc::Fd epoll_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> changed_;  // slots that the owner has to look at
  Allowance ringing_;              // of all who ring for nothing
  std::atomic<uint64_t> listens_again_at_{Instant::never().ns};
  std::atomic<bool> pending_{false};
  bool has_membarrier_ = false;

  size_t count_ = 0;             // lanes that were adopted
  std::vector<Lane*> by_link_;
  std::vector<Lane*> watched_;   // those that may have requests without a ring
  std::vector<Lane*> received_;  // in this round
  std::vector<uint32_t> dead_;   // their links; has room for all
  size_t turn_ = 0;
  uint32_t rounds_ = 0;
  bool asleep_ = false;
  bool served_ = false;
  bool was_rung_ = false;
  LanePortCounters counters_;  // of the owner
  // The same of any thread.
  std::atomic<uint64_t> refused_{0}, refused_program_{0}, doorbells_{0};
};

}  // namespace ub
