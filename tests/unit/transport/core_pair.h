// SPDX-License-Identifier: Apache-2.0
// core_pair.h - two Cores, joined by queues of frames that a test can look into, lose and change. Time is the test's;
// memory answers at once, or when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "lib/transport/core.h"
#include "tests/unit/transport/test_host.h"
#include "tests/unit/transport/zeroed_memory.h"

namespace ub {

// Compiled once, in core_instance.cc.
extern template class Core<TestHost>;
extern template class roce::Engine<TestHost>;

/// A Core with a host and a link.
struct CoreNode {
  explicit CoreNode(const CoreConfig& config, const LinkConfig& wire = {.mtu = 4096})
      : memory_(Core<TestHost>::arena_bytes(config)),
        core(std::make_unique<Core<TestHost>>(config, memory_.get(), host)),
        link(core->add_link(wire)) {}

  static CoreConfig small_config(uint8_t address) {
    CoreConfig config;
    config.seed = address;
    config.self = {{}, address};
    config.max_queues = 16;
    config.max_channels = 4;
    config.max_peers = 4;
    config.max_segments = 512;
    config.max_links = 4;
    config.max_targets = 16;
    config.max_jfc = 64;
    config.kept_packets = 8;
    config.reorder_packets = 0;  // nothing comes late
    config.slow_memory = true;
    config.first_tassn = 0;
    return config;
  }

 private:
  ZeroedMemory memory_;

 public:
  TestHost host;
  std::unique_ptr<Core<TestHost>> core;
  uint32_t link;
};

/// `Node`: a CoreNode that can be made from an address, and what else its pair is made from.
template <class Node>
class CorePair : public testing::Test {
 protected:
  using Bytes = TestHost::Bytes;

  template <class... Options>
  explicit CorePair(const Options&... options) : a(1, options...), b(2, options...) {}

  /// Everything that a node has to send; true: there was something.
  bool drain(Node& from) {
    bool any = false;
    while (from.core->poll_packets(now, 64) != 0) any = true;
    return any;
  }
  /// Delivers what lies in the queues. `filter` may change a frame; false: it is lost.
  using Filter = std::function<bool(Node& from, Bytes& frame)>;
  bool deliver(Node& from, Node& to) {
    bool any = false;
    while (!from.host.frames.empty()) {
      Bytes frame = std::move(from.host.frames.front());
      from.host.frames.pop_front();
      any = true;
      if (filter && !filter(from, frame)) continue;
      to.core->on_packet(now, to.link, frame);
    }
    return any;
  }
  void exchange() {
    for (bool any = true; any;) {
      any = drain(a);
      any |= drain(b);
      any |= deliver(a, b);
      any |= deliver(b, a);
      if (hold_copies) continue;
      any |= a.host.finish_copies(*a.core, now);
      any |= b.host.finish_copies(*b.core, now);
    }
  }
  /// Lets time pass until nothing is planned within so much time.
  void settle(Duration limit = seconds(5)) {
    const Instant end = now + limit;
    for (exchange();; exchange()) {
      const Instant next = earlier(a.core->next_deadline(), b.core->next_deadline());
      if (next > end) return;
      now = later(now, next);
      a.core->on_timer(now);
      b.core->on_timer(now);
    }
  }
  static uint64_t count(const Node& node, Counter c) { return node.core->counters()[c]; }

  Instant now{1'000'000};
  Node a, b;
  Filter filter;
  bool hold_copies = false;
};

}  // namespace ub
