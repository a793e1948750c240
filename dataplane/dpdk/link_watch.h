// SPDX-License-Identifier: Apache-2.0
//
// Whether a device has a link, and whether it may be touched now.
//
// A look at the link is due ten times a second; it happens on DPDK's interrupt thread (a timer of its own, "alarm").
//
// The memif driver unmaps the rings of a peer that went away on that same thread, whatever the polling thread does
// with them meanwhile. Such a device is guarded: while it has a link, the interrupt thread stays inside the look and
// lets the driver act only between two looks, a few dozen microseconds, when it owns the gate that every burst has to
// pass. A burst pays two plain stores for that (dataplane/ownership.h). What the interrupt thread does for others in
// the process waits for up to a tenth of a second.
//
// A guarded client also does not connect again by itself: without a link, it is stopped and started now and then.
//
// Thread: named at each member.
#pragma once

#include <rte_ethdev.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "dataplane/ownership.h"
#include "lib/base/time.h"

namespace ub::dpdk {

class LinkWatch {
 public:
  struct Options {
    uint16_t port = 0;
    std::string name;        // of the device
    bool guarded = false;    // memif
    bool reconnect = false;  // its client side
    std::function<void(const std::string& sentence)> notice;
  };

  // Begins to look. Thread: any, after the device was started.
  explicit LinkWatch(Options);
  // The last look; a guarded device is stopped and closed in it. Thread: any but DPDK's, after the last burst.
  ~LinkWatch();
  LinkWatch(const LinkWatch&) = delete;
  LinkWatch& operator=(const LinkWatch&) = delete;

  // ---- the owner of the Core ----
  // True: bursts are safe until leave(). False with a link: in a moment.
  bool enter() { return has_link() && (!options_.guarded || gate_.try_own()); }
  void leave() {
    if (options_.guarded) gate_.release();
  }
  bool has_link() const { return has_link_.load(std::memory_order_relaxed); }
  // Not removed, by hand or by somebody else in the process. Any thread.
  bool is_there() const { return !gone_.load(std::memory_order_relaxed); }
  uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  static constexpr Duration kLinkPause = milliseconds(100);     // between looks at a link
  static constexpr Duration kNoLinkPause = milliseconds(10);    // until there is one
  static constexpr Duration kGuardPause = microseconds(20);     // in which a guarded driver acts
  static constexpr Duration kConnectPause = milliseconds(200);  // between tries of a client
  static constexpr Duration kPatience = seconds(1);             // without a link, until a person is told

  static void look(void* watch);
  static int on_removal(uint16_t port, rte_eth_event_type, void* watch, void*);
  void look();
  void set_link(bool up);
  void without_link();
  void stay_inside();
  void reconnect();
  void close_device();
  void forget_removal();
  void next_look(Duration pause);
  void tell(const char* what) const;

  const Options options_;
  std::atomic<bool> has_link_{false};
  std::atomic<bool> gone_{false};
  std::atomic<uint64_t> changes_{0};
  Ownership gate_;  // the interrupt thread's outside stay_inside()

  // ---- the interrupt thread ----
  bool gate_owned_ = false;
  bool told_ = false;  // that there is no link
  Duration without_link_{};
  Duration since_try_{};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  bool ended_ = false;  // no look comes any more
};

}  // namespace ub::dpdk
