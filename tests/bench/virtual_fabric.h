// SPDX-License-Identifier: Apache-2.0
//
// Real Cores around one hop, in virtual time: the same figures on any machine, at each run. A host has a port, whose
// line has a rate, and a cable to the hop. The hop has an output queue for each address of each host, with a rate, a
// limit, a rule of marks and a cable to that host. Memory is at hand (emu_hw/node/memory_at_hand.h).
//
// A host has one address, or several, which are paths: path p of one host and path p of another one are the ends of a
// channel of its own, whose packets pass queue p of their host. Each path may be slower, longer, less steady or cut.
//
//   VirtualFabric fabric(seed);
//   VirtualHost& a = fabric.add_host(config, port, {queue});     // and b
//   a.on_turn = [&] { take completions; post(); };               // the application, whenever its host was driven
//   fabric.call_at(when, [&] { a.posted(jetty); });              // or at a time
//   fabric.run_until(when);
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <vector>

#include "emu_hw/node/core_objects.h"
#include "emu_hw/node/memory_at_hand.h"
#include "lib/base/prng.h"
#include "lib/base/time.h"
#include "lib/impair/caqm_hop.h"
#include "lib/impair/line.h"
#include "lib/impair/spec.h"
#include "lib/transport/core.h"

namespace ub::bench {

inline constexpr uint32_t kFabricMtu = 4096;
inline constexpr uint8_t kBulkDscp = 8;  ///< of the class that hops by class serve last
inline constexpr uint32_t kLongestFrame = kFabricMtu + 86;  ///< bytes, of a WRITE over RTP and IPv4

/// What a host sends into.
struct PortSpec {
  uint64_t bits_per_second = 0;
  Duration cable{};             ///< to the hop
  uint32_t waiting_frames = 2;  ///< the port takes no more while more waits than so many of the longest frames
};

/// A queue of the hop, and the cable behind it.
struct QueueSpec {
  uint64_t bits_per_second = 0;
  Duration cable{};          ///< to the host
  Duration jitter{};         ///< each frame is later by up to so much; their order stays
  uint64_t limit_bytes = 0;  ///< a frame with which more would wait is dropped; 0: none is
  impair::Marking marks;     ///< for senders that know ECN alone
  bool speaks_caqm = false;  ///< it answers the wishes of C-AQM (caqm_hop.h)
  bool by_class = false;     ///< frames with kBulkDscp have a queue of their own, and leave while no other frame waits
  bool down = false;         ///< no frame enters
};

/// Totals. Payload frames are those of at least kPayloadFrameBytes.
struct QueueCounts {
  uint64_t payload_bytes = 0;  ///< of payload frames that reached the host, with all their headers
  uint64_t dropped = 0;
  uint64_t marked = 0;
};
inline constexpr size_t kPayloadFrameBytes = 512;

struct FabricFrame {
  std::vector<std::byte> bytes;
};

class VirtualFabric;

/// What a Core needs from outside (lib/transport/host.h).
class FabricPort : public emu::MemoryAtHand {
 public:
  FabricPort(VirtualFabric& fabric, const PortSpec& spec) : fabric_(fabric), spec_(spec) {}

  std::byte* tx_begin(uint32_t link, size_t bytes);
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes);
  void tx_abort(uint32_t link, std::byte* frame);
  void tx_may_wait(uint32_t) {}

  /// When a frame that was refused finds room; never: none was since the last call.
  Instant take_room_at();

 private:
  Duration room() const;

  VirtualFabric& fabric_;
  PortSpec spec_;
  impair::Line line_;
  FabricFrame* open_ = nullptr;  // one frame at a time: memory never answers later
  bool refused_ = false;
};

class VirtualHost {
 public:
  VirtualHost(VirtualFabric& fabric, uint32_t number, const CoreConfig& config, const PortSpec& port);

  /// The address of one of its paths.
  Endpoint address(uint32_t path = 0) const;
  /// How it reaches another host.
  PeerAddress path_to(const VirtualHost& other, uint32_t path = 0) const {
    return {link, address(path), other.address(path)};
  }
  /// A request was posted to a jetty. The host is driven with the next event of this instant.
  void posted(uint32_t jetty);

