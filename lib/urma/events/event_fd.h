// SPDX-License-Identifier: Apache-2.0
// event_fd.h - an eventfd used as a level: readable exactly while events wait. Every event writes, so that
// edge-triggered epoll sees each; taking the last one reads the counter away.
// Thread: the lock of the queue behind it.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "lib/ipc/keep_errno.h"
#include "lib/ipc/not_cancelled.h"

namespace ub::urma {

// -1: errno says why. Blocking unless the application sets O_NONBLOCK: that flag is how it asks for it.
inline int open_event_fd() { return eventfd(0, EFD_CLOEXEC); }

// Only after ipc::ring(): an eventfd at zero would block.
inline void lower_event_fd(int fd) {
  ipc::KeepErrno kept;
  const ipc::NotCancelled guard;
  uint64_t count;
  while (read(fd, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace ub::urma
