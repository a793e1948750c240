// SPDX-License-Identifier: Apache-2.0
#include "dataplane/alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace ub {

bool Alarm::create(std::string* error) {
  fd_ = ipc::Fd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!fd_) *error = std::string("cannot create a timer: ") + std::strerror(errno);
  return static_cast<bool>(fd_);
}

void Alarm::set(Instant now, Instant due) {
  if (due.is_never() || (armed_ && rings_at_ > now && rings_at_ <= due)) return;
  rings_at_ = due;
  armed_ = true;
  const int64_t ns = (due - now).ns;
  itimerspec spec{};
  spec.it_value = {ns / 1'000'000'000, static_cast<long>(ns % 1'000'000'000)};
  timerfd_settime(fd_.get(), 0, &spec, nullptr);
}

void Alarm::silence() {
  uint64_t rings;
  if (read(fd_.get(), &rings, sizeof rings) > 0) armed_ = false;
}

}  // namespace ub
