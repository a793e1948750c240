// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/wait.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "lib/urma/live.h"

namespace ub::urma {

bool wait_readable(int fd, int time_out) {
  struct Waiting {
    Backend& nic = backend();
    Waiting() { nic.begin_wait(); }
    ~Waiting() { nic.end_wait(); }
  } waiting;
  const int64_t end = now_ns() + int64_t{time_out} * 1'000'000;
  for (int left = time_out;;) {
    pollfd entry{fd, POLLIN, 0};
    int ready = poll(&entry, 1, left);
    if (ready >= 0) return (entry.revents & POLLNVAL) == 0;
    if (errno != EINTR) return false;
    if (time_out >= 0) left = static_cast<int>(std::max<int64_t>(0, (end - now_ns() + 999'999) / 1'000'000));
  }
}

}  // namespace ub::urma