  uint32_t number;
  emu::Pages arena;
  FabricPort port;
  Core<FabricPort> core;
  uint32_t link = 0;
  std::function<void()> on_turn = [] {};

 private:
  friend VirtualFabric;

  VirtualFabric& fabric_;
  Instant wanted_at_ = Instant::never();  ///< when it has to be driven, if nothing comes before
  Instant event_at_ = Instant::never();   ///< of the first event that drives it
  bool driven_ = false;                   ///< just now
};

class VirtualFabric {
 public:
  explicit VirtualFabric(uint64_t seed) : random_(seed) {}

  /// The host has an address for each queue. Its Core gets the identity, incarnation and seed of its number.
  VirtualHost& add_host(CoreConfig config, const PortSpec& port, const std::vector<QueueSpec>& queues);

  /// It may be changed at any time; what has left the queue is not concerned.
  QueueSpec& queue_spec(const VirtualHost& host, uint32_t path = 0) { return queue_of(host, path).spec; }
  const QueueCounts& queue_counts(const VirtualHost& host, uint32_t path = 0) { return queue_of(host, path).counts; }
  /// Of all classes.
  uint64_t queued_bytes(const VirtualHost& host, uint32_t path = 0) {
    HopQueue& queue = queue_of(host, path);
    return queue.line.queued_bytes(now_) + queue.classes[0].bytes + queue.classes[1].bytes;
  }

  Instant now() const { return now_; }
  Prng& random() { return random_; }
  void call_at(Instant at, std::function<void()> what);
  void run_until(Instant end);

 private:
  friend FabricPort;
  friend VirtualHost;

  /// What waits in a hop by class. The line has only the frame that is leaving.
  struct ClassQueue {
    std::deque<FabricFrame*> frames;
    uint64_t bytes = 0;
  };
  struct HopQueue {
    HopQueue(const QueueSpec& its_spec, uint64_t seed);

    QueueSpec spec;
    QueueCounts counts;
    impair::Line line;
    impair::CaqmHop caqm;
    Instant last_arrival{};
    ClassQueue classes[2];  ///< in the order in which they are served
    bool sends = false;     ///< a frame of them is leaving
  };
  struct Place {
    std::unique_ptr<VirtualHost> host;
    std::deque<HopQueue> queues;
  };
  enum class Kind : uint8_t { kAtHop, kLineFree, kAtHost, kWake, kCall };
  struct Happening {
    Instant at;
    uint64_t order;
    Kind kind;
    uint32_t where = 0;  // host, from 0; of a call its number
    uint32_t path = 0;
    FabricFrame* frame = nullptr;
    bool operator>(const Happening& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  HopQueue& queue_of(const VirtualHost& host, uint32_t path) { return queue_at({host.number - 1, path}); }
  struct Way {
    uint32_t where, path;
    bool bulk = false;  ///< it is of the class that hops by class serve last
  };
  HopQueue& queue_at(Way way) { return hosts_[way.where].queues[way.path]; }
  FabricFrame* take_frame(size_t bytes);
  void give_back(FabricFrame* frame) { free_frames_.push_back(frame); }
  void put(Happening h);
  void happen(const Happening& h);
  static Way way_of(const FabricFrame& frame);
  void enter_hop(FabricFrame* frame);
  Instant leave(Way way, FabricFrame* frame);
  void serve_classes(Way way);
  void mark(HopQueue& queue, FabricFrame& frame, uint64_t queued);
  void arrive(const Happening& h);
  void drive(VirtualHost& host);
  void wake_at(VirtualHost& host, Instant at);
  void wake(VirtualHost& host);

  Instant now_{1'000'000'000};
  Prng random_;
  uint64_t order_ = 0;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> ahead_;
  std::vector<Place> hosts_;
  std::deque<FabricFrame> frames_;
  std::vector<FabricFrame*> free_frames_;
  std::deque<std::function<void()>> calls_;  // by number; those that were made stay
};

}  // namespace ub::bench

extern template class ub::Core<ub::bench::FabricPort>;
