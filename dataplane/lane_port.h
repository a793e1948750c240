// SPDX-License-Identifier: Apache-2.0
//
// Lanes (lib/ipc/lane.h): programs of this host load from and store to memory of this NIC. Each lane is a link of the
// Core that carries TP bypass alone, and this port is where their frames come from. Programs come to the socket of the
// shared-memory wire, which hands them on (ShmPort::set_door).
//
//   any thread                                   owner of the Core
//   ----------                                   -----------------
//   admit(), poll_control(): hello, hang-up       has_pending() -> adopt_pending(): lanes get their link numbers
//      under control_mutex_                       take_dead_lanes() -> Core::link_down -> drop_lane()
//                                                 rx_*, tx_*, prepare_sleep, finish_sleep: no lock
//
// A request is taken, executed and answered in one round of the NIC, so nothing of a lane is remembered between rounds
// but how many requests were served. A request that got no answer ends the lane, as does a word that cannot be.
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

  // False and `*error`: out of descriptors.
  bool open(bool has_membarrier, std::string* error);
  void close();  // owner only; every program sees its lane die
  bool is_open() const { return static_cast<bool>(epoll_); }

  // ---- control, any thread ----
  // A program asks for a lane on this socket. It gets one, or a refusal that says why.
  void admit(ipc::Fd socket, const ipc::LaneHello&);
  // Notices hang-ups and rings. True: something waits for the owner.
  bool poll_control();
  int control_fd() const { return epoll_.get(); }
  bool has_pending() const { return pending_.load(std::memory_order_acquire); }

  // ---- lanes, owner only ----
  void adopt_pending(const AddLink& add);
  // Appends links whose lanes have ended. Then call Core::link_down and drop_lane().
  void take_dead_lanes(std::vector<uint32_t>* links);
  void drop_lane(uint32_t link);
  size_t lane_count() const { return order_.size(); }

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
  };
  // The control side of a lane.
  struct Slot {
    ipc::Fd socket;
    std::unique_ptr<Lane> lane;  // touched by the owner only, once it was adopted
    uint32_t generation = 0;     // events of an earlier use are ignored
    bool fresh = false;          // to be adopted
    bool gone = false;           // hung up, and the owner was not told yet
  };

  std::unique_ptr<Lane> make_lane(ipc::Fd* memory, std::string* error);
  void refuse(const ipc::Fd& socket, const std::string& text);
  void on_event(uint32_t slot, uint32_t generation);
  Lane* lane_at(uint32_t link) const { return link < by_link_.size() ? by_link_[link] : nullptr; }
  void give_up(Lane&, uint64_t& cause);
  bool take(Lane&, Ring&, RxFrame* out);
  void set_asleep(bool yes);

  std::mutex control_mutex_;
  ipc::Fd epoll_;
  std::vector<Slot> slots_;
  std::atomic<bool> pending_{false};
  bool has_membarrier_ = false;

  std::vector<Lane*> order_;    // all that were adopted
  std::vector<Lane*> by_link_;
  std::vector<Lane*> received_;  // in this round
  size_t turn_ = 0;
  bool asleep_ = false;
  bool served_ = false;
  LanePortCounters counters_;  // of the owner
  // The same of any thread.
  std::atomic<uint64_t> refused_{0}, doorbells_{0};
};

}  // namespace ub
