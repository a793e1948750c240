// SPDX-License-Identifier: Apache-2.0
//
// While an object of this class lives, its thread handles no signals but those that report its own faults, and is not
// cancelled. Whoever has claimed pages outside a fault's handler needs it: a signal handler that touches such a page
// would wait for its own thread, and one that jumps out, or a cancellation, would leave the page claimed for ever.
#pragma once

#include <pthread.h>
#include <signal.h>

#include "lib/ipc/not_cancelled.h"

namespace ub::aperture {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&blocked, fault);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  const ipc::NotCancelled not_cancelled_;
  sigset_t before_;
};

}  // namespace ub::aperture
