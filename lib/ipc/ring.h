// SPDX-License-Identifier: Apache-2.0
//
// Rings whoever sleeps on an eventfd. It keeps errno and is no cancellation point: whoever rings has told the others that
// it does, and nobody would ring in its place. Thread: any.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "lib/ipc/keep_errno.h"
#include "lib/ipc/not_cancelled.h"

namespace ub::ipc {

// A counter that is full, in a descriptor that does not block, is readable anyway.
inline void ring(int event_fd) {
  const KeepErrno kept;
  const NotCancelled guard;
  const uint64_t one = 1;
  while (::write(event_fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace ub::ipc
