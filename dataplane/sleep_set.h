// SPDX-License-Identifier: Apache-2.0
//
// What a thread of the NIC sleeps on, and why it woke.
//
// Two threads may sleep on the same doorbell or socket: the helper, and an application thread that stands in for it.
// Such a descriptor is shared: of the sets that share it the kernel wakes the first one in which somebody sleeps, in
// the order in which they began to watch it, and the other sleeper stays asleep (EPOLLEXCLUSIVE).
//
// Thread: one sleeps at a time; watch() and forget() any, also while it sleeps.
#pragma once

#include <string>

#include "lib/base/time.h"
#include "lib/ipc/fd.h"

namespace ub {

enum class Waker : uint8_t {
  kFrames,   // a doorbell
  kUdp,      // a socket with datagrams
  kAlarm,    // the time is over
  kRung,     // by a thread of this process
  kOthers,   // connections, clients, devices
  kAwaited,  // what an application thread waits for
};

// Which of them woke the sleeper; none: it slept for as long as it may, or a signal came.
class Woken {
 public:
  void add(Waker waker) { bits_ |= bit(waker); }
  void set_interrupted() { interrupted_ = true; }
  bool by(Waker waker) const { return (bits_ & bit(waker)) != 0; }
  bool by_any() const { return bits_ != 0; }
  bool by_any_but(Waker waker) const { return (bits_ & ~bit(waker)) != 0; }
  bool interrupted() const { return interrupted_; }

 private:
  static uint32_t bit(Waker waker) { return 1u << static_cast<uint32_t>(waker); }
  uint32_t bits_ = 0;
  bool interrupted_ = false;
};

class SleepSet {
 public:
  static constexpr Duration kNoLimit{-1};

  // False: the kernel has no descriptor left; `*error` says so.
  bool create(std::string* error);
  // A shared descriptor must be readable in itself: the kernel refuses those of other sets. False: no memory.
  bool watch(int fd, Waker waker, bool shared = false);
  void forget(int fd);
  // Until one of them is readable, a signal, or `limit`, which is rounded up to milliseconds where the kernel (before
  // 5.11) or a filter of system calls knows no shorter time.
  Woken sleep(Duration limit);

 private:
  ipc::Fd epoll_;
};

}  // namespace ub
