// SPDX-License-Identifier: Apache-2.0
//
// Is an application that leaves copies undone starved or stuck? Judged by what the kernel says of its threads at two
// moments. Starved: a thread is runnable and got hardly any CPU in between; any thread may be the one that copies, or
// hold what the copying one waits for, so one is enough. All else is stuck: stopped, asleep, or it ran without copying.
//
// A process can look starved on purpose, with a thread of low priority. So the answer says whether waiting makes
// sense, not that it is safe: how long to wait is bounded elsewhere (agent.h).
//
// Thread: one. No IO: process_reader.h reads.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/time.h"

namespace ub {

// A thread, as /proc/PID/task/TID/stat and schedstat tell.
struct ThreadReading {
  int tid = 0;
  char state = 'S';   // as in stat: R runnable or running, S and D asleep, T and t stopped, Z and X dead, ...
  Duration ran;       // on a CPU, since it exists
  Duration waited;    // for a CPU, in waits that are over
  uint64_t runs = 0;  // times that it got a CPU
};

struct ProcessReading {
  Instant at;
  std::vector<ThreadReading> threads;  // by growing tid; empty: nothing could be read
};

enum class Condition : uint8_t {
  kUnclear,  // there is nothing to compare with yet, or nobody looked: ask again
  kStarved,
  kStopped,
  kAsleep,
  kRan,
  kUnseen,  // no such process, or /proc does not show it
};

class StarvationJudge {
 public:
  // Compares with the reading before. The first one after forget() is never kStarved.
  Condition judge(ProcessReading);
  void forget() { before_ = {}; }

 private:
  ProcessReading before_;
};

}  // namespace ub
