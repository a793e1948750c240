// SPDX-License-Identifier: Apache-2.0
//
// Whether a device has a link, and whether it may be touched now.
//
// The interrupt thread of DPDK looks, in rounds over all devices of the process (dataplane/dpdk/link_rounds.h).
//
// The memif driver unmaps the rings of a peer that went away on that same thread, whatever the polling thread does
// with them meanwhile. Such a device is guarded: its driver acts only when the interrupt thread owns the gate that
// every burst has to pass, which is between two rounds. A burst pays two plain stores for that (dataplane/ownership.h).
//
// A guarded client also does not connect again by itself: it is started by the first round, and without a link it is
// stopped and started now and then (reconnect.h). It leaves its server time to answer, whose interrupt thread may be
// inside a round: a server that answers a client which has hung up keeps a closed descriptor, at which DPDK ends the
// process (22.11). A server that has hung up itself is not waited for.
//
// Thread: named at each member.
#pragma once

#include <rte_ethdev.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "dataplane/dpdk/reconnect.h"
#include "dataplane/dpdk/server_connection.h"
#include "dataplane/ownership.h"

namespace ub::dpdk {

class LinkWatch {
 public:
  struct Options {
    uint16_t port = 0;
    std::string name;       // of the device
    bool guarded = false;   // memif
    bool connects = false;  // its client side, not started yet
    std::string server;     // whose socket it connects to
    std::function<void(const std::string& sentence)> notice;
    std::function<void()> changed;  // has_link() did
  };

  // Begins to look. Thread: any but DPDK's, after the device was started; a client is started by the looks.
  explicit LinkWatch(Options);
  // The last look. Thread: any but DPDK's, after the last burst.
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

  // ---- the interrupt thread ----
  void look();
  void let_in();  // a guarded device with a link: bursts pass until keep_out()
  void keep_out();
  void last_look();  // a guarded device is stopped and closed
  void give_up();    // nobody looks any more
  bool is_guarded() const { return options_.guarded; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{1};  // without a link, until a person is told

  static int on_removal(uint16_t port, rte_eth_event_type, void* watch, void*);
  void set_link(bool up);
  void without_link(Clock::time_point now);
  void forget_removal();
  void tell(const char* what) const;

  const Options options_;
  std::atomic<bool> has_link_{false};
  std::atomic<bool> gone_{false};
  std::atomic<uint64_t> changes_{0};
  Ownership gate_;  // the interrupt thread's, but between let_in() and keep_out()

  // ---- the interrupt thread ----
  bool gate_owned_ = false;
  bool told_ = false;  // that there is no link
  Clock::time_point lost_ = Clock::now();
  Reconnect reconnect_;
  ServerConnection connection_;
};

}  // namespace ub::dpdk
