// SPDX-License-Identifier: Apache-2.0
#include "dataplane/sleep_set.h"

#include <signal.h>
#include <sys/epoll.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

// C libraries before glibc 2.35 lack it. Its system call by number would do, but a thread that sleeps there cannot be
// cancelled.
extern "C" [[gnu::weak]] int epoll_pwait2(int, epoll_event*, int, const timespec*, const sigset_t*);

namespace ub {

namespace {

int wait_in_ms(int epoll, epoll_event* events, int room, Duration limit) {
  constexpr int64_t kNsPerMs = 1'000'000;
  const int64_t ms = limit.ns < 0 ? -1 : std::min<int64_t>((limit.ns + kNsPerMs - 1) / kNsPerMs, INT_MAX);
  return epoll_wait(epoll, events, room, static_cast<int>(ms));
}

int wait_in_ns(int epoll, epoll_event* events, int room, Duration limit) {
  static std::atomic<bool> refused{false};
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  const timespec time{limit.ns / kNsPerSecond, static_cast<long>(limit.ns % kNsPerSecond)};
  if (epoll_pwait2 != nullptr && !refused.load(std::memory_order_relaxed)) {
    const int count = epoll_pwait2(epoll, events, room, limit.ns < 0 ? nullptr : &time, nullptr);
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    refused.store(true, std::memory_order_relaxed);
  }
  return wait_in_ms(epoll, events, room, limit);
}

}  // namespace

bool SleepSet::create(std::string* error) {
  epoll_ = ipc::Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) *error = std::string("cannot create an epoll descriptor: ") + std::strerror(errno);
  return static_cast<bool>(epoll_);
}

bool SleepSet::watch(int fd, Waker waker, bool shared) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (shared) event.events |= EPOLLEXCLUSIVE;
  event.data.u32 = static_cast<uint32_t>(waker);
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST;
}

void SleepSet::forget(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

Woken SleepSet::sleep(Duration limit) {
  epoll_event events[16];
  const int count = wait_in_ns(epoll_.get(), events, std::size(events), limit);
  Woken woken;
  if (count < 0) woken.set_interrupted();
  for (int i = 0; i < count; ++i) woken.add(static_cast<Waker>(events[i].data.u32));
  return woken;
}

}  // namespace ub
