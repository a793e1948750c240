// SPDX-License-Identifier: Apache-2.0
#include "dataplane/sleep_set.h"

#include <sys/epoll.h>
#include <time.h>

#include <cerrno>
#include <cstring>

namespace ub {

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
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void SleepSet::forget(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

Woken SleepSet::sleep(Duration limit) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  const timespec time{limit.ns / kNsPerSecond, static_cast<long>(limit.ns % kNsPerSecond)};
  epoll_event events[16];
  const int count = epoll_pwait2(epoll_.get(), events, std::size(events), limit.ns < 0 ? nullptr : &time, nullptr);
  Woken woken;
  for (int i = 0; i < count; ++i) woken.add(static_cast<Waker>(events[i].data.u32));
  return woken;
}

}  // namespace ub
