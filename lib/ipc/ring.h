// SPDX-License-Identifier: Apache-2.0
//
// Rings a thread that sleeps on an eventfd. It keeps errno, and it is no cancellation point: the caller has told all
// others that it rings, so nobody would ring in its place. Thread: any.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "lib/ipc/keep_errno.h"
#include "lib/ipc/not_cancelled.h"

namespace ub::ipc {

// If the counter of the descriptor is full, the write fails without blocking, and the descriptor is readable anyway.
inline void ring(int event_fd) {
  const KeepErrno kept;
  const NotCancelled guard;
  const uint64_t one = 1;
  while (::write(event_fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace ub::ipc
