// SPDX-License-Identifier: Apache-2.0
//
// Directed paths between nodes. Each begins with a link (lib/impair), which has a rate, a delay, losses and late
// frames. Behind it a frame may be marked, damaged, doubled, held up or delayed up to its lifetime; a path may be cut;
// the queue in front of a slow path is finite. Frames find their way by destination address and port, as in a real
// network, so a restarted instance gets what was meant for its predecessor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/prng.h"
#include "lib/impair/link.h"
#include "lib/transport/wire/network_header.h"
#include "tests/sim/departures.h"
#include "tests/sim/options.h"
#include "tests/sim/tamper.h"

namespace ub::sim {

class World;

constexpr uint32_t kMaxNodes = 8;
constexpr uint32_t kMaxPaths = 8;  // between each two nodes

// An address of a node: that of its path of this number, the first of which is its usual one.
wire::Endpoint endpoint_of_path(const wire::Endpoint& usual, uint32_t path, bool by_address);

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
  // The node that a frame is for.
  uint32_t destination(uint32_t slot) const { return slots_[slot].to; }
  // The link that plan_link() was about has frames that are due.
  void leave_link(uint32_t path);
  // A frame arrives: takes it out.
  Frame take(uint32_t slot, uint32_t* to);

  void cut(uint32_t a, uint32_t b, bool cut);  // both directions, all paths
  // What befalls one of several paths, in this direction. It is as it was at the end, or when all is healed.
  enum class PathFault : uint8_t { kCut, kLoses, kSlow };
  void begin_path_fault(uint32_t from, uint32_t to, uint32_t path, PathFault);
  void end_path_fault(uint32_t from, uint32_t to, uint32_t path);
  void heal();                                 // no fault from now on; frames under way keep their delay
  size_t under_way() const { return in_links_ + slots_.size() - free_slots_.size(); }
  bool healed() const { return healed_; }
  // How long frames have been leaving on this path, all together.
  uint64_t busy_ns(uint32_t from, uint32_t to) const { return paths_[index_of(from, to, 0)].busy_ns; }
  uint64_t marked() const { return marked_; }  // frames that said congestion
  // The least time that a frame was under way; UINT64_MAX: none was.
  uint64_t least_travel_ns() const { return least_travel_ns_; }

  Tamper tamper;
  Departures departures;

 private:
  struct Path {
    impair::Link link;
    bool cut = false, path_cut = false;
    uint64_t busy_ns = 0;                // the time in which its line was not free
    Instant planned = Instant::never();  // when leave_link() comes
    Frame swapped;                       // waits to change places with the next
  };
  struct Slot {
    Frame frame;
    uint32_t from, to;
  };

  struct Address {
    wire::Endpoint at;
    uint32_t node, path;
  };
  struct Route {
    uint32_t to = UINT32_MAX, path = 0;
  };

  static uint32_t index_of(uint32_t from, uint32_t to, uint32_t path) {
    return (from * kMaxNodes + to) * kMaxPaths + path;
  }
  Path& path(uint32_t from, uint32_t to, uint32_t path) { return paths_[index_of(from, to, path)]; }
  const Address* address_of(const wire::Endpoint& at) const;
  Route route(std::span<const std::byte> frame) const;
  void carry(uint32_t from, Route, Frame, const TamperRule*);
  void enter_link(Path&, const Frame&);
  void plan_link(Path&);
  void pass_on(uint32_t from, uint32_t to, uint64_t entered_ns, Frame);
  // It has been under way since `entered_ns`.
  void deliver_at(uint64_t when_ns, uint64_t entered_ns, uint32_t from, uint32_t to, Frame);
  void damage(uint32_t from, Frame&);
  static void refuse(Frame&);
  void mark(uint32_t from, Frame&);
  static Frame copy(std::span<const std::byte>);

  World& world_;
  Prng rng_;
  bool healed_ = false;
  uint64_t marked_ = 0;
  uint64_t least_travel_ns_ = UINT64_MAX;
  std::vector<Path> paths_;  // by index_of()
  size_t in_links_ = 0;      // frames
  std::vector<Address> addresses_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;
};

}  // namespace ub::sim
