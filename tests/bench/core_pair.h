// SPDX-License-Identifier: Apache-2.0
//
// Cores in one process, joined by frame queues in memory: the protocol alone, without ports, threads or
// system calls. For benchmarks: a Core writes its frames straight into the queue, the other one reads them
// there.
//
//   Node a(1), b(2);                       // instances 1 and 2
//   Wire wire(a, b, link, queue_bytes);    // a link on each side, two queues
//   CompletionQueue, ReceiveQueue, SendQueue, Region: objects with their rings, made on a Node
//   a.add_target(...), then drive() both until the channels are up; CorePair does all of this
#pragma once

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "emu_hw/node/core_objects.h"
#include "emu_hw/node/memory_at_hand.h"
#include "lib/base/assert.h"
#include "lib/transport/core_impl.h"

namespace ub::bench {

using emu::CompletionQueue;
using emu::endpoint_of;
using emu::instance_of;
using emu::Pages;
using emu::ReceiveQueue;
using emu::Region;
using emu::Ring;
using emu::SendRing;

// Frames of one direction, one behind the other in whole lines, so that small frames cycle through few lines
// and large ones through all of the memory. One frame is open at a time: memory here never answers later.
class FrameQueue {
 public:
  explicit FrameQueue(size_t bytes) : pages_(bytes), mask_(bytes - 1), frames_(kFrames) {
    UB_ASSERT(std::has_single_bit(bytes));
  }

  std::byte* begin(size_t bytes) {
    UB_DCHECK(!open_);
    size_t at = tail_ & mask_;
    size_t skip = at + bytes > mask_ + 1 ? mask_ + 1 - at : 0;
    if (pushed_ - popped_ == kFrames || tail_ + skip + bytes - head_ > mask_ + 1) return nullptr;
    tail_ += skip;
    open_ = true;
    return pages_.data() + (tail_ & mask_);
  }
  void commit(std::byte* frame, size_t bytes) {
    open_ = false;
    tail_ += (bytes + 63) / 64 * 64;
    frames_[pushed_++ % kFrames] = {frame, tail_, static_cast<uint32_t>(bytes)};
  }
  void abort() { open_ = false; }

  size_t waiting() const { return pushed_ - popped_; }
  uint64_t sent() const { return pushed_; }  // frames, ever
  // Frame i of those waiting; valid until it is released.
  std::span<const std::byte> at(size_t i) const {
    const Frame& f = frames_[(popped_ + i) % kFrames];
    return {f.data, f.bytes};
  }
  void release(size_t n) {
    if (n == 0) return;
    popped_ += n;
    head_ = frames_[(popped_ - 1) % kFrames].end;
  }
  const Pages& memory() const { return pages_; }

 private:
  static constexpr size_t kFrames = 4096;
  struct Frame {
    std::byte* data;
    size_t end;
    uint32_t bytes;
  };
  Pages pages_;
  size_t mask_;
  size_t head_ = 0, tail_ = 0;  // bytes
  size_t pushed_ = 0, popped_ = 0;
  bool open_ = false;
  std::vector<Frame> frames_;
};

// What a Core needs from outside (lib/transport/host.h); memory is at hand. Like that of a NIC it may be looked at, and
// nobody does unless he says so: what is measured is what a NIC costs. A program that is compiled to look closely hears
// of the steps within a packet's way, too.
class BenchHost : public emu::MemoryAtHand {
 public:
#ifdef UB_BENCH_LOOKS_CLOSELY
  static constexpr bool kLooksClosely = true;
#else
  static constexpr bool kLooksClosely = false;
#endif
  using Listener = void (*)(void* who, const Note&);
  void set_listener(Listener listener, void* who) {
    listener_ = listener;
    who_ = who;
  }
  void note(const Note& note) { listener_(who_, note); }

  void set_queue(uint32_t link, FrameQueue* queue) {
    if (queues_.size() <= link) queues_.resize(link + 1);
    queues_[link] = queue;
  }
  std::byte* tx_begin(uint32_t link, size_t bytes) { return queues_[link]->begin(bytes); }
  void tx_commit(uint32_t link, std::byte* frame, size_t bytes) { queues_[link]->commit(frame, bytes); }
  void tx_abort(uint32_t link, std::byte*) { queues_[link]->abort(); }
  void tx_may_wait(uint32_t) {}

 private:
  std::vector<FrameQueue*> queues_;  // by link
  Listener listener_ = nullptr;      // set before Core::look()
  void* who_ = nullptr;
};

// Virtual time, moved by hand. All Cores of a program may share one.
class Clock {
 public:
  Instant now() const { return now_; }
  void advance(Duration d) { now_ += d; }

 private:
  Instant now_{1'000'000'000};
};

// Who keeps the order of a queue (7.3.3).
enum class Service : uint8_t { kRoi, kRol, kRot };

// `qps`: RoCE queue pairs; 0: no RoCE. `rol`: channels of ROL.
inline CoreConfig config_of(uint32_t number, uint32_t qps = 0, bool rol = false) {
  CoreConfig config;
  config.rol = rol;
  config.self = instance_of(number);
  config.incarnation = 0x1000 + number;
  config.seed = number;
  config.roce.max_qps = qps;
  return config;
}

// A Core with its memory and the frames that come to it, by link.
class Node {
 public:
  explicit Node(uint32_t node_number) : Node(node_number, config_of(node_number)) {}
  Node(uint32_t node_number, const CoreConfig& config)
      : number(node_number), arena(Core<BenchHost>::arena_bytes(config)), core(config, arena.data(), host) {}

