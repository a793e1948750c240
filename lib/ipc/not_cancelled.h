// SPDX-License-Identifier: Apache-2.0
//
// A piece of code in which the calling thread is not cancelled. Most system calls are cancellation points. A thread
// that is cancelled in one while it changes what threads share leaves it half changed, and owned, for ever. A
// cancellation that comes meanwhile acts at the next cancellation point of the thread. Thread: any.
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
