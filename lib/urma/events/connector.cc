// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/events/connector.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>

#include "lib/ipc/ring.h"
#include "lib/ipc/silent_thread.h"
#include "lib/urma/clock.h"
#include "lib/urma/events/event_fd.h"
#include "lib/urma/library.h"
#include "lib/urma/objects/find.h"
#include "lib/urma/objects/import.h"
#include "lib/urma/status.h"

namespace ub::urma {
namespace {

std::mutex& control() { return Library::get().control(); }

Target* target_of(const Connect& connect) {
  if (connect.result.type != URMA_IMPORT_JETTY_NOTIFY) return nullptr;
  return reinterpret_cast<Target*>(connect.result.tjetty);
}

void set_timer(Notifier& notifier) {
  int64_t first = notifier.deadlines.empty() ? 0 : notifier.deadlines.begin()->first;
  if (first == notifier.timer) return;
  notifier.timer = first;
  itimerspec when{};
  when.it_value = {first / 1'000'000'000, first % 1'000'000'000};
  timerfd_settime(notifier.timer_fd, TFD_TIMER_ABSTIME, &when, nullptr);
}

void forget_deadline(Connect& connect) {
  if (connect.deadline == 0) return;
  connect.notifier->deadlines.erase({connect.deadline, &connect});
  connect.deadline = 0;
  set_timer(*connect.notifier);
}

// Its end, as a result or before there is one.
void erase(Connect& connect) {
  Notifier& notifier = *connect.notifier;
  forget_deadline(connect);
  if (Target* target = target_of(connect)) target->connect = nullptr;
  bool was_result = connect.list == &notifier.results;
  connect.list->erase(connect.place);
  if (was_result && notifier.results.empty()) lower_event_fd(notifier.results_fd);
}

void move(Connect& connect, std::list<Connect>& to) {
  to.splice(to.end(), *connect.list, connect.place);
  connect.list = &to;
}

void conclude(Connect& connect, urma_status_t status) {
  forget_deadline(connect);
  connect.result.status = status;
  move(connect, connect.notifier->results);
  ipc::ring(connect.notifier->results_fd);
}

bool is_over(const Connect& connect, int64_t now) { return connect.deadline != 0 && connect.deadline <= now; }

template <class Which>
void erase_if(std::list<Connect>& list, Which which) {
  for (auto at = list.begin(); at != list.end();) {
    Connect& connect = *at++;
    if (which(connect)) erase(connect);
  }
}

}  // namespace

bool open_fds(Notifier& notifier) {
  notifier.results_fd = open_event_fd();
  notifier.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  notifier.pub.fd = epoll_create1(EPOLL_CLOEXEC);
  epoll_event readable{};
  readable.events = EPOLLIN;
  bool opened = notifier.results_fd >= 0 && notifier.timer_fd >= 0 && notifier.pub.fd >= 0 &&
                epoll_ctl(notifier.pub.fd, EPOLL_CTL_ADD, notifier.results_fd, &readable) == 0 &&
                epoll_ctl(notifier.pub.fd, EPOLL_CTL_ADD, notifier.timer_fd, &readable) == 0;
  if (opened) return true;
  int error = errno;
  close_fds(notifier);
  errno = error;
  return false;
}

void close_fds(Notifier& notifier) {
  for (int fd : {notifier.pub.fd, notifier.timer_fd, notifier.results_fd}) {
    if (fd >= 0) close(fd);
  }
  notifier.pub.fd = notifier.timer_fd = notifier.results_fd = -1;
}

uint32_t take_results(Notifier& notifier, uint32_t room, urma_notify_t out[]) {
  std::lock_guard guard(control());
  int64_t now = notifier.deadlines.empty() ? 0 : now_ns();
  while (!notifier.deadlines.empty() && notifier.deadlines.begin()->first <= now) {
    conclude(*notifier.deadlines.begin()->second, URMA_ETIMEOUT);
  }
  uint32_t count = 0;
  while (count < room && !notifier.results.empty()) {
    out[count++] = notifier.results.front().result;
    erase(notifier.results.front());
  }
  return count;
}

void add_result(Notifier& notifier, std::list<Connect>& result) {
  std::lock_guard guard(control());
  Connect& connect = result.front();
  connect.notifier = &notifier;
  connect.list = &result;
  connect.place = result.begin();
  conclude(connect, connect.result.status);
}

bool abandon(Target& target) {
  std::lock_guard guard(control());
  if (target.connect != nullptr) erase(*target.connect);
  return target.magic == incomplete_magic();
}

void drop_bind_results(const Jetty& jetty) {
  Library::get().for_each<Notifier>([&](Notifier& notifier) {
    erase_if(notifier.results, [&](const Connect& connect) {
      return connect.result.type == URMA_BIND_JETTY_NOTIFY && connect.result.jetty == &jetty.pub;
    });
  });
}

// ---- outstanding imports ---------------------------------------------------------------------------------------

bool Connector::submit(Notifier& notifier, Target& target, const TargetConfig& config, uint64_t user_ctx,
                       int timeout) try {
  std::list<Connect> made(1);
  Connect& connect = made.front();
  connect.notifier = &notifier;
  connect.list = &made;
  connect.place = made.begin();
  connect.config = config;
  connect.result.type = URMA_IMPORT_JETTY_NOTIFY;
  connect.result.user_ctx = user_ctx;
  connect.result.tjetty = &target.pub;

  std::lock_guard guard(control());
  if (stopping_ || !start()) return false;
  if (timeout >= 0) {
    int64_t deadline = now_ns() + int64_t{timeout} * 1'000'000;
    notifier.deadlines.insert({deadline, &connect});
    connect.deadline = deadline;
    set_timer(notifier);
  }
  target.connect = &connect;
  target.magic = incomplete_magic();
  move(connect, queued_);
  wake_.notify_one();
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Connector::cancel(Notifier& notifier) {
  std::lock_guard guard(control());
  auto of_notifier = [&](const Connect& connect) { return connect.notifier == &notifier; };
  erase_if(queued_, of_notifier);
  erase_if(running_, of_notifier);
  erase_if(notifier.results, of_notifier);
}

void Connector::stop() {
  {
    std::lock_guard guard(control());
    stopping_ = true;
    auto all = [](const Connect&) { return true; };
    erase_if(queued_, all);
    erase_if(running_, all);
  }
  wake_.notify_one();
  if (worker_.joinable()) worker_.join();
}

// ---- the thread ------------------------------------------------------------------------------------------------

// Signals are the application's.
bool Connector::start() {
  if (worker_.joinable()) return true;
  worker_ = ipc::silent_thread("softub-connect", [this] { run(); });
  return worker_.joinable();
}

void Connector::run() {
  std::unique_lock lock(control());
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queued_.empty(); });
    if (stopping_) return;
    connect_next(lock);
  }
}

