// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/wait.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "lib/urma/library.h"
#include "lib/urma/objects/live.h"

namespace ub::urma {
namespace {

std::mutex& control() { return Library::get().control(); }

// A back end may end while we sleep: it is told of our end only in the epoch in which it was told of our start. Epochs
// change under the same lock.
class Waiting {
 public:
  explicit Waiting(WaitFor what) {
    std::lock_guard guard(control());
    epoch_ = live_state.epoch.load();
    backend().begin_wait();
    if (what == WaitFor::kCompletion && backend().may_stand_in()) stands_in_for_ = &backend();
  }
  ~Waiting() {
    std::lock_guard guard(control());
    if (live_state.epoch.load() == epoch_) backend().end_wait();
  }

  // poll() for one descriptor, once.
  int block(pollfd* entry, int time_out) {
    if (stands_in_for_ != nullptr) {  // it does not end before this returns
      const int ready = stands_in_for_->stand_in(entry->fd, time_out);
      if (ready >= 0 || errno == EINTR) return ready;
    }
    return poll(entry, 1, time_out);  // which says what is wrong with the descriptor
  }

 private:
  uint64_t epoch_;
  Backend* stands_in_for_ = nullptr;
};

}  // namespace

bool wait_readable(int fd, int time_out, WaitFor what) {
  const int64_t end = now_ns() + int64_t{time_out} * 1'000'000;
  const int before = errno;
  for (int left = time_out;;) {
    pollfd entry{fd, POLLIN, 0};
    int ready = Waiting(what).block(&entry, left);
    if (ready < 0 && errno != EINTR) return false;
    errno = before;
    if (ready >= 0) return (entry.revents & POLLNVAL) == 0;
    if (time_out >= 0) left = static_cast<int>(std::max<int64_t>(0, (end - now_ns() + 999'999) / 1'000'000));
  }
}

}  // namespace ub::urma
