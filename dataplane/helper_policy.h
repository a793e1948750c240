// SPDX-License-Identifier: Apache-2.0
//
// What the helper thread of an embedded NIC learns from being woken. Pure: no clock, no system call.
//
// Does the application poll? Then it takes every frame itself, and to be rung for frames that are gone is a waste. It
// polls if the helper, woken, finds nothing although the application drove often meanwhile, again and again. One that
// drives now and then and waits for its memory in between leaves frames to the helper: each one found restores trust.
// Frames say nothing of one that drives all the time: it would have found them, too. Its turns may be long, if it sends
// much; then the helper meets it inside the Core.
//
// On which CPU should the helper wake? Whoever rang and then waits without driving (it sleeps, as its doorbell says)
// leaves its CPU to us: there we need no interrupt of another CPU, which costs more than all the rest. From a peer that
// polls we must stay away: on its CPU we would stop it.
//
// Thread: the helper.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/time.h"

namespace ub {

class HelperPolicy {
 public:
  static constexpr int kAnyCpu = -1;

  // How long a turn takes one who polls, at most: a look at memory, or some system calls and a frame.
  static constexpr Duration kTurnOfMemory = nanoseconds(200), kTurnOfUdp = microseconds(12);

  // It woke, and drove or left that to the application. `found`: there were frames; `drives`: those of the application
  // in the `slept` before, each of which takes up to `turn` if it does nothing else; `met`: it was driving at that
  // moment.
  void woke(bool found, uint64_t drives, Duration slept, Duration turn = kTurnOfMemory, bool met = false) {
    // All the time, so that the frames would not have waited for us, though we were in its way.
    const bool all_the_time = (met && drives >= kDrivesIfMet) ||
                              (drives >= kDrivesAtLeast && static_cast<int64_t>(drives) * turn.ns >= slept.ns);
    // A thread that shares our CPU could not drive while we did; this says nothing of it.
    if (drives == 0 && slept < kTooShort) return;
    if (found && !all_the_time) {
      trust_ = kMostTrust;
    } else if ((all_the_time || drives >= kDrivesOfPoller) && trust_ != 0) {
      trust_ -= all_the_time ? std::min(trust_, kMostTrust / 2) : 1;
    }
  }
  bool application_polls() const { return trust_ == 0; }
  void application_stopped() { trust_ = kFirstTrust; }

  // Where the helper is to run: on that CPU alone, or anywhere but there.
  struct Place {
    int cpu = kAnyCpu;
    bool avoid = false;
    bool operator==(const Place&) const = default;
  };
  // It answered a ring from CPU `ringer` (kAnyCpu: not known), who sleeps or polls.
  Place answered(int ringer, bool sleeps) {
    in_a_row_ = ringer == last_.cpu && sleeps != last_.avoid ? in_a_row_ + 1 : 1;
    last_ = {ringer, !sleeps};
    if (in_a_row_ >= kRingsToMove) place_ = last_;
    return place_;
  }

 private:
  static constexpr uint32_t kFirstTrust = 2, kMostTrust = 8;
  static constexpr uint64_t kDrivesOfPoller = 4, kDrivesAtLeast = 32, kDrivesIfMet = 2;
  static constexpr Duration kTooShort = microseconds(50);
  static constexpr uint32_t kRingsToMove = 4;

  uint32_t trust_ = kFirstTrust;
  Place place_, last_;
  uint32_t in_a_row_ = 0;
};

}  // namespace ub
