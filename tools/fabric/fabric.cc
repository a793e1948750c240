// SPDX-License-Identifier: Apache-2.0
#include "tools/fabric/fabric.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "tools/common/tool_error.h"
#include "tools/fabric/report.h"

namespace ub::fabric {
namespace {

using tools::ToolError;

// Signals come only while the fabric sleeps, so that none is missed just before it falls asleep.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t stops;
    sigemptyset(&stops);
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stops, signal);
    sigprocmask(SIG_BLOCK, &stops, &before_);
  }
  ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  const sigset_t* before() const { return &before_; }

 private:
  sigset_t before_;
};

// A file on the standard input cannot be watched, and is always readable; epoll refuses it with EPERM.
void watch(const ipc::Fd& epoll, int fd, bool for_writing = false) {
  epoll_event event{};
  event.events = for_writing ? EPOLLOUT : EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0) return;
  if (errno == EPERM) throw ToolError("the standard input is a file; give it by a pipe, or use the control socket");
  throw ToolError(std::string("cannot watch a descriptor: ") + std::strerror(errno));
}

}  // namespace

Fabric::Fabric(const Config& config, bool with_stdin)
    : config_(config),
      network_(config_, now()),
      medium_(config_.is_udp() ? open_udp_medium(config_) : open_switch_medium(config_)),
      console_(config_, network_, *medium_),
      control_(config_.control, with_stdin),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  for (const Setting& setting : config_.settings) {
    try {
      console_.set(now(), setting.links, setting.text);
    } catch (const ToolError& error) {
      throw ToolError(error.code(), setting.where + ": " + error.what());
    }
  }
  if (!epoll_ || !timer_) throw ToolError(std::string("cannot make epoll and timer: ") + std::strerror(errno));
  watch(epoll_, timer_.get());
  for (int fd : medium_->fds()) watch(epoll_, fd);
  watch_controls();
}

Instant Fabric::now() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return {static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec)};
}

void Fabric::run() {
  const BlockedSignals blocked;
  epoll_event events[32];
  auto send = [this](size_t to, std::span<const std::byte> frame, uint64_t tag) { medium_->send(to, frame, tag); };
  while (!tools::stop_requested && !console_.was_told_to_quit()) {
    arm_timer();
    const int count = ::epoll_pwait(epoll_.get(), events, std::size(events), -1, blocked.before());
    for (int i = 0; i < count; ++i) serve(events[i].data.fd);
    if (const Instant time = now(); medium_->next_look() <= time) medium_->look(time, into_network(time));
    if (const Instant time = now(); control_.next_due() <= time) {
      control_.drop_slow(time);
      watch_controls();
    }
    network_.deliver(now(), send);
  }
}

void Fabric::watch_controls() {
  for (const Control::Watched& w : controls_)
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, w.fd, nullptr);  // epoll forgot those that were closed
  controls_ = control_.watched();
  for (const Control::Watched& w : controls_) watch(epoll_, w.fd, w.for_writing);
}

bool Fabric::is_control(int fd) const {
  return std::any_of(controls_.begin(), controls_.end(), [fd](const auto& w) { return w.fd == fd; });
}

void Fabric::arm_timer() {
  const Instant due = earlier(earlier(network_.next_due(), medium_->next_look()), control_.next_due());
  if (due == armed_) return;
  armed_ = due;
  itimerspec when{};  // zero: never
  if (!due.is_never()) {
    when.it_value.tv_sec = static_cast<time_t>(due.ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(std::max<uint64_t>(due.ns % 1'000'000'000, 1));
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Fabric::serve(int fd) {
  if (fd == timer_.get()) {
    uint64_t expirations;
    [[maybe_unused]] const ssize_t bytes = ::read(fd, &expirations, sizeof expirations);
    armed_ = Instant::never();  // it is not, now
    return;
  }
  if (is_control(fd)) {
    control_.serve(now(), fd, [this](std::string_view line) { return console_.answer(now(), line); });
    watch_controls();
    return;
  }
  medium_->receive(fd, into_network(now()));
}

Medium::Sink Fabric::into_network(Instant arrived) {
  return [this, arrived](size_t from, size_t to, std::span<const std::byte> frame, uint64_t tag) {
    network_.offer(arrived, from, to, frame, tag);
  };
}

std::string Fabric::text_report() {
  return paths_as_text(network_.all_paths(), config_, network_, now()) + medium_as_text(*medium_);
}

nlohmann::json Fabric::json_report() { return as_json(config_, network_, *medium_, now()); }

}  // namespace ub::fabric
