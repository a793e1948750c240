// SPDX-License-Identifier: Apache-2.0
//
// The Core while somebody looks at the calls of a turn (worker.h): a CoreWatcher hears of a call before and after it. A
// NIC that nobody watches drives its Core without this.
//
// Thread: the owner of the Core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/time.h"
#include "lib/transport/core_types.h"

namespace ub {

// May neither call the Core nor throw.
class CoreWatcher {
 public:
  virtual ~CoreWatcher() = default;
  // The Core is about to get a received frame, by on_packet() or on_lane_frame().
  virtual void before_frame(uint32_t link, std::span<const std::byte> frame) = 0;
  // It has dealt with that frame, which is still there.
  virtual void after_frame() = 0;
};

// The Entry (worker.h) that calls the watchers. It lives as long as one round.
template <class Core>
class WatchedCore {
 public:
  WatchedCore(Core& core, const std::vector<CoreWatcher*>& watchers) : core_(core), watchers_(watchers) {}

  void on_packet(Instant now, uint32_t link, std::span<const std::byte> frame) {
    for (CoreWatcher* w : watchers_) w->before_frame(link, frame);
    core_.on_packet(now, link, frame);
    for (CoreWatcher* w : watchers_) w->after_frame();
  }
  void on_lane_frame(Instant now, uint32_t link, std::span<const std::byte> frame) {
    for (CoreWatcher* w : watchers_) w->before_frame(link, frame);
    core_.on_lane_frame(now, link, frame);
    for (CoreWatcher* w : watchers_) w->after_frame();
  }
  void on_posted(Instant now, uint32_t jetty) { core_.on_posted(now, jetty); }
  size_t send_posted(Instant now, uint32_t jetty, size_t budget, Acks acks) {
    return core_.send_posted(now, jetty, budget, acks);
  }
  void on_timer(Instant now) { core_.on_timer(now); }
  size_t poll_packets(Instant now, size_t budget, Acks acks) { return core_.poll_packets(now, budget, acks); }
  size_t poll_events(std::span<Event> events) { return core_.poll_events(events); }
  Instant next_deadline() const { return core_.next_deadline(); }
  bool has_packets() const { return core_.has_packets(); }

 private:
  Core& core_;
  const std::vector<CoreWatcher*>& watchers_;
};

}  // namespace ub
