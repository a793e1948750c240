// SPDX-License-Identifier: Apache-2.0
#include "lib/urma/aperture/same_host/share_watcher.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "lib/ipc/of_process.h"
#include "lib/ipc/silent_thread.h"

namespace ub::aperture {
namespace {

constinit ipc::OfProcess<ShareWatcher> g_watcher;

}  // namespace

ShareWatcher& ShareWatcher::get() { return g_watcher.get(); }
ShareWatcher* ShareWatcher::find() { return g_watcher.find(); }

bool ShareWatcher::add(std::shared_ptr<WatchedShare> share, std::string* error) {
  std::lock_guard guard(mutex_);
  if (!start(error)) return false;
  shares_.push_back(std::move(share));
  if (watch(*shares_.back())) return true;
  *error = std::string("the end of a right to memory cannot be waited for: ") + std::strerror(errno);
  shares_.pop_back();
  return false;
}

bool ShareWatcher::start(std::string* error) {
  if (started_) return true;
  epoll_ = ipc::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) {
    *error = std::string("no descriptor to wait for the end of rights to memory: ") + std::strerror(errno);
    return false;
  }
  std::thread thread = ipc::silent_thread("softub-share", [this] { run(); });
  if (!thread.joinable()) {
    *error = "no thread to wait for the end of rights to memory (ulimit -u)";
    return false;
  }
  thread.detach();
  return started_ = true;
}

void ShareWatcher::remove(const WatchedShare* share) {
  std::lock_guard guard(mutex_);
  const auto found =
      std::find_if(shares_.begin(), shares_.end(), [share](const auto& each) { return each.get() == share; });
  if (found == shares_.end()) return;
  ignore(**found);
  shares_.erase(found);
}

void ShareWatcher::nic_ends() {
  std::lock_guard guard(mutex_);
  std::erase_if(shares_, [this](const std::shared_ptr<WatchedShare>& share) {
    if (!share->needs_nic()) return false;
    ignore(*share);
    share->end();
    return true;
  });
}

// Before its socket is closed: a forked child may have it, too, and then closing it does not take it from the set.
void ShareWatcher::ignore(const WatchedShare& share) {
  if (share.socket() >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, share.socket(), nullptr);
}

bool ShareWatcher::watch(WatchedShare& share) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.ptr = &share;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, share.socket(), &event) == 0;
}

// An event may be about a share that was removed meanwhile, so each is looked for.
void ShareWatcher::run() {
  const int epoll = epoll_.get();
  for (;;) {
    epoll_event event;
    if (::epoll_wait(epoll, &event, 1, -1) != 1) continue;
    std::lock_guard guard(mutex_);
    const auto found = std::find_if(shares_.begin(), shares_.end(),
                                    [&event](const auto& each) { return each.get() == event.data.ptr; });
    if (found == shares_.end()) continue;
    ignore(**found);
    if ((*found)->listen() || !watch(**found)) shares_.erase(found);
  }
}

}  // namespace ub::aperture
