// SPDX-License-Identifier: Apache-2.0
//
// When a sleeper is to wake by itself. To arm a timer of the kernel for every short sleep costs more than what the
// sleeper wakes for (on virtual machines each is an exit), so one that rings early enough stays as it is: it may ring
// early, and whoever wakes for nothing sets it again.
//
// Thread: the sleeper, which polls on fd().
#pragma once

#include <string>

#include "lib/base/time.h"
#include "lib/ipc/fd.h"

namespace ub {

class Alarm {
 public:
  // False: the kernel has no descriptor left; `*error` says so.
  bool create(std::string* error);
  int fd() const { return fd_.get(); }  // readable once it rang, until silence()
  // It rings at `due` or earlier; `due` is after `now`. Never: it need not ring.
  void set(Instant now, Instant due);
  Instant rings_at() const { return rings_at_; }  // or rang
  void silence();

 private:
  ipc::Fd fd_;
  Instant rings_at_{};
  bool armed_ = false;  // and not seen to ring: the clock of who sets it may run slower than the kernel's
};

}  // namespace ub