  // Takes a burst of one link; returns how many frames.
  size_t receive(Instant now, uint32_t link, size_t burst) {
    FrameQueue& queue = *inbound[link];
    size_t n = queue.waiting() < burst ? queue.waiting() : burst;
    for (size_t i = 0; i < n; ++i) {
      if (i + 1 < n) __builtin_prefetch(queue.at(i + 1).data());
      core.on_packet(now, link, queue.at(i));
    }
    queue.release(n);
    return n;
  }
  // One round of a driver: frames in, timers, frames out. Tells whether there was anything to do.
  bool drive(Instant now, size_t burst = 32) {
    size_t work = 0;
    for (uint32_t link = 1; link < inbound.size(); ++link) work += receive(now, link, burst);
    if (core.next_deadline() <= now) core.on_timer(now);
    work += core.poll_packets(now, 2 * burst);
    Event events[16];
    while (core.poll_events(events) != 0) {
    }
    return work != 0;
  }
  uint32_t add_target(Instant now, uint32_t peer, uint32_t link, ObjectKind kind, uint32_t id) {
    TargetConfig t;
    t.instance = instance_of(peer);
    t.kind = kind;
    t.id = id;
    t.path = {link, endpoint_of(number), endpoint_of(peer)};
    uint32_t target = 0;
    UB_ASSERT(core.add_target(now, t, &target) == Status::kOk);
    return target;
  }

  uint32_t number;
  Pages arena;
  BenchHost host;
  Core<BenchHost> core;
  std::vector<FrameQueue*> inbound{nullptr};
};

// The two queues between two nodes.
struct Wire {
  Wire(Node& a, Node& b, const LinkConfig& config, size_t queue_bytes)
      : a_to_b(queue_bytes), b_to_a(queue_bytes), link_at_a(add(a, config)), link_at_b(add(b, config)) {
    a.host.set_queue(link_at_a, &a_to_b);
    a.inbound[link_at_a] = &b_to_a;
    b.host.set_queue(link_at_b, &b_to_a);
    b.inbound[link_at_b] = &a_to_b;
  }

  FrameQueue a_to_b, b_to_a;
  uint32_t link_at_a, link_at_b;

 private:
  static uint32_t add(Node& node, const LinkConfig& config) {
    uint32_t link = node.core.add_link(config);
    UB_ASSERT(link != 0);
    if (node.inbound.size() <= link) node.inbound.resize(link + 1);
    return link;
  }
};

// ---- objects ----------------------------------------------------------------------------------------------

// A jetty's send queue; receives come from a queue that it may share. ROL and ROT are for RC.
struct SendQueue : SendRing {
  SendQueue(Node& node, CompletionQueue& jfc, const ReceiveQueue& jfr, uint32_t ring_depth,
            Service service = Service::kRoi)
      : SendRing(ring_depth, work_bytes(ring_depth)) {
    JettyConfig c;
    if (service != Service::kRoi) c.mode = Mode::kRc;
    c.lower_layer_order = service == Service::kRol;
    c.target_order = service == Service::kRot;
    c.sq = config(jfc);
    c.jfr = jfr.id;
    UB_ASSERT(node.core.create_jetty(c, &id) == Status::kOk);
  }
  static size_t work_bytes(uint32_t depth) { return Core<BenchHost>::send_queue_work_bytes(depth); }
  static size_t memory_bytes(uint32_t depth) { return SendRing::memory_bytes(depth, work_bytes(depth)); }
};

// Two nodes, one wire, and on each side one of everything; channels are up when the constructor returns.
class CorePair {
 public:
  struct Side {
    Side(Node& n, uint32_t depth, size_t region_bytes, Service service)
        : node(n),
          send_jfc(n, 2 * depth),
          receive_jfc(n, 2 * depth),
          jfr(n, receive_jfc, 2 * depth),
          jetty(n, send_jfc, jfr, depth, service),
          region(n, region_bytes) {}
    Node& node;
    CompletionQueue send_jfc, receive_jfc;
    ReceiveQueue jfr;
    SendQueue jetty;
    Region region;
    uint32_t target = 0;  // the other side's jetty
  };

  CorePair(const LinkConfig& link, uint32_t depth, size_t region_bytes, size_t queue_bytes, uint32_t qps = 0,
           Service service = Service::kRoi)
      : a_node(1, config_of(1, qps, service == Service::kRol)),
        b_node(2, config_of(2, qps, service == Service::kRol)),
        wire(a_node, b_node, link, queue_bytes),
        a(a_node, depth, region_bytes, service),
        b(b_node, depth, region_bytes, service) {
    a.target = a_node.add_target(clock.now(), 2, wire.link_at_a, ObjectKind::kJetty, b.jetty.id);
    settle();
    b.target = b_node.add_target(clock.now(), 1, wire.link_at_b, ObjectKind::kJetty, a.jetty.id);
    settle();
  }

  // Drives both sides until nothing moves.
  void settle() {
    for (bool busy = true; busy; clock.advance(microseconds(1))) {
      busy = a_node.drive(clock.now());
      busy |= b_node.drive(clock.now());
    }
  }

  Clock clock;
  Node a_node, b_node;
  Wire wire;
  Side a, b;
};

}  // namespace ub::bench
