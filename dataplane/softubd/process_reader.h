// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says of the threads of a process, from /proc. The process is known by its number and by when it
// began, so that another one that got the number later is not taken for it. Nothing is shown of a process in another
// pid namespace, or where /proc is hidden or keeps no such statistics: the readings are empty then.
//
// Thread: any, one at a time; a reading makes system calls, two files for each thread, and waits for nobody.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "dataplane/softubd/starvation.h"

namespace ub {

class ProcessReader {
 public:
  // `pid`: as the socket's credentials tell; 0: not in our namespace.
  explicit ProcessReader(pid_t pid);

  // Of a process with more threads than kMostThreads: of its oldest.
  ProcessReading read() const;

 private:
  static constexpr size_t kMostThreads = 128;

  pid_t pid_;
  uint64_t began_;  // ticks since boot, 0: not seen
};

}  // namespace ub
