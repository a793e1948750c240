// SPDX-License-Identifier: Apache-2.0
//
// A piece of code in which the calling thread is not cancelled. Most system calls are cancellation points; whoever is
// cancelled in one that has begun to change what threads share leaves it half changed, and owned, for ever. A cancellation
// that came meanwhile acts at the thread's next cancellation point. Thread: any.
#pragma once

#include <pthread.h>

namespace ub::ipc {

class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace ub::ipc
