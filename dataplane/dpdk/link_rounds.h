// SPDX-License-Identifier: Apache-2.0
//
// The rounds of DPDK's interrupt thread over the devices of this process: one look at each, ten times a second or more.
//
// While guarded devices have links (see LinkWatch), the thread stays inside a round, and their drivers act only between
// two of them, for a few dozen microseconds. One round serves all devices: a timer of each would find another one due
// whenever it ends, and the drivers would never act at all. What the interrupt thread does for others in the process
// waits for up to a tenth of a second; a hundredth while a device waits for its link, as its driver needs several
// turns to get one.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "lib/base/time.h"

namespace ub::dpdk {

class LinkWatch;

class LinkRounds {
 public:
  static LinkRounds& of_process();

  // Thread: any but DPDK's. From here the rounds look at it.
  void join(LinkWatch&);
  // Thread: any but DPDK's. The last look has been taken when it returns.
  void leave(LinkWatch&);

 private:
  static constexpr Duration kLinkPause = milliseconds(100);    // between looks at links
  static constexpr Duration kNoLinkPause = milliseconds(10);   // while there is none somewhere
  static constexpr Duration kDriversPause = microseconds(20);  // in which guarded drivers act

  static void round(void* rounds) { static_cast<LinkRounds*>(rounds)->round(); }
  void round();
  void stay_inside(Duration pause);
  void take_last_looks();
  void begin_now();
  void schedule(Duration pause);
  bool is_member(const LinkWatch&) const;

  std::mutex control_;  // one join or leave at a time

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<LinkWatch*> members_;
  std::vector<LinkWatch*> leaving_;
  bool hurry_ = false;  // somebody joins or leaves
};

}  // namespace ub::dpdk
