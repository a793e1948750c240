// SPDX-License-Identifier: Apache-2.0
//
// Directed paths between nodes. A frame may be lost, doubled, damaged, held up or delayed up to its lifetime;
// a path may be cut; the queue in front of a slow path is finite. Frames find their way by destination
// address and port, as in a real network, so a restarted instance gets what was meant for its predecessor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/prng.h"
#include "lib/transport/wire/network_header.h"
#include "tests/sim/departures.h"
#include "tests/sim/options.h"
#include "tests/sim/tamper.h"

namespace ub::sim {

class World;

constexpr uint32_t kMaxNodes = 8;

struct Frame {
  std::unique_ptr<std::byte[]> data;
  uint32_t bytes = 0;

  std::span<const std::byte> span() const { return {data.get(), bytes}; }
};

class Network {
 public:
  Network(World& world, uint64_t seed);

  void add_node(uint32_t node, const wire::Endpoint& at);
  void send(uint32_t from, Frame);
  // A frame that no Core sent, as if it came from that node.
  void inject(uint32_t from, std::span<const std::byte> frame);
  // Is the queue of a lossless wire full, so that its sender must wait?
  bool full(uint32_t from) const;
  // The node that a frame is for. A ticket is what World::plan_delivery() was told.
  uint32_t destination(uint64_t ticket) const { return slots_[static_cast<uint32_t>(ticket)].to; }
  // A frame arrives: takes it out. One without data: it has arrived already.
  Frame take(uint64_t ticket, uint32_t* to);

  void cut(uint32_t a, uint32_t b, bool cut);  // both directions
  void heal();                                 // no fault from now on; frames under way keep their delay
  size_t under_way() const { return slots_.size() - free_slots_.size(); }
  bool healed() const { return healed_; }
  uint64_t marked() const { return marked_; }  // frames that said congestion
  // How long frames have been leaving on this path, all together.
  uint64_t busy_ns(uint32_t from, uint32_t to) const { return paths_[from * kMaxNodes + to].busy_ns; }
  // The least time that a frame was under way; UINT64_MAX: none was.
  uint64_t least_travel_ns() const { return least_travel_ns_; }

  Tamper tamper;
  Departures departures;

 private:
  struct Late {
    uint64_t ticket;
    uint64_t overtaken_by;  // so many are still to come
  };
  struct Path {
    bool cut = false;
    uint64_t free_at = 0;  // when the last queued frame has left
    uint64_t last_at = 0;  // arrival of the latest frame that kept its order
    uint32_t burst = 0;    // frames of a loss burst still to come
    uint32_t queued = 0;
    Frame swapped;  // waits to change places with the next
    uint64_t busy_ns = 0;
    uint64_t carried = 0;    // frames, to find every second one
    std::vector<Late> late;  // frames that others have to overtake
  };
  struct Slot {
    Frame frame;
    uint32_t from, to;
    uint32_t number;  // of the frame, among those that were in this slot
  };

  Path& path(uint32_t from, uint32_t to) { return paths_[from * kMaxNodes + to]; }
  uint32_t route(std::span<const std::byte> frame) const;
  void carry(uint32_t from, uint32_t to, Frame, const TamperRule*);
  // Returns the ticket of the delivery.
  uint64_t deliver_at(uint64_t when_ns, uint32_t from, uint32_t to, Frame);
  void deliver_late(uint64_t when_ns, uint32_t from, uint32_t to, Frame);
  void overtake(Path&, uint64_t when_ns);
  uint64_t travel_time(Path&, size_t bytes);
  bool lost(Path&);
  void damage(uint32_t from, Frame&);
  void mark(uint32_t from, Frame&);
  static Frame copy(const Frame&);

  World& world_;
  Prng rng_;
  bool healed_ = false;
  uint64_t marked_ = 0;
  uint64_t least_travel_ns_ = UINT64_MAX;
  std::vector<Path> paths_;
  std::vector<std::pair<wire::Endpoint, uint32_t>> routes_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
};

}  // namespace ub::sim