// Holds `lock`, but not while it waits for the back end. One whose peer has not answered yet lets the others go on.
void Connector::connect_next(std::unique_lock<std::mutex>& lock) {
  constexpr auto kPause = std::chrono::milliseconds(1);
  constexpr size_t kMostLooks = 32;  // in a row
  if (is_over(queued_.front(), now_ns())) return conclude(queued_.front(), URMA_ETIMEOUT);
  move(queued_.front(), running_);
  TargetConfig config = running_.front().config;
  int64_t& until = running_.front().find_until;
  if (until == 0) until = now_ns() + kFindPatienceNs;  // others may have kept it waiting
  const bool give_up = now_ns() > until;
  lock.unlock();
  uint32_t handle = 0;
  std::string why;
  Status status = look_for_instance(config, &why);
  if (status == Status::kBusy) {
    if (!give_up) {
      backend().drive();
      lock.lock();
      if (!running_.empty()) move(running_.front(), queued_);
      if (++silent_ >= std::min(queued_.size(), kMostLooks)) {
        silent_ = 0;
        wake_.wait_for(lock, kPause);
      }
      return;
    }
    status = Status::kInvalid;
  }
  if (status == Status::kOk) status = add_target(config, &handle, &why);
  if (status != Status::kOk) log_refusal(config, why);
  lock.lock();
  if (!running_.empty()) {
    Connect& done = running_.front();
    if (status == Status::kOk) make_usable(*target_of(done), config, handle);
    // What the back end finds invalid is the device's matter, see errno_of().
    return conclude(done, status == Status::kInvalid ? URMA_FAIL : status_of(status));
  }
  lock.unlock();
  if (status == Status::kOk) backend().remove_target(handle);
  lock.lock();
}

}  // namespace ub::urma
